/* A lesson: pages in order, each a view and a paragraph. What is shown stays alive: type, click, come back. */

import { h } from "./dom.js";
import { set, state } from "./state.js";
import { viewsOf } from "./views.js";

/* Which run a page needs, and how one comes by it. */
const NEEDS = {
  markov: [(run) => run.kind === "markov", "a counting model with skips: dragoman train FILES model.preset=markov-skips"],
  blind: [(run) => !run.reads && !run.attentions && run.kind !== "markov", "a recurrent model without attention: dragoman train FILES model.kind=rnn model.attention=none"],
  recurrent: [(run) => run.kind === "rnn" && run.attentions, "a recurrent model with attention: dragoman train FILES model.kind=rnn"],
  looks: [(run) => !run.reads && !run.generates && run.attentions, "a translator with attention: dragoman demo"],
  transformer: [(run) => !run.reads && run.attentions > 1, "a Transformer: dragoman demo"],
  writes: [(run) => !run.reads, "a translator: dragoman demo"],
  reads: [(run) => run.reads && !run.task, "a run of BERT: dragoman pretrain TEXT --model bert-tiny"],
  labels: [(run) => run.task === "classify" || run.task === "pair", "a classifier: dragoman finetune RUN LABELS --task classify"],
};

/* Where a page can be shown: a run that suits, the present one if it does. */
function suited(page, runs, now) {
  const [suits] = NEEDS[page.run];
  const found = [runs.find((run) => run.name === now), ...runs].filter(Boolean);
  return found.find((run) => suits(run) && viewsOf(run).includes(page.view)) ?? null;
}

/* The lesson of the address above the view; empty where there is none. */
export function drawLesson(root, lessons, runs) {
  const lesson = lessons[state.lesson];
  root.hidden = !lesson;
  if (!lesson) return;
  const at = Math.min(lesson.pages.length - 1, Math.max(0, Number(state.page ?? 0) || 0)), page = lesson.pages[at];
  const go = (number) => {
    const to = lesson.pages[number], run = suited(to, runs, state.run);
    set({ page: String(number), ...(run ? { view: to.view, run: run.name, ...(run.name === state.run ? {} : { text: run.text, module: undefined, heads: "", target: "" }), step: 0, ...to.set } : {}) });
  };
  const run = suited(page, runs, state.run);
  const key = [state.lesson, at, run?.name, state.view, state.run].join();
  if (root.dataset.key === key) return; // its buttons keep the focus
  root.dataset.key = key;
  root.replaceChildren(h("h2", {}, `Lesson: ${lesson.title}, ${at + 1} of ${lesson.pages.length}`), h("p", {}, page.text),
    run ? "" : h("p", { class: "wrong" }, `No run that is open here can show this. It takes ${NEEDS[page.run][1]}`),
    h("div", { class: "bar" },
      h("button", { type: "button", id: "lesson-back", disabled: at === 0, onclick: () => go(at - 1) }, "Back"),
      h("button", { type: "button", id: "lesson-next", disabled: at === lesson.pages.length - 1, onclick: () => go(at + 1) }, "Next"),
      run && (state.view !== page.view || state.run !== run.name) ? h("button", { type: "button", id: "lesson-here", onclick: () => go(at) }, "Show it") : "",
      h("button", { type: "button", onclick: () => set({ lesson: undefined, page: undefined }) }, "Close the lesson")));
}
