/* Compare: two runs, or two checkpoints of one, on the same sentence. */

import { ask } from "./api.js";
import { card, field, readout as spoken, select } from "./controls.js";
import { fixed, h } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { chips, differences } from "./pieces.js";
import { set, state } from "./state.js";
import { all, matrixOf, merges, rowTitle } from "./weights.js";

export function create(root, runs) {
  const sides = [0, 1].map(() => ({ name: "", choice: h("div", { class: "bar" }), text: h("p", { dir: "auto" }), score: h("p", { class: "soft number" }),
    pieces: h("div", { class: "drawing" }), readout: spoken(), map: h("div", { class: "drawing" }) }));
  const options = runs.filter((run) => !run.reads).flatMap((run) => [[run.name, `${run.name} (${run.kind})`],
    ...run.checkpoints.filter((name) => name !== run.checkpoint).map((name) => [`${run.name}@${name}`, `${run.name} at ${name}`])]);
  root.append(h("p", { class: "soft" }, "Words and pieces that the other side does not write: ", h("mark", {}, "coloured"), " in the text, in a blue frame below it. The less a model expected a piece, the more orange."),
    h("div", { class: "columns" }, sides.map((side) => h("div", {}, card(null, side.choice, side.text, side.score, side.pieces), card("Alignment", side.readout, side.map)))));

  const known = (key) => options.some(([name]) => name === key);
  function chosen() {
    const first = known(state.left) ? state.left : state.run;
    const languages = (key) => String((runs.find((run) => run.name === key.split("@")[0]) ?? {}).languages);
    const others = options.map(([name]) => name).filter((name) => name !== first);
    const other = others.find((name) => languages(name) === languages(first)) ?? others[0] ?? first; // of the same languages
    return [first, known(state.right) ? state.right : other];
  }

  function about(key) {
    const run = runs.find((each) => key === each.name) ?? runs.find((each) => key.startsWith(`${each.name}@`));
    return { run: run.name, text: state.text, ...(key === run.name ? {} : { checkpoint: key.slice(run.name.length + 1) }) };
  }

  async function answer(key) {
    const asked = about(key);
    const { beam, alpha } = asked.run === state.run ? state : runs.find((run) => run.name === asked.run); // each with its own search
    const found = await ask("translate", { ...asked, beam, n_best: 1, alpha, head: [] });
    const data = await ask("attention", { ...asked, target: found.hypotheses[0].ids, masked: {}, beam, alpha });
    return { best: found.hypotheses[0], pieces: found.pieces, data };
  }

  function drawMap(side, { data }) {
    if (!data.start) {
      side.readout.textContent = "This model has no attention: it hands one vector from source to target.";
      side.map.replaceChildren();
      return;
    }
    const own = data.attentions.find((entry) => entry.module === data.start.module);
    const options = { words: merges(data), rows: data.start.when_read ? "read" : "written" };
    const matrix = matrixOf(data, own, data.start.head === null ? all(own.heads) : [data.start.head], options);
    const tell = (r, c) => { side.readout.replaceChildren(...(r === null ? [`${own.kind} attention, layer ${own.layer}`]
      : [h("b", {}, matrix.rows[r]), " looked at ", h("b", {}, matrix.columns[c]), ` ${matrix.values[r * matrix.columns.length + c].toFixed(2)}`])); };
    tell(null, null);
    side.map.replaceChildren(heatmap(matrix, { room: side.map.clientWidth || 500, label: "alignment", hover: tell, titles: [rowTitle(own.kind, options), "looked at"] }));
  }

  async function update() {
    const keys = chosen();
    sides.forEach((side, number) => {
      side.name = keys[number];
      if (side.choice.dataset.key === keys[number]) return;
      side.choice.dataset.key = keys[number];
      side.choice.replaceChildren(field(number ? "Right" : "Left", select(options, keys[number], (to) => set({ [number ? "right" : "left"]: to }))));
    });
    const found = await Promise.all(keys.map((key) => answer(key)));
    const words = found.map(({ best }) => best.text.split(/\s+/));
    const other = differences(...words), pieces = differences(...found.map((each) => each.pieces.map((piece) => piece.piece)));
    sides.forEach((side, number) => {
      const { best } = found[number];
      side.text.replaceChildren(...words[number].flatMap((word, at) => [other[number].has(at) ? h("mark", {}, word) : word, " "]));
      side.text.className = "big";
      side.score.textContent = `log p ${fixed(best.log_prob, 3)} · ${best.length} pieces · score ${fixed(best.score, 3)}`;
      side.pieces.replaceChildren(chips(found[number].pieces, Math.max(260, side.pieces.clientWidth - 4), pieces[number]));
      drawMap(side, found[number]);
    });
    return found.map(({ best }) => best.text).join("  |  ");
  }

  return {
    update,
    picture: () => sides.flatMap((side) => [{ title: `${side.name}: ${side.text.textContent}`, svg: side.pieces.querySelector("svg") }, { title: side.readout.textContent, svg: side.map.querySelector("svg") }]),
  };
}
