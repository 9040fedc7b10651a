/* Beam: the search growing step by step, what was kept and dropped, and what the length does to the ranking. */

import { ask } from "./api.js";
import { card, choice, readout as spoken, slider } from "./controls.js";
import { fixed, h } from "./dom.js";
import { compared } from "./pieces.js";
import { about } from "./questions.js";
import { set, state } from "./state.js";
import { candidate, legend as legendOf, tree } from "./tree.js";

export function create(root, runs) {
  const continues = () => Boolean(runs.find((run) => run.name === state.run)?.generates);
  const stepBar = h("span", {}), play = h("button", { type: "button", id: "play", onclick: start }, "Play");
  const stage = h("div", { class: "drawing" }), rows = h("tbody", {}), readout = spoken(), legend = h("p", { class: "legend" });
  const heading = h("tr", {});
  root.append(
    card(null,
      h("div", { class: "bar" },
        slider("Beam k", 1, 16, 1, state.beam, String, (beam) => set({ beam, step: 0, final: undefined })),
        slider("Length normalisation α", 0, 2, 0.1, state.alpha, (value) => value.toFixed(1), (alpha) => set({ alpha, final: undefined })),
        stepBar, play),
      h("p", { class: "soft" }, "A column for each step, the best candidate on top. Under each piece: the sum of log p so far."), legend, readout, stage),
    card("What the search found", h("div", { class: "table scrolls" }, h("table", {}, h("thead", {}, heading), rows))));
  let timer = 0, last = null, asked = "";

  /* How far the steps of a prompt, which have one candidate each, reach: what is chosen begins behind them. */
  function firstChoice(steps) {
    const step = steps.findIndex((found) => found.length > 1), svg = stage.querySelector("svg");
    return step > 1 ? (svg.getBoundingClientRect().width * (step - 1)) / steps.length : 0;
  }

  function start() {
    clearInterval(timer);
    if (!last) return;
    let step = 0;
    timer = setInterval(() => {
      step += 1;
      set({ step: step >= last.steps.length ? 0 : step });
      if (step >= last.steps.length) clearInterval(timer);
    }, 450);
  }

  function drawSteps(data) {
    const count = data.steps.length, now = state.step > 0 ? Math.min(state.step, count) : count;
    if (stepBar.dataset.key !== String(count)) {
      stepBar.dataset.key = String(count);
      stepBar.replaceChildren(slider("Step", 1, count, 1, now, (value) => `${value}/${count}`, (step) => { clearInterval(timer); set({ step: step === count ? 0 : step }); }));
    }
    const input = stepBar.querySelector("input");
    if (Number(input.value) !== now) {
      input.value = now;
      stepBar.querySelector("output").textContent = `${now}/${count}`;
    }
    return now;
  }

  function drawFinals(data, chosen) {
    const byRaw = [...data.finals].sort((a, b) => b.raw - a.raw);
    heading.replaceChildren(h("th", { class: "words" }, continues() ? "text" : "translation"), h("th", {}, "pieces"), h("th", {}, "log p"), h("th", {}, "rank by log p"),
      h("th", { title: "What the search ranks by" }, `score = log p ÷ pieces^${data.alpha.toFixed(1)}`), h("th", {}, "rank by score"));
    rows.replaceChildren(...data.finals.map((each, number) => {
      const raw = byRaw.indexOf(each) + 1;
      return choice(number === chosen, () => set({ final: String(number) }), compared(each.text, data.finals[0].text), String(each.length), fixed(each.raw, 3),
        raw === number + 1 ? String(raw) : h("mark", {}, String(raw)), fixed(each.normalised, 3), String(number + 1));
    }));
  }

  async function update() {
    const data = await ask("beam", { ...about(), beam: state.beam, alpha: state.alpha });
    last = data;
    const chosen = Math.min(Number(state.final ?? 0), data.finals.length - 1);
    const until = drawSteps(data);
    const before = stage.scrollLeft, question = JSON.stringify([state.run, state.text]);
    legend.replaceChildren(...legendOf(data.steps, "the hypothesis chosen below"));
    stage.replaceChildren(tree(data.steps, until, data.finals[chosen].path, { hover: (step, index) => { readout.textContent = candidate(data.steps, step, index); } }));
    stage.scrollLeft = question === asked ? before : firstChoice(data.steps);
    asked = question;
    drawFinals(data, chosen);
    return data.finals[0].text;
  }

  return { update, close: () => clearInterval(timer), picture: () => [{ title: `Beam ${state.beam}, α ${state.alpha.toFixed(1)}`, svg: stage.querySelector("svg") }] };
}
