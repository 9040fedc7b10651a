/* Inside one head: six steps from what a token reads to what the head writes, with the model's own numbers. */

import { ask } from "./api.js";
import { cells } from "./cells.js";
import { checkbox, empty, field, select } from "./controls.js";
import { h } from "./dom.js";
import { about, attention, target } from "./questions.js";
import { set, state } from "./state.js";
import { runOf } from "./views.js";

const FEW = 8;
const KINDS = { encoder: "Encoder", decoder: "Decoder", cross: "Cross", joint: "Joint", copy: "Copy" };

export function create(root) {
  const controls = h("div", { class: "bar" }), body = h("div", {}), nothing = h("div", {});
  const main = h("section", { class: "card" }, controls, body);
  root.append(nothing, main);
  let parts = [];

  function step(number, title, text, ...drawings) {
    parts.push(...drawings.filter(Boolean).map((svg, i) => ({ title: i ? "" : `${number}  ${title}`, svg })));
    return h("div", { class: "step", "data-step": number }, h("b", {}, number), h("div", {}, h("h2", {}, title), h("p", {}, text), h("div", { class: "side-by-side" }, drawings.filter(Boolean).map((svg) => h("div", { class: "drawing" }, svg)))));
  }

  const some = (row) => (state.all ? row : row.slice(0, FEW));
  const names = (count) => Array.from({ length: state.all ? count : Math.min(FEW, count) }, (_, at) => String(at + 1));
  const more = (count) => (state.all || count <= FEW ? "" : ` The first ${FEW} of ${count} numbers are shown.`);

  /* One number for each token. */
  const column = (found, name, values, masked, options = {}) =>
    cells({ rows: found.columns, columns: [name], values: values.map((value) => [value]), masked: (r) => masked(r), ...options });

  function drawControls(data, entry, head, position, found) {
    controls.replaceChildren(...[
      field("Attention", select(data.attentions.map((each) => [each.module, `${KINDS[each.kind]}, layer ${each.layer}`]), entry.module, (module) => set({ module, head: 0, position: 0 }))),
      entry.heads > 1 && field("Head", select(Array.from({ length: entry.heads }, (_, at) => [String(at), String(at + 1)]), String(head), (to) => set({ head: Number(to) }))),
      field("Token", select(found.rows.map((text, at) => [String(at), `${at + 1}  ${text}`]), String(position), (to) => set({ position: Number(to) }))),
      checkbox("All numbers", Boolean(state.all), (on) => set({ all: on ? "1" : undefined })),
    ].filter(Boolean));
  }

  function drawSteps(found, position) {
    const token = found.rows[position], seen = found.visible[position], masked = (c) => !seen[c];
    const width = found.values?.[0].length ?? 0;
    parts = [];
    const children = [], row = [];
    let last = 3; // the steps of a Transformer have their numbers; others are counted
    if (found.inputs) {
      const { embedded, position: place, read } = found.inputs;
      const rows = [["embedding", embedded], ["position", place], [found.layer > 1 || found.kind === "cross" ? "after the layers before" : "input x", read]].filter(([, row]) => row);
      const flat = place && place.every((value) => value === 0) ? " Positions are not added here; they enter the scores." : "";
      children.push(step("0", `What «${token}» brings`, `${embedded ? "Its embedding, what is added for its place, and what this attention reads." : "What this attention reads."}${flat}${more(read.length)}`,
        cells({ rows: rows.map(([name]) => name), columns: names(read.length), values: rows.map(([, row]) => some(row)) })));
      children.push(step("1", "Query, keys and values", `Three projections: a query of «${token}», a key and a value of each token that it may look at.${more(found.query.length)}`,
        cells({ rows: ["q"], columns: names(found.query.length), values: [some(found.query)] }),
        cells({ rows: found.columns.map((text) => `k  ${text}`), columns: names(found.query.length), values: found.keys.map(some), masked: (r) => masked(r) }),
        cells({ rows: found.columns.map((text) => `v  ${text}`), columns: names(width), values: found.values.map(some), masked: (r) => masked(r) })));
      const scale = Math.round(1 / found.scale ** 2), scaled = found.scale !== 1;
      row.push(step("2", "q · k", "The dot product of the query with each key.", column(found, "q · k", found.scores, masked)));
      row.push(step("3", scaled ? `÷ √${scale}` : "No scaling", `${scaled ? `By ${(1 / found.scale).toFixed(2)}.` : "The scores as they are."}${found.bias ? " With the relative position." : ""} Masked is −∞.`,
        column(found, "scaled", found.scaled, masked)));
    } else {
      children.push(h("p", { class: "soft" }, found.why));
      last = found.score ? drawScore(found, token, masked, children, row) : 0;
    }
    const next = () => String(last += 1);
    row.push(step(next(), width ? "Softmax" : "Weights", "Positive, and in sum 1; masked is 0.", column(found, "weight", found.weights, masked, { most: 1, digits: 3 })));
    children.push(h("div", { class: "side-by-side" }, row));
    if (width) children.push(step(next(), "Weight × value", `Each value, as far as it is looked at.${more(width)}`,
      cells({ rows: found.columns, columns: names(width), values: found.weighted.map(some), masked: (r) => masked(r) })));
    if (width) children.push(step(next(), "Sum", `What this head hands on for «${token}»${found.output ? ", and what becomes of it in the model's width, through the output projection" : ""}.${more(width)}`,
      cells({ rows: ["sum"], columns: names(width), values: [some(found.summed)] }),
      found.output && cells({ rows: ["output"], columns: names(found.output.length), values: [some(found.output)] })));
    children.push(step("all", "All tokens of this head", "The weights for every token; click a row for its steps. Hatched: masked.",
      cells({ rows: found.rows, columns: found.columns, values: found.matrix, most: 1, digits: 2, masked: (r, c) => !found.visible[r][c], marked: position, choose: (r) => set({ position: r }) })));
    body.replaceChildren(...children);
  }

  /* A score of a recurrent or convolutional decoder: its query, its keys, and how they become one number each. Gives the
     number of the last step. */
  function drawScore(found, token, masked, children, row) {
    const { formula, query, asked, keys, inner, scores } = found.score;
    children.push(step("1", `Query${keys ? " and keys" : ""}`, `The state of the decoder at «${token}»${asked ? ", and what it is compared as" : ""}${keys ? "; a key for each source position" : ""}.${more(query.length)}`,
      cells({ rows: asked ? ["q", "W₁ q"] : ["q"], columns: names(query.length), values: (asked ? [query, asked.concat(Array(Math.max(0, query.length - asked.length)).fill(0))] : [query]).map(some), label: "query" }),
      keys && cells({ rows: found.columns.map((text) => `k  ${text}`), columns: names(keys[0].length), values: keys.map(some), masked: (r) => masked(r), label: "keys" })));
    if (inner) children.push(step("2", "tanh of their sum", `Both are added and squashed to −1 … 1.${more(inner[0].length)}`,
      cells({ rows: found.columns, columns: names(inner[0].length), values: inner.map(some), masked: (r) => masked(r), most: 1, label: "tanh of the sum" })));
    const last = inner ? 3 : 2;
    row.push(step(String(last), formula, inner ? "Weighted with v and added up: one score for each position." : "One score for each position.", column(found, "score", scores, masked)));
    return last;
  }

  async function update() {
    const data = await attention({ masked: {} });
    main.hidden = !data.start;
    nothing.replaceChildren(...(data.start ? [] : [empty("This model has no attention", `${runOf(state.run).generates ? "It carries one state from word to word" : "It hands one vector from source to target"}; «Whole model» shows it.`)]));
    if (!data.start) return data.text;
    const entry = data.attentions.find((each) => each.module === state.module) ?? data.attentions[0];
    const rows = entry.kind === "encoder" ? data.sides.src.pieces.length : data.sides.read.pieces.length;
    const head = Math.min(state.head, entry.heads - 1), position = Math.min(state.position, rows - 1);
    const found = await ask("head", { ...about(), target: await target(), module: entry.module, head, position });
    drawControls(data, entry, head, position, found);
    drawSteps(found, position);
    return data.text;
  }

  return { update, picture: () => parts };
}
