/* Words at both sides, joined by lines as strong as the weights: what is looked at on the left, who looks on the right.

   Lines of one head and about one strength are a single path, so that thousands of them stay quick. */

import { drawing, fitted, operable, s, textWidth, told } from "./dom.js";
import { HEADS, palette } from "./scale.js";

const BUCKETS = 8;
const SIDE = 170;

/* `matrices` are those of the heads that are shown, [{head, matrix}], all with the same labels. */
export function bipartite(matrices, { room = 700, threshold = 0.1, hover = () => {}, label = "links", titles = ["", ""] } = {}) {
  const { rows, columns } = matrices[0].matrix;
  const colours = palette();
  const count = Math.max(rows.length, columns.length);
  const high = count > 90 ? 13 : count > 45 ? 17 : count > 16 ? 23 : 30;
  const font = high < 15 ? 10.5 : high < 20 ? 12 : 14;
  const widest = (texts) => Math.min(SIDE, Math.max(40, ...texts.map((text) => textWidth(text, font))));
  const [left, right] = [widest(columns) + 14, Math.max(widest(rows), textWidth(titles[1], 11)) + 14];
  const width = Math.max(260, Math.min(room, left + right + 980)), top = 30;
  const height = top + count * high + 10;
  // Sides of about one length stand in the middle; one that is much shorter is spread out.
  const pitch = (own) => (count > 1.3 * own.length ? (count * high) / own.length : high);
  const offset = (own) => top + (count * high - own.length * pitch(own)) / 2;
  const [fromY, toY, fromPitch, toPitch] = [offset(columns), offset(rows), pitch(columns), pitch(rows)];
  const x = [left, width - right];
  const y = { columns: (c) => fromY + (c + 0.5) * fromPitch, rows: (r) => toY + (r + 0.5) * toPitch };
  const colourOf = (head) => (matrices.length > 1 || head !== null ? HEADS[(head ?? 0) % HEADS.length] : colours.accent);
  const lines = s("g", { fill: "none", "pointer-events": "none" });
  const bars = s("g", { "pointer-events": "none" });
  const texts = { columns: [], rows: [] };

  for (const [side, own, at, anchor] of [["columns", columns, left - 8, "end"], ["rows", rows, width - right + 8, "start"]]) {
    own.forEach((text, number) => {
      texts[side].push(s("text", {
        x: at, y: y[side](number), "text-anchor": anchor, "dominant-baseline": "central", "font-size": font, fill: colours.text,
        "pointer-events": "none",
      }, fitted(text, SIDE, font)));
    });
  }

  function curve(c, r) {
    const [a, b] = [y.columns(c).toFixed(1), y.rows(r).toFixed(1)];
    const middle = ((x[0] + x[1]) / 2).toFixed(1);
    return `M${x[0].toFixed(1)} ${a}C${middle} ${a} ${middle} ${b} ${x[1].toFixed(1)} ${b}`;
  }

  /* All lines, or those of one token. */
  function draw(side = null, number = null) {
    lines.replaceChildren();
    const least = side === null ? threshold : Math.min(threshold, 0.02);
    for (const { head, matrix } of matrices) {
      const paths = Array.from({ length: BUCKETS }, () => []);
      for (let r = 0; r < rows.length; r += 1) {
        if (side === "rows" && r !== number) continue;
        for (let c = 0; c < columns.length; c += 1) {
          if (side === "columns" && c !== number) continue;
          const weight = matrix.values[r * columns.length + c];
          if (weight >= least && weight > 0) paths[Math.min(BUCKETS - 1, Math.floor(weight * BUCKETS))].push(curve(c, r));
        }
      }
      paths.forEach((own, bucket) => own.length && lines.append(s("path", {
        d: own.join(""), stroke: colourOf(head), "stroke-opacity": (0.22 + (0.72 * bucket) / (BUCKETS - 1)).toFixed(2),
        "stroke-width": (0.8 + (2.6 * bucket) / (BUCKETS - 1)).toFixed(2),
      })));
    }
  }

  /* Beside the tokens of the other side: how much, the mean over the heads that are shown. */
  function show(side, number) {
    draw(side, number);
    bars.replaceChildren();
    for (const own of ["columns", "rows"]) texts[own].forEach((text, i) => {
      text.setAttribute("fill", side === null || own !== side || i === number ? colours.text : colours.soft);
      text.setAttribute("font-weight", own === side && i === number ? "700" : "400");
    });
    const found = [];
    if (side !== null) {
      const other = side === "rows" ? "columns" : "rows";
      texts[other].forEach((text, i) => {
        const [r, c] = side === "rows" ? [number, i] : [i, number];
        const weight = matrices.reduce((sum, { matrix }) => sum + matrix.values[r * columns.length + c], 0) / matrices.length;
        found.push([i, weight]);
        text.setAttribute("fill-opacity", (0.35 + 0.65 * Math.min(1, 2 * weight)).toFixed(2));
        const span = 46 * weight;
        bars.append(s("rect", { x: other === "columns" ? x[0] : x[1] - span, y: y[other](i) - high / 2 + 2, width: span,
          height: high - 4, fill: colours.accent, "fill-opacity": 0.28, rx: 2 }));
      });
    } else for (const own of ["columns", "rows"]) texts[own].forEach((text) => text.removeAttribute("fill-opacity"));
    hover(side, number, found.sort((a, b) => b[1] - a[1]));
  }

  const title = (text, at, anchor) => s("text", { x: at, y: 14, "text-anchor": anchor, fill: colours.soft, "font-size": 11 }, text);
  const svg = drawing(width, height, label, told(`${rows.length} words look at ${columns.length}; arrow keys go through them`), bars, lines, texts.columns, texts.rows,
    title(titles[0], Math.max(left - 8, textWidth(titles[0], 11)), "end"), title(titles[1], width - right + 8, "start"));
  let now = [null, null];
  const move = (side, number) => { if (side !== now[0] || number !== now[1]) { now = [side, number]; show(side, number); } };

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), zoom = width / box.width;
    const [px, py] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    const side = px < x[0] + 20 ? "columns" : px > x[1] - 20 ? "rows" : null;
    const number = side && Math.floor((py - (side === "columns" ? fromY : toY)) / (side === "columns" ? fromPitch : toPitch));
    const there = side && number >= 0 && number < texts[side].length;
    move(there ? side : null, there ? number : null);
  });
  svg.addEventListener("pointerleave", () => move(null, null));
  operable(svg, (event) => {
    const side = { ArrowLeft: "columns", ArrowRight: "rows" }[event.key] ?? now[0] ?? "rows";
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key] ?? 0;
    if (event.key === "Escape") move(null, null);
    else if (event.key.startsWith("Arrow")) {
      move(side, Math.min(texts[side].length - 1, Math.max(0, (now[0] === side ? now[1] : step ? -step : 0) + step)));
      event.preventDefault();
    }
  });
  draw();
  return svg;
}
