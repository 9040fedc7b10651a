/* Whole model: a sentence on its way through encoder and decoder, stage by stage, with the numbers of each. */

import { ask } from "./api.js";
import { cellKind, cellTells, formulasOf, rowName, workedOut } from "./cell-steps.js";
import { cells } from "./cells.js";
import { bar, checkbox, field, select, slider } from "./controls.js";
import { fixed, h, percent, spaced } from "./dom.js";
import { about, target } from "./questions.js";
import { set, state } from "./state.js";

const FEW = 8, EVERY = 1600; // milliseconds between two stages of Play
const TELLS = {
  embedding: ["Embedding", "Every piece is looked up in a matrix: a row of numbers that was learnt for it.", ""],
  positions: ["Positions", "What says where a piece stands. It is added here, or, if nothing changes here, it enters the scores of attention.", ""],
  self_attention: ["Self-attention", "Every position looks at the others of its own side, and takes from them what it needs. Several heads look for different things; side by side they are projected to the model's width.", "heads side by side"],
  cross_attention: ["Cross-attention", "Every position of the decoder looks at the source: here the translation finds what it translates.", "heads side by side"],
  scored_attention: ["Context", "A score for every source position, a softmax, and the sum of the source's states with these weights.", ""],
  one_vector: ["One vector", "All that the decoder gets to know of the source: one vector, however long the sentence is. This is the bottleneck that attention removes.", ""],
  cell: ["Cell", "", ""],
  feedforward: ["Feed-forward", "At each position alone: widened, cut by the activation, narrowed again.", "inner layer"],
  norm: ["Residual and norm", "What a sublayer gives is added to what it got (the residual connection); the norm brings every row to mean 0 and a common scale.", "the sum"],
  layer: ["Layer", "What this layer hands to the next one.", ""],
  memory: ["Encoded source", "A vector for each source position, in the light of the whole sentence.", ""],
  bridge: ["First state", "The decoder begins with the final state of the encoder, projected and squashed by tanh.", ""],
  readout: ["Readout", "The decoder's state and the context, side by side, are projected and squashed by tanh.", "side by side"],
  out: ["Output", "One vector for each target position. Times the embedding of every word, it becomes the logits.", ""],
  ids: ["Numbers of the pieces", "A model that counts has no vectors: it reads each piece as its number in the vocabulary, and looks up how often others came after it. «Inside one head» shows which words vote.", ""],
  chances: ["log p of every piece", "No projection follows: the model gives log p itself.", ""],
  logits: ["Logits and softmax", "A score for every piece of the vocabulary; the softmax makes probabilities of them.", ""],
};
const layerOf = (module) => { const found = module.match(/layers\.(\d+)/); return found ? Number(found[1]) + 1 : null; };

export function create(root) {
  const stages = h("div", { class: "walk" }), caption = h("p", { "aria-live": "polite" }), title = h("h2", {}), body = h("div", { id: "stage" });
  const stepBar = h("span", {}), play = h("button", { type: "button", id: "play", onclick: toggle }, "Play"), choices = h("span", { class: "bar" });
  root.append(h("section", { class: "card" }, h("div", { class: "bar" }, stepBar, play, choices), h("div", { class: "columns walking" }, stages, h("div", {}, title, caption, body))));
  let data = null, timer = 0, latest = 0;

  const count = () => data.stages.length + 1; // and the logits
  const kindOf = (number) => {
    const kind = data.stages[number]?.kind ?? "logits";
    return data.projects ? kind : { memory: data.counts ? "ids" : kind, out: "chances" }[kind] ?? kind;
  };

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }

  function toggle() {
    if (timer) { stop(); return; }
    play.textContent = "Stop";
    let now = state.step >= count() - 1 ? -1 : state.step;
    const next = () => {
      now += 1;
      set({ step: now });
      if (now >= count() - 1) stop();
    };
    timer = setInterval(next, EVERY);
    next();
  }

  function name(number) {
    if (number === data.stages.length) return TELLS.logits[0];
    const { kind, module, backward, gates } = data.stages[number], layer = layerOf(module);
    if (kind === "cell") return `${cellKind(gates)} cell${twoWays(module) ? `, ${backward ? "right to left" : "left to right"}` : ""}`;
    return kind === "layer" ? `Layer ${layer} done` : TELLS[kindOf(number)][0];
  }

  const twoWays = (module) => data.stages.some((stage) => stage.module === module && stage.backward);

  /* Boxes in the order in which they run; those of one layer stand together. */
  function drawBoxes(now) {
    const groups = [];
    for (let number = 0; number < count(); number += 1) {
      const stage = data.stages[number], layer = stage && layerOf(stage.module);
      const key = stage ? `${stage.half} ${layer ?? ""}` : "decoder ";
      const head = stage ? `${stage.half === "encoder" ? "Encoder" : "Decoder"}${layer ? `, layer ${layer}` : ""}` : "";
      if (!groups.length || (groups.at(-1).key !== key)) groups.push({ key, head: head === groups.at(-1)?.head ? "" : head, boxes: [] });
      groups.at(-1).boxes.push(h("button", { type: "button", "aria-pressed": String(number === now), "data-stage": number, "aria-current": number === now ? "step" : null,
        class: number < now ? "done" : null, onclick: () => { stop(); set({ step: number }); } }, name(number)));
    }
    stages.replaceChildren(...groups.map((group) => h("div", { class: "layer", role: "group", "aria-label": group.head || "then" }, group.head && h("p", { class: "soft" }, group.head), group.boxes)));
    const box = stages.querySelector('[aria-current="step"]');
    if (box) stages.scrollTop = box.offsetTop - stages.offsetTop - stages.clientHeight / 2; // the page itself stays
  }

  function drawControls(now) {
    const key = `${count()} ${data.words.length}`;
    if (stepBar.dataset.key !== key) {
      stepBar.dataset.key = key;
      stepBar.replaceChildren(slider("Stage", 1, count(), 1, now + 1, (value) => `${value}/${count()}`, (value) => { stop(); set({ step: value - 1 }); }));
    }
    stepBar.querySelector("input").value = now + 1;
    stepBar.querySelector("output").textContent = `${now + 1}/${count()}`;
    choices.replaceChildren(field("Position", select(data.words.map((text, at) => [String(at), `${at + 1}  ${text}`]), String(data.position), (at) => set({ position: Number(at) }))),
      checkbox("All numbers", Boolean(state.all), (on) => set({ all: on ? "1" : undefined })));
  }

  const names = (width) => Array.from({ length: width }, (_, at) => String(at + 1));
  const part = (heading, rows, values, width, marked) => h("div", {}, h("p", { class: "soft" }, `${heading}${values[0].length < width ? `: the first ${values[0].length} of ${width} numbers` : ""}`),
    h("div", { class: "drawing" }, cells({ rows, columns: names(values[0].length), values, marked, label: heading })));

  /* The numbers of one stage; the row of the chosen position is framed. */
  async function drawStage(now, mine) {
    const tells = TELLS[kindOf(now)];
    title.textContent = `${now + 1}  ${name(now)}`;
    if (now === data.stages.length) {
      caption.textContent = `${tells[1]} After «${spaced(data.read)}»: the best of ${data.vocabulary}.`;
      body.replaceChildren(h("ol", { class: "others" }, data.logits.map((each) => h("li", { class: each.piece === data.written ? "own" : null },
        h("b", { dir: "auto" }, each.piece), bar(each.probability), h("span", { class: "number soft" }, percent(Math.log(each.probability))), h("span", { class: "number soft" }, `logit ${fixed(each.logit)}`)))),
      h("p", { class: "soft" }, `Written here: ${data.written}. `, data.position + 1 < data.words.length && h("button", { type: "button", onclick: () => set({ position: data.position + 1, step: 0 }) }, "Next word")),
      h("div", { class: "drawing" }, cells({ rows: data.logits.map((each) => each.piece), columns: ["logit"], values: data.logits.map((each) => [each.logit]), label: "logits" })));
      return;
    }
    let stage = data.stages[now];
    if (state.all && stage.width > FEW) stage = await ask("walk", { ...about(), target: await target(), position: data.position, stage: now });
    if (mine !== latest) return;
    const heads = stage.heads ? ` ${stage.heads} heads.` : "";
    const own = stage.half === "decoder" && stage.rows.length >= data.words.length ? stage.rows.length - data.words.length + data.position : null;
    if (stage.kind === "cell") { drawCell(stage, own); return; }
    caption.textContent = `${tells[1]}${heads}`;
    body.replaceChildren(h("div", { class: "side-by-side" }, stage.before && part(tells[2] || "before", stage.rows, stage.before, stage.before_width, own), part(stage.kind === "norm" ? "after the norm" : stage.before ? "given on" : "what it gives", stage.rows, stage.given, stage.width, own)),
      stage.heads ? h("p", {}, h("button", { type: "button", onclick: () => set({ view: "head", module: stage.module, head: 0, position: own === null ? 0 : data.position, step: 0 }) }, "Open one of its heads")) : "");
  }

  /* Gates and states of one position, and the states of all: a click on one of these opens its gates. */
  function drawCell(stage, own) {
    const { gates } = stage, row = own ?? Math.min(Number(state.place ?? 0), stage.rows.length - 1);
    const choose = own === null ? (at) => set({ place: at }) : (at) => set({ position: Math.max(0, at - (stage.rows.length - data.words.length)) });
    caption.textContent = cellTells(gates, stage.backward);
    const shown = Object.keys(gates), widest = gates.state[0].length;
    body.replaceChildren(h("h3", {}, "At ", h("b", {}, stage.rows[row]), widest < stage.width ? `: the first ${widest} of ${stage.width} numbers` : ""),
      h("div", { class: "drawing" }, cells({ rows: shown.map((name) => rowName(name, gates)), columns: names(widest), values: shown.map((name) => gates[name][row]), label: `gates at ${stage.rows[row]}` })),
      h("p", { class: "soft", id: "formulas" }, formulasOf(gates).map((line) => h("span", { class: "line" }, line))),
      ...workedOut(gates, row, 0).map((line, at) => h("p", { class: "soft number" }, `${at ? "" : "Number 1: "}${line}`)),
      h("h3", {}, "States at all positions; choose one to see its gates"),
      h("div", { class: "drawing" }, cells({ rows: stage.rows, columns: names(widest), values: gates.state, marked: row, choose, label: "states" })));
  }

  async function update() {
    const mine = (latest += 1), ids = await target();
    const position = Math.min(state.position, ids.length);
    const found = await ask("walk", { ...about(), target: ids, position });
    const pieces = (await ask("positions", { ...about(), target: ids })).pieces;
    if (mine !== latest) return undefined;
    data = { ...found, words: pieces.map((piece, at) => `${at ? pieces[at - 1].piece : "<s>"} › ${piece.piece}`) };
    const now = Math.min(Math.max(0, state.step), count() - 1);
    drawBoxes(now);
    drawControls(now);
    await drawStage(now, mine);
    return pieces.slice(0, -1).map((piece) => piece.piece).join("").replaceAll("▁", " ").trim();
  }

  return { update, close: stop, picture: () => [...body.querySelectorAll("svg")].map((svg, at) => ({ title: at ? "" : `${title.textContent}: ${caption.textContent}`, svg })) };
}
