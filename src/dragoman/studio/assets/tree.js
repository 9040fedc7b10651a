/* The tree of a beam search: a column for each step, its candidates from best to worst. */

import { drawing, fitted, fixed, s, textWidth } from "./dom.js";
import { HEADS, palette } from "./scale.js";

const HIGH = 36, BOX = 28, MOST = 110;

/* `until` is the last step that is shown; `path` the candidates of the hypothesis in colour. */
export function tree(steps, until, path) {
  const colours = palette(), ended = HEADS[2];
  const widths = steps.map((step) => Math.min(MOST, Math.max(44, ...step.map((found) => textWidth(found.piece) + 16))));
  const lefts = [];
  let x = 4;
  for (const width of widths) { lefts.push(x); x += width + 46; }
  const height = 26 + Math.max(...steps.map((step) => step.length)) * HIGH;
  const y = (index) => 26 + index * HIGH + BOX / 2;
  const lines = [], boxes = [];
  steps.slice(0, until).forEach((step, number) => {
    boxes.push(s("text", { x: lefts[number] + widths[number] / 2, y: 12, "text-anchor": "middle", "font-size": 11, fill: colours.soft }, String(number + 1)));
    step.forEach((found, index) => {
      const chosen = path[number] === index, dead = found.fate === "pruned";
      const live = !dead && number === until - 1 && until < steps.length;
      const colour = chosen ? colours.accent : found.fate === "ended" || found.fate === "cut" ? ended : dead ? colours.line : colours.soft;
      if (number) {
        const from = [lefts[number - 1] + widths[number - 1], y(found.parent)], to = [lefts[number], y(index)], middle = (from[0] + to[0]) / 2;
        lines.push(s("path", { d: `M${from[0]} ${from[1]}C${middle} ${from[1]} ${middle} ${to[1]} ${to[0]} ${to[1]}`, fill: "none",
          stroke: colour, "stroke-width": chosen ? 2.4 : 1.1, "data-fate": found.fate }));
      }
      boxes.push(s("g", { "data-fate": found.fate, "data-chosen": chosen ? "1" : null },
        s("rect", { x: lefts[number], y: y(index) - BOX / 2, width: widths[number], height: BOX, rx: 6, stroke: colour, "stroke-width": chosen ? 2 : 1,
          fill: chosen ? colours.accentSoft : live ? colours.sunk : colours.surface, "stroke-dasharray": dead ? "3 3" : null }),
        s("text", { x: lefts[number] + widths[number] / 2, y: y(index) - 4, "text-anchor": "middle", "dominant-baseline": "central",
          fill: dead ? colours.soft : colours.text, "fill-opacity": dead ? 0.75 : 1, "font-weight": chosen ? 650 : 400 }, fitted(found.piece, MOST - 12)),
        s("text", { x: lefts[number] + widths[number] / 2, y: y(index) + 8, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 9,
          fill: colours.soft }, fixed(found.sum)),
        s("title", {}, `${found.piece}: log p ${fixed(found.score, 3)}, sum ${fixed(found.sum, 3)}, ${found.fate}`)));
    });
  });
  return drawing(x - 40, height, "beam search", lines, boxes);
}
