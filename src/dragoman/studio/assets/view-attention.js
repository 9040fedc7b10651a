/* Attention: one layer as links or as a heat-map, or all heads at once; and heads switched off. */

import { ask, dropped } from "./api.js";
import { bipartite } from "./bipartite.js";
import { card, checkbox, empty, field, readout as spoken, segments, select, slider } from "./controls.js";
import { fixed, h, percent } from "./dom.js";
import { grid } from "./grid.js";
import { heatmap, peak, ramp } from "./heatmap.js";
import { about, attention, target, withWeights } from "./questions.js";
import { HEADS } from "./scale.js";
import { heads as headsOf, list, set, state, told, toldHeads } from "./state.js";
import { runOf } from "./views.js";
import { all, entropy, matrixOf, merges, rowTitle } from "./weights.js";

const KINDS = { encoder: "Encoder: source to source", decoder: "Decoder: target to target", cross: "Cross: target to source", joint: "Joint: target to all before", copy: "Copy: target to source" };
const LOOKED_AT = { encoder: "looked at", decoder: "looked at", cross: "source", joint: "source and target", copy: "source" };

const titlesOf = (kind, options) => [LOOKED_AT[kind], rowTitle(kind, options)];
const inWords = (data) => (state.words === undefined ? merges(data) : state.words !== "0");

export function create(root) {
  const controls = h("div", {}), headRow = h("div", { class: "bar" }), readout = spoken();
  const stage = h("div", { class: "drawing" }), effect = h("div", {}), largest = h("span", {}), nothing = h("div", {});
  const main = h("div", {}, h("section", { class: "card" }, controls, headRow, readout, stage), effect);
  root.append(nothing, main);
  let falls = null, fallsOf = "";

  function chosenOf(data) {
    const known = data.attentions.find((entry) => entry.module === state.module);
    const entry = known ?? data.attentions.find((each) => each.module === data.start.module);
    const own = list(state.heads).filter((head) => head < entry.heads);
    return { entry, heads: own.length ? own : known || data.start.head === null ? all(entry.heads) : [data.start.head], own };
  }

  const rowsOf = (data, entry) => state.rows ?? (entry.kind === "decoder" || entry.kind === "joint" || data.start.when_read ? "read" : "written");

  function drawControls(data, { entry }) {
    const kinds = [...new Set(data.attentions.map((each) => each.kind))];
    const layers = data.attentions.filter((each) => each.kind === entry.kind);
    const key = JSON.stringify([kinds, layers.length, entry.module, state.mode, inWords(data), rowsOf(data, entry), state.run]);
    if (controls.dataset.key === key) return;
    controls.dataset.key = key;
    const mode = state.mode ?? "links";
    controls.replaceChildren(h("div", { class: "bar" },
      segments("Drawing", [["links", "Links"], ["map", "Heat-map"], ["grid", "All heads"]], mode, (to) => set({ mode: to })),
      kinds.length > 1 && field("Kind", select(kinds.map((kind) => [kind, KINDS[kind]]), entry.kind,
        (kind) => set({ module: data.attentions.filter((each) => each.kind === kind).at(-1).module, heads: "", rows: undefined }))),
      kinds.length === 1 && h("span", { class: "soft" }, KINDS[kinds[0]]),
      mode !== "grid" && layers.length > 1 && field("Layer", select(layers.map((each) => [each.module, String(each.layer)]), entry.module,
        (module) => set({ module }))),
      entry.kind !== "encoder" && field("Row is", select([["written", "the word it writes"], ["read", "the word it has read"]], rowsOf(data, entry), (rows) => set({ rows }))),
      checkbox("Merge into words", inWords(data), (on) => set({ words: on ? "1" : "0" })),
      mode === "links" && slider("Hide below", 0, 0.9, 0.02, state.threshold, (value) => value.toFixed(2), (threshold) => set({ threshold })),
      mode === "map" && h("span", { class: "legend" }, "0", ramp(), largest)));
  }

  function drawHeads(data, { entry, heads, own }) {
    const masked = headsOf(state.masked), off = masked[entry.module] ?? [];
    if (entry.heads === 1 || state.mode === "grid") {
      const layers = data.attentions.filter((each) => each.kind === entry.kind);
      const layered = state.mode === "grid" && entry.maskable && layers.length > 1;
      headRow.replaceChildren(...(layered
        ? [field("Switch off in layer", select(layers.map((each) => [each.module, String(each.layer)]), entry.module, (module) => set({ module })))] : []), switches(entry, off, masked, layered));
      return;
    }
    const toggle = (head) => {
      const next = heads.length === entry.heads && !own.length ? [head]
        : own.includes(head) ? own.filter((each) => each !== head) : [...own, head].sort((a, b) => a - b);
      set({ module: entry.module, heads: told(next.length === entry.heads ? [] : next) });
    };
    headRow.replaceChildren(
      h("span", { class: "heads", role: "group", "aria-label": "Heads that are shown" }, h("span", {}, "Show head"), all(entry.heads).map((head) => {
        const dot = h("i", {});
        dot.style.background = HEADS[head % HEADS.length];
        return h("button", { type: "button", "aria-pressed": String(own.includes(head)), "data-show": head, "aria-label": `show head ${head + 1}`, onclick: () => toggle(head) }, state.mode === "map" ? null : dot, String(head + 1));
      }), h("button", { type: "button", "aria-pressed": String(!own.length), onclick: () => set({ heads: "" }) }, "mean")),
      switches(entry, off, masked));
  }

  function switches(entry, off, masked, layered = false) {
    if (!entry.maskable) return "";
    const flip = (head) => set({
      masked: toldHeads({ ...masked, [entry.module]: off.includes(head) ? off.filter((each) => each !== head) : [...off, head] }),
    });
    return h("span", { class: "heads", role: "group", "aria-label": "Heads that are switched off" }, h("span", {}, state.mode === "grid" ? (layered ? "head" : "Switch off head") : entry.heads === 1 ? "Switch it off" : "Switch off"),
      all(entry.heads).map((head) => h("button", {
        type: "button", class: "off", "aria-pressed": String(off.includes(head)), "data-off": head, title: "Run the model without this head", "aria-label": `switch off head ${head + 1}`, onclick: () => flip(head),
      }, String(head + 1))),
      Object.keys(masked).length > 0 && h("button", { type: "button", onclick: () => set({ masked: "" }) }, "all on"));
  }

  function draw(data, chosen) {
    const { entry, heads, own } = chosen;
    const options = { words: inWords(data), rows: rowsOf(data, entry) }, room = stage.clientWidth || 800;
    const mode = state.mode ?? "links";
    if (mode === "grid") {
      const entries = data.attentions.filter((each) => each.kind === entry.kind);
      const idle = () => [`Click a head to see it alone. Below each: what takes more than half of its weight, if one thing does. `, h("button", { type: "button", id: "weigh", disabled: falls !== null, onclick: weigh }, "Weigh all heads"),
        falls ? " Bars: by how much log p changes without a head." : ""];
      readout.replaceChildren(...idle());
      stage.replaceChildren(grid(data, entries, {
        room, ...options, chosen: { module: entry.module, heads: own }, masked: headsOf(state.masked), falls,
        choose: (each, head) => set({ module: each.module, heads: told([head]), mode: "map" }),
        hover: (each, head, matrix, r, c) => readout.replaceChildren(`Layer ${each.layer}, head ${head + 1}: `, h("b", {}, matrix.rows[r]), " looks at ", h("b", {}, matrix.columns[c]),
          ` ${matrix.values[r * matrix.columns.length + c].toFixed(2)} `, ...idle().slice(1)),
      }));
      return;
    }
    const mean = matrixOf(data, entry, heads, options);
    const about = `${entry.kind} attention, layer ${entry.layer}, ${heads.length === 1 ? `head ${heads[0] + 1}` : own.length ? `heads ${heads.map((each) => each + 1).join(", ")}` : "mean of heads"}`;
    const idle = () => readout.replaceChildren(`${about}. Entropy ${entropy(mean).toFixed(2)} nats.`);
    idle();
    if (mode === "map") {
      const most = peak(mean);
      largest.textContent = String(most);
      stage.replaceChildren(heatmap(mean, { room, most, label: about, titles: titlesOf(entry.kind, options).reverse(), hover: (r, c) => (r === null ? idle() : readout.replaceChildren(
        h("b", {}, mean.rows[r]), " looks at ", h("b", {}, mean.columns[c]),
        mean.hidden[r * mean.columns.length + c] ? ": hidden, it lies ahead" : ` ${mean.values[r * mean.columns.length + c].toFixed(3)}`)) }));
      return;
    }
    const matrices = own.length ? own.map((head) => ({ head, matrix: matrixOf(data, entry, [head], options) })) : [{ head: null, matrix: mean }];
    stage.replaceChildren(bipartite(matrices, { room, threshold: state.threshold, label: about, titles: titlesOf(entry.kind, options), hover: (side, number, found) => {
      if (side === null) { idle(); return; }
      const [own, other] = side === "rows" ? [mean.rows, mean.columns] : [mean.columns, mean.rows];
      readout.replaceChildren(h("b", {}, own[number]), side === "rows" ? " looks at " : " is looked at by ",
        ...found.slice(0, 4).flatMap(([at, weight], i) => [i ? ", " : "", h("b", {}, other[at]), ` ${weight.toFixed(2)}`]));
    } }));
  }

  async function weigh() {
    const asked = JSON.stringify([state.run, state.text, state.target]);
    try {
      falls = (await ask("heads", { ...about(), target: await target() })).falls;
      fallsOf = asked;
      set({});
    } catch (error) {
      if (!dropped(error)) throw error;
    }
  }

  /* The heads that are off, in whatever layer is shown; a click switches one on again. */
  function chipsOf(data) {
    const masked = headsOf(state.masked);
    return Object.entries(masked).flatMap(([module, off]) => {
      const entry = data.attentions.find((each) => each.module === module);
      return entry ? off.map((head) => h("button", { type: "button", "data-on": `${module}~${head}`, title: "switch it on again",
        onclick: () => set({ masked: toldHeads({ ...masked, [module]: off.filter((each) => each !== head) }) }) }, `${entry.kind}, layer ${entry.layer}, head ${head + 1} ×`)) : [];
    });
  }

  function drawEffect(data) {
    if (!data.effect) { effect.replaceChildren(); return; }
    const { before, after, anew, changed, scores } = data.effect;
    const pieces = (scores.length ? data.sides.written.pieces : []).map((piece, at) => ({ piece, at, fall: (data.scores[at] ?? -99) - (scores[at] ?? -99) }));
    const worst = [...pieces].sort((a, b) => b.fall - a.fall).filter((each) => each.fall > 0.01).slice(0, 6);
    effect.replaceChildren(card("Without these heads", h("p", { class: "bar" }, chipsOf(data)),
      h("p", {}, "log p of this text ", h("b", { class: "number" }, fixed(before, 3)), " → ", h("b", { class: "number" }, fixed(after, 3)),
        ` (${after <= before ? "falls" : "rises"} by ${fixed(Math.abs(before - after), 3)})`),
      anew && h("p", {}, changed ? "It now gives: " : "It still gives: ", h("b", { id: "anew", dir: "auto" }, anew.text || "(nothing)")),
      scores.length > 0 && worst.length > 0 && h("div", { class: "table scrolls" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { class: "words" }, "piece that suffers most"), h("th", {}, "with"), h("th", {}, "without"))),
        h("tbody", {}, worst.map((each) => h("tr", {}, h("td", { class: "words" }, each.piece), h("td", {}, percent(data.scores[each.at])), h("td", {}, percent(scores[each.at])))))))));
  }

  async function update() {
    if (falls && fallsOf !== JSON.stringify([state.run, state.text, state.target])) falls = null;
    let data = await attention();
    main.hidden = !data.start;
    nothing.replaceChildren(...(data.start ? [] : [empty("This model has no attention", `${runOf(state.run).generates ? "It carries one state from word to word" : "It hands one vector from source to target"}; «Whole model» shows it.`)]));
    if (!data.start) return data.text;
    data = await withWeights(data, chosenOf(data).entry.module, (kind) => attention({ kind }));
    const chosen = chosenOf(data);
    drawControls(data, chosen);
    drawHeads(data, chosen);
    draw(data, chosen);
    drawEffect(data);
    return data.text;
  }

  return { update, picture: () => [{ title: readout.textContent, svg: stage.querySelector("svg") }] };
}
