/* Picture: an image of the validation set, what the model says of it, and the patches that it looked at. */

import { pieceButtons } from "./alternatives.js";
import { ask } from "./api.js";
import { bar, card, field, moved, ofAll, readout as spoken, select, slider } from "./controls.js";
import { h } from "./dom.js";
import { heatmap, peak, ramp } from "./heatmap.js";
import { patches } from "./patches.js";
import { set, state } from "./state.js";

const SIDE = 340;

export function create(root) {
  const controls = h("div", { class: "bar" }), name = h("p", { class: "soft" }), said = h("div", { class: "pieces", role: "group", "aria-label": "What it says", dir: "auto" });
  const labels = h("ol", { class: "others" }), expected = h("p", {}), readout = spoken();
  const image = h("div", { class: "drawing" }), seen = h("div", { class: "drawing" }), map = h("div", { class: "drawing" }), most = h("span", {});
  root.append(card(null, controls, name, said, labels, expected),
    card("Where it looked", readout, h("div", { class: "side-by-side" }, h("div", {}, h("h3", {}, "Image"), image), h("div", {}, h("h3", {}, "Veiled where it did not look"), seen),
      h("div", {}, h("h3", {}, "Weight of every patch"), map, h("p", { class: "legend" }, "0 ", ramp(), " ", most)))));
  let data = null;

  const numbered = (count, first) => [["", first], ...Array.from({ length: count }, (_, at) => [String(at + 1), String(at + 1)])];

  function drawControls(now) {
    const captions = !Object.keys(data.labels).length, key = [state.run, data.all, state.layer, state.part].join();
    if (controls.dataset.key === key) { moved(controls, now + 1, ofAll(data.all)); return; }
    controls.dataset.key = key;
    controls.replaceChildren(slider("Example", 1, data.all, 1, now + 1, ofAll(data.all), (value) => set({ example: value - 1, at: undefined })),
      field("Layer", select(numbered(data.layers, captions ? "mean of all" : "through all (rollout)"), state.layer ?? "", (layer) => set({ layer }))),
      field("Head", select(numbered(data.heads, "mean of all"), state.part ?? "", (part) => set({ part }))));
  }

  function drawSaid(at) {
    const ranked = Object.entries(data.labels).sort((a, b) => b[1] - a[1]).slice(0, 10);
    const text = data.said.map((each) => each.piece).filter((piece) => piece !== "</s>").join("").replaceAll("▁", " ").trim();
    said.hidden = ranked.length > 0;
    if (!ranked.length) said.replaceChildren(...pieceButtons(data.said, at, (number) => set({ at: number })));
    labels.replaceChildren(...ranked.map(([label, share], number) => h("li", { class: number ? null : "own" }, h("b", { dir: "auto" }, label), bar(share), h("span", { class: "number soft" }, `${(100 * share).toFixed(1)}%`))));
    const right = text === data.expected;
    expected.replaceChildren("The data say: ", h("b", { dir: "auto" }, data.expected), h("span", { class: right ? "right" : "wrong" }, right ? " (as the model)" : " (the model says something else)"));
  }

  function drawMaps(at) {
    const weights = data.maps[at], rows = weights.map((_, r) => String(r + 1)), columns = weights[0].map((_, c) => String(c + 1));
    const matrix = { rows, columns, values: Float32Array.from(weights.flat()), hidden: new Uint8Array(rows.length * columns.length) }, scale = peak(matrix);
    const idle = `${Object.keys(data.labels).length ? "For the label " : "While it wrote "}«${data.said[at].piece.replaceAll("▁", "␣")}».`;
    const hover = (r, c) => {
      readout.textContent = r === null ? idle : `Patch in row ${r + 1}, column ${c + 1}: ${weights[r][c].toFixed(3)}`;
      seen.replaceChildren(patches(data, weights, r === null ? null : [r, c], "image, veiled where it was not looked at"));
    };
    image.replaceChildren(patches(data, null, null, "image"));
    hover(null, null);
    most.textContent = String(scale);
    map.replaceChildren(heatmap(matrix, { room: SIDE + 60, most: scale, label: "weight of every patch", titles: ["row", "column"], hover }));
  }

  async function update() {
    const now = Math.max(0, Number(state.example ?? 0)), asked = { run: state.run, ...(state.checkpoint ? { checkpoint: state.checkpoint } : {}), example: now };
    data = await ask("picture", { ...asked, ...(state.layer ? { layer: Number(state.layer) } : {}), ...(state.part ? { head: Number(state.part) } : {}) });
    const at = Math.min(Number(state.at ?? 0), data.said.length - 1);
    name.textContent = data.name;
    drawControls(now);
    drawSaid(at);
    drawMaps(at);
    return undefined;
  }

  return { update, picture: () => [[image, "Image"], [seen, "Veiled where it did not look"], [map, "Weight of every patch"]].map(([place, title]) => ({ title, svg: place.querySelector("svg") })) };
}
