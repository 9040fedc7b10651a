/* Pieces with their probabilities, and what else could stand in the place of one. */

import { bar } from "./controls.js";
import { fixed, h, percent } from "./dom.js";
import { surprise } from "./scale.js";

/* A button for each piece; `note` is a further class for some of them. */
export function pieceButtons(found, chosen, choose, note = () => "") {
  return found.map((piece, number) => {
    const kind = note(number, piece);
    const button = h("button", {
      class: `piece ${kind}`.trim(), type: "button", "aria-pressed": String(number === chosen), "data-at": number,
      title: piece.gap ? "a gap" : `log p ${fixed(piece.score, 3)}`, onclick: () => choose(number),
    }, piece.gap ? "▢" : piece.piece, h("small", {}, piece.gap ? "?" : percent(piece.score)));
    if (!piece.gap && kind !== "given") button.style.background = surprise(piece.score);
    return button;
  });
}

/* What could stand there, with a button for each: `act(option)`. The piece itself is among them, last if it is not one
   of the best; `ends` are those that cannot be taken. */
export function options(chosen, { verb, why, act, ends = () => false }) {
  const all = chosen.gap || chosen.others.some((other) => other.id === chosen.id) ? chosen.others : [...chosen.others, chosen];
  return h("ol", { class: "others" }, all.map((other) => {
    const own = !chosen.gap && other.id === chosen.id;
    return h("li", { class: own ? "own" : null },
      h("b", { title: other.piece, dir: "auto" }, other.piece), bar(Math.exp(other.score ?? -99)), h("span", { class: "number soft" }, percent(other.score)),
      h("button", {
        type: "button", disabled: own || ends(other), "data-force": other.id, "aria-label": `${verb} ${other.piece}`,
        title: ends(other) ? "The sentence would end here" : why, onclick: () => act(other),
      }, verb));
  }));
}
