/* Translate: the best translations, the probability of each piece, and what else could have stood in its place. */

import { options, pieceButtons } from "./alternatives.js";
import { ask } from "./api.js";
import { card, checkbox, choice, readout as spoken, slider } from "./controls.js";
import { fixed, h } from "./dom.js";
import { heatmap, peak, ramp } from "./heatmap.js";
import { chips, compared } from "./pieces.js";
import { about, attention, translation, withWeights } from "./questions.js";
import { list, set, state, told } from "./state.js";
import { all, matrixOf, merges, rowTitle } from "./weights.js";

export function create(root, runs, wrote) {
  const own = runs.find((run) => run.name === state.run) ?? runs[0], goes = own.generates;
  const pieces = h("div", { class: "pieces", role: "group", "aria-label": "Pieces", dir: "auto" });
  const others = h("div", {});
  const forced = h("p", {});
  const rows = h("tbody", {}), note = h("p", { class: "soft" });
  const map = h("div", { class: "drawing" });
  const readout = spoken();
  const largest = h("span", {}), mapCard = card(goes ? "Attention" : "Alignment", readout, map, h("p", { class: "soft" }, "0 ", ramp(), " ", largest));
  const input = h("input", { type: "text", dir: "auto", "aria-label": "Begin with", maxlength: 200 });
  const begin = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); beginWith(input.value); } }, h("span", { class: "soft" }, "Begin with"), input, h("button", { type: "submit" }, "Continue from it"));
  begin.hidden = goes; // a prompt is what it begins with
  const sampling = goes ? h("div", { class: "bar" },
    checkbox("Sample", Boolean(state.draw), (on) => set({ draw: on ? "1" : undefined, target: "", at: undefined })),
    slider("Temperature", 0.1, 2, 0.1, Number(state.temperature ?? 1), (value) => value.toFixed(1), (temperature) => set({ temperature, draw: state.draw ?? "1", target: "" })),
    slider("Top k", 0, 50, 1, Number(state.topk ?? 0), (value) => (value ? String(value) : "all"), (topk) => set({ topk, draw: state.draw ?? "1", target: "" })),
    slider("Top p", 0.05, 1, 0.05, Number(state.topp ?? 1), (value) => value.toFixed(2), (topp) => set({ topp, draw: state.draw ?? "1", target: "" })),
    h("button", { type: "button", onclick: () => set({ draw: String(Number(state.draw ?? 0) + 1), target: "", at: undefined }) }, "Sample again")) : "";
  let shown = null;

  /* Text that the translation is to begin with, as the pieces it has. */
  async function beginWith(text) {
    const { head } = text.trim() ? await ask("translate", { ...about(), beam: state.beam, n_best: 1, alpha: state.alpha, head: [], begin: text }) : { head: [] };
    set({ forced: told(head), target: "", at: undefined });
  }

  root.append(
    h("div", { class: "columns wide-left" },
      h("div", {},
        card("Piece by piece", h("p", { class: "soft" }, `The less the model expected a piece, the stronger its colour. Click one for its alternatives.${goes ? " The pieces of your prompt are grey." : ""}`), forced, pieces, others),
        card(goes ? "Best continuations" : "Best translations", begin, sampling, h("div", { class: "bar" },
          slider("Beam", 1, 16, 1, state.beam, String, (beam) => set({ beam, target: "" })),
          slider("Length normalisation α", 0, 2, 0.1, state.alpha, (value) => value.toFixed(1), (alpha) => set({ alpha, target: "" }))), h("div", { class: "table scrolls" }, h("table", {},
          h("thead", {}, h("tr", {}, h("th", { class: "words" }, goes ? "text" : "translation"), h("th", {}, "score"), h("th", {}, "log p"), h("th", {}, "pieces"))), rows)), note)),
      mapCard));

  function drawPieces(found) {
    const prompt = shown.prompt;
    const least = found.reduce((worst, piece, at) => ((piece.score ?? -99) < (found[worst].score ?? -99) ? at : worst), 0);
    const at = Math.min(state.at === undefined ? least : Number(state.at), found.length - 1);
    pieces.replaceChildren(...pieceButtons(found, at, (number) => set({ at: number }), (number) => (number < list(state.forced).length ? "forced" : number < prompt ? "given" : "")));
    drawOthers(found, at);
  }

  function drawOthers(found, at) {
    const chosen = found[at];
    others.replaceChildren(h("h3", {}, "Instead of ", h("b", {}, chosen.piece)), options(chosen, {
      verb: "force", why: "Translate anew from here, with this piece", ends: (other) => other.piece === "</s>",
      act: (other) => set({ forced: told([...found.slice(0, at).map((piece) => piece.id), other.id]), target: "", at: undefined }),
    }));
  }

  function drawForced(answer) {
    const count = list(state.forced).length;
    forced.replaceChildren(...(count ? [
      h("span", { class: "soft" }, `The first ${count === 1 ? "piece is" : `${count} pieces are`} forced. `),
      h("button", { type: "button", id: "free", onclick: () => set({ forced: "", target: "" }) }, "Let the model choose"),
    ] : []));
    rows.replaceChildren(...answer.hypotheses.map((each, number) => choice(state.target ? told(each.ids) === state.target : number === 0,
      () => set({ target: number ? told(each.ids) : "", at: undefined }), compared(each.text, answer.hypotheses[0].text), fixed(each.score, 3), fixed(each.log_prob, 3), each.reason === "stop" ? String(each.length) : `${each.length}, not ended`)));
    note.replaceChildren(...[
      answer.hypotheses.length > 1 && [h("mark", {}, "Coloured"), " words are not in the first one. "],
      answer.hypotheses.some((each) => each.reason !== "stop") && "What has not ended was cut at the greatest length; it stands behind what has ended, whatever its score.",
    ].flat().filter(Boolean));
  }

  async function drawMap() {
    const data = await attention({ masked: {} });
    if (!data.start) {
      mapCard.hidden = true;
      return;
    }
    mapCard.hidden = false;
    const whole = await withWeights(data, data.start.module, (kind) => attention({ kind, masked: {} }));
    const own = whole.attentions.find((entry) => entry.module === data.start.module);
    const heads = data.start.head === null ? all(own.heads) : [data.start.head];
    const options = { words: merges(data), rows: data.start.when_read ? "read" : "written" }, matrix = matrixOf(whole, own, heads, options);
    const tell = (r, c) => readout.replaceChildren(...(r === null
      ? [own.kind === "cross" ? "What each word looked at in the source." : `${own.kind} attention, layer ${own.layer}.`]
      : [h("b", {}, matrix.rows[r]), " looked at ", h("b", {}, matrix.columns[c]), ` ${matrix.values[r * matrix.columns.length + c].toFixed(2)}`]));
    tell(null, null);
    const most = peak(matrix);
    largest.textContent = String(most);
    map.replaceChildren(heatmap(matrix, { most, room: map.clientWidth || 360, label: "alignment", hover: tell, titles: [rowTitle(own.kind, options), "looked at"] }));
  }

  async function update() {
    const answer = await translation();
    let found = answer.pieces;
    if (state.target) found = (await ask("positions", { ...about(), target: list(state.target) })).pieces;
    shown = { found, prompt: goes ? answer.prompt : 0, text: state.target ? answer.hypotheses.find((each) => told(each.ids) === state.target)?.text ?? "" : answer.hypotheses[0].text };
    wrote(shown.text);
    drawForced(answer);
    drawPieces(found);
    await drawMap();
    return shown.text;
  }

  return {
    update,
    picture: () => (shown ? [{ title: "", svg: chips(shown.found) }, { title: "Alignment", svg: mapCard.hidden ? null : map.querySelector("svg") }] : []),
  };
}
