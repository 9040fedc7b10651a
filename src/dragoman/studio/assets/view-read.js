/* Read: what a network makes of a text. Words can be taken out: what would fill the gap, or what changes without them? */

import { options, pieceButtons } from "./alternatives.js";
import { ask, dropped } from "./api.js";
import { bar, card } from "./controls.js";
import { fixed, h, percent } from "./dom.js";
import { filled, hasGaps, words } from "./gaps.js";
import { chips } from "./pieces.js";
import { about } from "./questions.js";
import { palette, signedColour, textOnSigned } from "./scale.js";
import { list, set, state, told } from "./state.js";
import { runOf } from "./views.js";

const HINTS = {
  guess: "Click a word to take it out, and see what the network puts there.",
  fill: "Click a word to take it out, and see what the model writes in its place.",
  label: "Click a word to leave it out, and see what changes. Blue words speak for the answer, orange ones against it.",
  tag: "Each word with its label. Click one for the probabilities of all labels.",
};
const share3 = (value) => fixed(value, Math.abs(value) < 0.1 ? 3 : 2);
const share = (value) => `${(100 * value).toFixed(1)}%`;

export function create(root) {
  const hint = h("p", { class: "soft" }), row = h("div", { class: "pieces", role: "group", "aria-label": "Words", dir: "auto" });
  const contributions = h("div", { class: "pieces", dir: "auto" });
  const wordCard = card("Words", hint, row, contributions), answer = h("div", {}), answerCard = card(null, answer);
  const pieceHint = h("p", { class: "soft" }), pieces = h("div", { class: "pieces", role: "group", "aria-label": "Pieces", dir: "auto" });
  const others = h("div", {}), lens = h("div", {}), pieceCard = card("Piece by piece", pieceHint, pieces, others, lens);
  root.append(wordCard, answerCard, pieceCard);
  let shown = [];

  function toggle(number) {
    const gaps = list(state.gaps);
    set({ gaps: told(gaps.includes(number) ? gaps.filter((each) => each !== number) : [...gaps, number].sort((a, b) => a - b)), at: undefined });
  }

  /* Words that can be taken out. Those of a classifier are coloured by what they contribute. */
  function drawWords(mode, units) {
    const gaps = list(state.gaps), own = words(state.text), matched = units.filter((unit) => !/^<\/?s>$/.test(unit.text));
    hint.textContent = HINTS[mode];
    row.replaceChildren(...own.map((word, number) => {
      const unit = matched.length === own.length ? matched[number] : undefined;
      const out = gaps.includes(number) || word.gap;
      const button = h("button", { type: "button", class: "piece", "aria-pressed": String(out), "data-word": number, disabled: word.gap,
        onclick: () => toggle(number) },
      out && mode !== "label" ? "▢▢▢" : word.text, h("span", { class: "spoken" }, out ? ` put back ${word.text}` : " take out"),
      (out || unit) && h("small", {}, out ? (mode === "label" ? "left out" : "gap") : share3(unit.share)));
      return [button, unit, out];
    }).map(([button, unit, out]) => paint(button, unit && !out ? unit.share : null, units)));
    // The tokenizer may see other words than these: then what it sees is shown by itself.
    const apart = units.length && matched.length !== own.length;
    contributions.replaceChildren(...(apart ? units.map((unit) => paint(h("span", { class: "piece chip" }, unit.text, h("small", {}, share3(unit.share))), unit.share, units)) : []));
    if (gaps.length) row.append(h("button", { type: "button", onclick: () => set({ gaps: "", at: undefined }) }, "put all back"));
  }

  function paint(button, value, units) {
    if (value === null) return button;
    const most = Math.max(1e-6, ...units.map((unit) => Math.abs(unit.share)));
    button.style.background = signedColour(value / most);
    button.style.color = textOnSigned(value / most);
    button.querySelector("small").style.color = "inherit";
    return button;
  }

  /* What fills the gaps. */
  function drawFillings(all) {
    answerCard.hidden = false;
    const fillings = distinct(all);
    const most = Math.max(...fillings.map((each) => each.probability), 1e-9);
    answer.replaceChildren(h("h2", {}, "What fills the gap"), h("ol", { class: "others" }, fillings.map((each) => h("li", {},
      h("b", { dir: "auto", title: each.text }, each.gaps.length ? each.gaps.map((gap) => gap || "(nothing)").join(" … ") : each.text), bar(each.gaps.length ? each.probability : each.probability / most),
      h("span", { class: "number soft" }, percent(Math.log(each.probability))),
      h("button", { type: "button", "aria-label": `take it: ${each.gaps.join(" ") || each.text}`, onclick: () => set({ text: each.gaps.length ? filled(about().text, each.gaps) : each.text, gaps: "", at: undefined }) }, "take it")))),
    h("p", { class: "soft" }, fillings.some((each) => !each.gaps.length)
      ? "This model writes the whole text anew and may change more than the gap; the probability is that of the text."
      : "The probability is that of everything that fills the gaps."));
    return fillings[0].text;
  }

  /* Different pieces can spell one text: each text once, the most probable first. */
  function distinct(fillings) {
    const ranked = [...fillings].sort((a, b) => b.probability - a.probability);
    return ranked.filter((each, at) => ranked.findIndex((other) => other.text === each.text) === at);
  }

  /* What a classifier says, and what it would say without the words that were left out. */
  function drawLabels(found, without) {
    answerCard.hidden = false;
    const ranked = Object.entries(found.labels).sort((a, b) => b[1] - a[1]);
    if (!ranked.length) {
      answer.replaceChildren(h("h2", {}, "Answer"), h("p", { class: "big", dir: "auto" }, typeof found.value === "number" ? String(Number(found.value.toFixed(3))) : found.value || "(no answer)"),
        found.confidence === null ? "" : h("p", { class: "soft" }, `probability ${share(found.confidence)}`),
        without ? h("p", {}, "Without the words left out: ", h("b", {}, typeof without.value === "number" ? String(Number(without.value.toFixed(3))) : without.value || "(no answer)")) : "");
      return;
    }
    answer.replaceChildren(h("h2", {}, "Answer"), h("ol", { class: "others labels" }, ranked.map(([name, value]) => h("li", { class: name === found.value ? "own" : null },
      h("b", { dir: "auto", title: name }, name), h("span", {}, bar(value), without && bar(without.labels[name] ?? 0, palette().warn)),
      h("span", { class: "number soft" }, without ? `${share(value)} → ${share(without.labels[name] ?? 0)}` : share(value))))),
    h("p", { class: "soft" }, without ? "Blue: the whole text. Orange: without the words left out." : found.units.length ? "The numbers below the words are integrated gradients: what each adds to log p of the answer." : ""));
  }

  function drawTags(found) {
    answerCard.hidden = false;
    hint.textContent = HINTS.tag;
    const at = state.at === undefined ? found.words.findIndex((word) => word.label !== "O") : Number(state.at);
    row.replaceChildren(...found.words.map((word, number) => {
      const button = h("button", { type: "button", class: "piece", "aria-pressed": String(number === at), "data-word": number, onclick: () => set({ at: number }) },
        word.text, h("small", {}, `${word.label} ${word.labels[word.label] === undefined ? "" : share(word.labels[word.label])}`));
      if (word.label !== "O") button.style.background = palette().accentSoft;
      return button;
    }));
    const chosen = found.words[Math.max(0, at)];
    const ranked = Object.entries(chosen.labels).sort((a, b) => b[1] - a[1]).slice(0, 8);
    answer.replaceChildren(h("h2", {}, "Labels of ", h("b", { dir: "auto" }, chosen.text)), h("ol", { class: "others labels" }, ranked.map(([name, value]) => h("li", { class: name === chosen.label ? "own" : null },
      h("b", {}, name), bar(value), h("span", { class: "number soft" }, share(value))))));
  }

  /* Every piece, guessed from the others; or, by a language model, from those before it. */
  function drawPieces(found) {
    pieceCard.hidden = !found.pieces.length;
    if (pieceCard.hidden) return -1;
    const gap = found.pieces.findIndex((piece) => piece.gap);
    const least = found.pieces.reduce((worst, piece, at) => ((piece.score ?? 0) < (found.pieces[worst].score ?? 0) ? at : worst), 0);
    const at = Math.min(state.at === undefined ? (gap >= 0 ? gap : least) : Number(state.at), found.pieces.length - 1), chosen = found.pieces[at];
    pieceHint.textContent = found.mode === "left" ? "The probability of each piece given those before it. The less it was expected, the stronger its colour."
      : "Each piece is hidden in turn: its probability given all others. The less it was expected, the stronger its colour.";
    pieces.replaceChildren(...pieceButtons(found.pieces, at, (number) => set({ at: number })));
    const sides = chosen.left === undefined || chosen.gap ? "" : h("p", { class: "soft number" }, `from the left ${percent(chosen.left)}, from the right ${percent(chosen.right)}, from both ${percent(chosen.score)}`);
    others.replaceChildren(h("h3", {}, chosen.gap ? "In the gap" : "Instead of ", chosen.gap ? "" : h("b", {}, chosen.piece)), sides,
      options(chosen, { verb: "take", why: "Put it into the text", act: (other) => take(found.pieces, at, other) }));
    return at;
  }

  /* Another piece into the text: the pieces are joined as they are written, ▁ for a space. */
  function take(all, at, other) {
    set({ text: all.map((piece, number) => (number === at ? other.piece : piece.gap ? "▁<mask>" : piece.piece)).join("").replaceAll("▁", " ").trim(), gaps: "", at });
  }

  /* The logit lens: what would be guessed if the network ended after each layer. */
  async function drawLens(found, at) {
    lens.replaceChildren();
    if (found.mode !== "guess" || at < 0 || found.pieces[at].left !== undefined) return;
    const { layers } = await ask("layers", { ...about(), place: at });
    lens.replaceChildren(h("h3", {}, "Layer by layer: what it would guess if it ended there"), h("div", { class: "table scrolls" }, h("table", { id: "lens" },
      h("thead", {}, h("tr", {}, h("th", { class: "name" }, "after"), layers[0].map((_, rank) => h("th", {}, rank ? String(rank + 1) : "best guess")))),
      h("tbody", {}, layers.map((best, number) => h("tr", {}, h("th", { class: "name", scope: "row" }, number ? `layer ${number}` : "embedding"),
        best.map((option) => h("td", {}, h("span", { dir: "auto" }, option.piece), " ", h("span", { class: "soft" }, percent(option.score))))))))));
  }

  async function update() {
    const asked = about(), gone = hasGaps(asked.text);
    // A classifier is asked about the whole text first; the others read the text with its gaps.
    const found = await ask("read", runOf(state.run).task ? { ...asked, text: state.text } : asked);
    const tag = found.task === "tag";
    wordCard.hidden = found.mode === "left";
    answerCard.hidden = true;
    shown = found.pieces.filter((piece) => !piece.gap);
    if (tag) drawTags(found);
    else if (found.mode !== "left") drawWords(found.mode, found.units ?? []);
    const at = drawPieces(found);
    if (found.mode === "label" && !tag) drawLabels(found, gone ? await ask("read", asked) : null);
    let filledText = "";
    if ((found.mode === "guess" || found.mode === "fill") && gone) filledText = drawFillings((await ask("fill", asked)).fillings);
    try {
      await drawLens(found, at);
    } catch (error) {
      if (dropped(error)) throw error; // a network that has no such layers has no lens
    }
    return found.mode === "label" ? String(Array.isArray(found.value) ? found.value.join(" ") : found.value) : filledText;
  }

  return { update, picture: () => [{ title: "", svg: shown.length ? chips(shown) : null }] };
}
