/* The views, and which of them a run has. */

const VIEWS = { translate: "Translate", read: "Read", attention: "Attention", beam: "Beam", head: "Inside one head", model: "Whole model", compare: "Compare", data: "Data", training: "Training", train: "Train", picture: "Picture", series: "Series" };

/* What a view is called: a language model does not translate. */
export const titleOf = (view, run) => (view === "translate" && run.generates ? "Continue" : VIEWS[view]);

let runs = [], trains = false, tests = [];
const NONE = { name: "", reads: true, none: true, attentions: 0, languages: ["", ""], text: "", model: "no run is open", checkpoint: "", checkpoints: [] };

export function know(found) {
  ({ runs, trains, tests } = found);
}

/* Names of the test sets that were opened. */
export const testSets = () => tests;

export const runOf = (name) => runs.find((run) => run.name === name) ?? runs[0] ?? NONE;

/* A network that only reads has nothing to translate and no search; one that fills gaps writes them. */
export function viewsOf(run) {
  return [...ofRun(run), ...(trains ? ["train"] : [])];
}

function ofRun(run) {
  if (run.none) return [];
  if (run.sees) return [run.sees === "image" ? "picture" : "series", "training"];
  if (run.reads) return ["read", ...(run.attentions ? ["attention"] : []), "training"];
  const writing = ["translate", "attention", "beam", "model", "head", "compare", "data", "training"];
  const without = (...names) => writing.filter((name) => !names.includes(name));
  if (run.fills) return ["read", ...without("compare", "data")];
  return run.generates ? ["translate", "read", ...without("translate", "data")] : writing;
}
