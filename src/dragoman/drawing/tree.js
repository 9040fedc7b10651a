/* The tree of a beam search: a column for each step, its candidates from best to worst. */

import { drawing, fitted, fixed, h, operable, s, textWidth, told } from "./dom.js";
import { palette } from "./scale.js";

const HIGH = 36, BOX = 28, MOST = 110, APART = 46, TOP = 26;

const FATES = { kept: "kept", ended: "ended", cut: "ended by the length limit", pruned: "pruned", stopped: "live when the search was done" };

/* How each candidate is drawn; colours mean the same in every picture of a search. */
function looks() {
  const colours = palette();
  const plain = { stroke: colours.soft, fill: colours.surface, dash: null };
  const ended = { stroke: colours.good, fill: colours.goodSoft, dash: null };
  return { chosen: { stroke: colours.accent, fill: colours.accentSoft, dash: null }, kept: plain, ended, cut: ended, stopped: { ...plain, fill: colours.sunk },
    pruned: { stroke: colours.line, fill: colours.surface, dash: "3 3" } };
}

const summary = (step, found) => `step ${step + 1}: ${found.piece}, log p ${fixed(found.score, 3)}, sum ${fixed(found.sum, 3)}, ${FATES[found.fate] ?? found.fate}`;

/* `until` is the last step that is shown; `path` the candidates of the hypothesis in colour. `hover(step, index)` is told
   of the candidate that the arrow keys have come to, or the pointer: left to its parent, right to what came of it. */
export function tree(steps, until, path, { hover = () => {} } = {}) {
  const colours = palette(), look = looks();
  const widths = steps.map((step) => Math.min(MOST, Math.max(44, ...step.map((found) => textWidth(found.piece) + 16))));
  const lefts = [];
  let x = 4;
  for (const width of widths) { lefts.push(x); x += width + APART; }
  const height = TOP + Math.max(...steps.map((step) => step.length)) * HIGH;
  const y = (index) => TOP + index * HIGH + BOX / 2;
  const lines = [], boxes = [], mark = s("g", { "pointer-events": "none" });
  steps.slice(0, until).forEach((step, number) => {
    const middle = lefts[number] + widths[number] / 2;
    boxes.push(s("text", { x: middle, y: 12, "text-anchor": "middle", "font-size": 11, fill: colours.soft }, String(number + 1)));
    step.forEach((found, index) => {
      const chosen = path[number] === index, dead = found.fate === "pruned";
      const live = found.fate === "kept" && number === until - 1 && until < steps.length;
      const own = chosen ? look.chosen : live ? look.stopped : look[found.fate] ?? look.kept;
      if (number) {
        const from = [lefts[number - 1] + widths[number - 1], y(found.parent)], to = [lefts[number], y(index)], half = (from[0] + to[0]) / 2;
        lines.push(s("path", { d: `M${from[0]} ${from[1]}C${half} ${from[1]} ${half} ${to[1]} ${to[0]} ${to[1]}`, fill: "none",
          stroke: own.stroke, "stroke-width": chosen ? 2.4 : 1.1, "data-fate": found.fate }));
      }
      boxes.push(s("g", { "data-fate": found.fate, "data-chosen": chosen ? "1" : null, onpointerenter: () => hover(number, index) },
        s("rect", { x: lefts[number], y: y(index) - BOX / 2, width: widths[number], height: BOX, rx: 6, stroke: own.stroke, "stroke-width": chosen ? 2 : 1,
          fill: own.fill, "stroke-dasharray": own.dash }),
        s("text", { x: middle, y: y(index) - 4, "text-anchor": "middle", "dominant-baseline": "central",
          fill: dead ? colours.soft : colours.text, "font-weight": chosen ? 650 : 400 }, fitted(found.piece, MOST - 12)),
        s("text", { x: middle, y: y(index) + 8, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 9, fill: colours.soft }, fixed(found.sum)),
        s("title", {}, summary(number, found))));
    });
  });
  const best = path.slice(0, until).map((index, number) => steps[number][index].piece);
  const svg = drawing(x - APART + 6, height, "beam search", told(`${until} steps. The hypothesis in colour: ${best.join(" ")}`), lines, boxes, mark);
  let now = null;

  function go(number, index) {
    now = [number, index];
    mark.replaceChildren(s("rect", { x: lefts[number] - 3, y: y(index) - BOX / 2 - 3, width: widths[number] + 6, height: BOX + 6, rx: 8, fill: "none",
      stroke: colours.text, "stroke-width": 2 }));
    const box = svg.parentElement;
    if (box && box.scrollWidth > box.clientWidth) box.scrollLeft = lefts[number] - box.clientWidth / 2;
    hover(number, index);
  }

  return operable(svg, (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (!now) { go(0, path[0] ?? 0); return; }
    const [number, index] = now;
    if (event.key === "ArrowLeft" && number) go(number - 1, steps[number][index].parent);
    const child = event.key === "ArrowRight" && number + 1 < until
      ? (path[number] === index && path[number + 1] !== undefined ? path[number + 1] : steps[number + 1].findIndex((found) => found.parent === index)) : -1;
    if (child >= 0) go(number + 1, child);
    const next = index + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? 0);
    if (next !== index && next >= 0 && next < steps[number].length) go(number, next);
  });
}

/* What the colours mean: only of what is in the tree. `name` is what the hypothesis in colour is called. */
export function legend(steps, name) {
  const look = looks(), there = new Set(steps.flat().map((found) => found.fate));
  return [["chosen", name], ...Object.entries(FATES)].filter(([fate]) => fate === "chosen" || there.has(fate)).map(([fate, text]) => {
    const box = h("i", {});
    box.style.background = look[fate].fill;
    box.style.borderColor = look[fate].stroke;
    box.style.borderStyle = look[fate].dash ? "dashed" : "solid";
    return h("span", {}, box, text);
  });
}

export const candidate = (steps, number, index) => summary(number, steps[number][index]);
