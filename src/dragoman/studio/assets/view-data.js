/* Data: the validation set or a test set with the model's translations, sorted and cut into slices; and where it may have them from. */

import { ask } from "./api.js";
import { bar, card, choice, field, select } from "./controls.js";
import { fixed, h } from "./dom.js";
import { compared } from "./pieces.js";
import { set, state } from "./state.js";
import { testSets } from "./views.js";

const SLICES = [[0, "all lengths"], [5, "up to 5 words"], [10, "6 to 10 words"], [20, "11 to 20 words"], [Infinity, "over 20 words"]];
const SORTS = { worst: "worst first", best: "best first", sure: "surest first", unsure: "least sure first", longest: "longest first", set: "as in the set", better: "better than the other", worse: "worse than the other" };
const VALIDATION = "~validation"; // no file is named so
const COUNTS = ["20", "50", "100", "200"];

export function create(root, runs) {
  const controls = h("div", { class: "bar" }), whole = h("p", { role: "status" }), summary = h("div", { class: "scrolls" }), rows = h("tbody", {}), heading = h("tr", {});
  const about = h("div", {}), aboutCard = card("Nearest training pairs", about);
  root.append(card("Test", controls, whole, summary), h("div", { class: "columns wide-left" }, card("Sentences", h("div", { class: "scrolls" }, h("table", {}, h("thead", {}, heading), rows))), aboutCard));
  let latest = 0;

  /* The name of the test set; the first that was opened unless another is chosen, and none for the validation set. */
  const testSet = () => (state.test === VALIDATION ? "" : state.test ?? testSets()[0] ?? "");
  const asked = (run) => ({ run: run.name, text: "", test: testSet(), count: Number(state.count ?? 50), beam: run.name === state.run ? state.beam : run.beam, alpha: run.name === state.run ? state.alpha : run.alpha });
  const same = (own) => runs.filter((run) => !run.reads && !run.fills && !run.generates && run.name !== own.name && String(run.languages) === String(own.languages));

  function drawControls(own, other) {
    const others = same(own);
    controls.replaceChildren(...[
      testSets().length > 0 && field("Set", select([...testSets().map((name) => [name, name]), [VALIDATION, "validation set"]], testSet() || VALIDATION, (test) => set({ test, chosen: undefined }))),
      field("Sentences", select(COUNTS.map((count) => [count, count]), String(state.count ?? 50), (count) => set({ count, chosen: undefined }))),
      field("Order", select(Object.entries(SORTS).filter(([key]) => other || !["better", "worse"].includes(key)), state.sort ?? "worst", (sort) => set({ sort }))),
      field("Slice", select(SLICES.map(([, name], at) => [String(at), name]), String(state.slice ?? 0), (slice) => set({ slice, chosen: undefined }))),
      others.length > 0 && field("Compare with", select([["", "nothing"], ...others.map((run) => [run.name, run.name])], other?.name ?? "", (name) => set({ other: name || undefined, sort: undefined }))),
    ].filter(Boolean));
  }

  const inSlice = (row, slice) => slice === 0 || (row.words <= SLICES[slice][0] && (slice === 1 || row.words > SLICES[slice - 1][0]));
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);

  /* The mean of each slice, for each run. */
  function drawSummary(named) {
    summary.replaceChildren(h("table", { id: "slices" }, h("thead", {}, h("tr", {}, h("th", { class: "name" }, "mean chrF (sentences)"), SLICES.map(([, name]) => h("th", {}, name)))),
      h("tbody", {}, named.map(([name, data]) => h("tr", {}, h("th", { class: "name", scope: "row" }, name), SLICES.map((_, slice) => {
        const own = data.rows.filter((row) => inSlice(row, slice)), found = mean(own.map((row) => row.chrf));
        return h("td", {}, found === null ? "–" : fixed(found, 1), h("span", { class: "soft" }, ` (${own.length})`));
      }))))));
  }

  function sorted(all) {
    const by = { worst: (row) => row.chrf, best: (row) => -row.chrf, sure: (row) => -row.log_prob, unsure: (row) => row.log_prob, longest: (row) => -row.words, set: (row) => row.number,
      better: (row) => (row.other ?? 0) - row.chrf, worse: (row) => row.chrf - (row.other ?? 0) }[state.sort ?? "worst"];
    return [...all].sort((a, b) => by(a) - by(b));
  }

  function drawRows(found, other) {
    heading.replaceChildren(h("th", { class: "words" }, "source, reference, translation"), h("th", {}, "chrF"), ...(other ? [h("th", {}, other.name)] : []), h("th", {}, "log p per piece"));
    rows.replaceChildren(...found.map((row) => choice(String(row.number) === state.chosen, () => set({ chosen: String(row.number) }), row.source,
      fixed(row.chrf, 1), ...(other ? [fixed(row.other, 1)] : []), fixed(row.log_prob, 2))));
    [...rows.children].forEach((line, at) => line.firstChild.append(h("div", { class: "soft", dir: "auto" }, found[at].reference), h("div", { dir: "auto" }, compared(found[at].output, found[at].reference))));
  }

  async function drawAbout(row) {
    const mine = (latest += 1);
    if (!row) { about.replaceChildren(h("p", { class: "soft" }, "Choose a sentence, and see which training pairs are most like it: what the model may have it from.")); return; }
    const { pairs } = await ask("nearest", { run: state.run, text: row.source });
    if (mine !== latest) return;
    about.replaceChildren(h("p", { dir: "auto" }, h("b", {}, row.source)), h("p", {}, h("button", { type: "button", id: "look", onclick: () => set({ view: "translate", text: row.source, target: "", forced: "", at: undefined }) }, "Look into it")),
      h("p", { class: "soft" }, "Training pairs with the most in common, rare pieces counting more:"),
      h("ol", { class: "pairs" }, pairs.map((pair) => {
        return h("li", {}, h("div", { dir: "auto" }, pair.source), h("div", { class: "soft", dir: "auto" }, pair.target), bar(pair.share), h("span", { class: "soft number" }, `${(100 * pair.share).toFixed(0)}%  ${pair.origin}`));
      })));
  }

  async function update() {
    const own = runs.find((run) => run.name === state.run), other = same(own).find((run) => run.name === state.other) ?? null;
    drawControls(own, other);
    const [data, second] = await Promise.all([ask("data", asked(own)), other ? ask("data", asked(other)) : null]);
    const theirs = new Map(second?.rows.map((row) => [row.source, row.chrf]));
    const all = data.rows.map((row, number) => ({ ...row, number, other: theirs.get(row.source) ?? null }));
    drawSummary([[own.name, data], ...(second ? [[other.name, second]] : [])]);
    drawRows(sorted(all.filter((row) => inSlice(row, Number(state.slice ?? 0)))), other);
    await drawAbout(all.find((row) => String(row.number) === state.chosen));
    whole.textContent = `chrF ${fixed(data.chrf, 1)} on ${data.rows.length} of ${data.all} sentences of ${testSet() || "the validation set"}.`;
  }

  return { update, picture: () => [] };
}
