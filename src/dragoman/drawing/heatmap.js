/* A heat-map: the cells are one small picture inside the drawing, so that 40,000 of them are as quick as 40. */

import { drawing, fitted, operable, s, textWidth, told } from "./dom.js";
import { palette, textOnWeight, weightTable } from "./scale.js";

const LABEL = 150; // pixels that a label may take
const WIDEST = 56, LEAST = 9, NUMBERED = 30;
let patterns = 0;

/* Cells as a data: address, a pixel each; hidden ones are left out. Colours reach from 0 to `most`. */
export function picture(matrix, most = 1) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const packed = weightTable().map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  for (let at = 0; at < pixels.length; at += 1) if (!matrix.hidden[at]) pixels[at] = packed[Math.min(255, Math.round((255 * matrix.values[at]) / most))];
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/* The picture at its place; below it, seen where cells are hidden, a ground that is hatched. */
export function painted(matrix, x, y, width, height, most = 1) {
  const colours = palette(), some = matrix.hidden.includes(1), hatch = `lines-${(patterns += 1)}`;
  return [
    some && s("defs", {}, s("pattern", { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("rect", { width: 5, height: 5, fill: colours.sunk }), s("rect", { width: 1, height: 5, fill: colours.soft, "fill-opacity": 0.4 }))),
    some && s("rect", { x, y, width, height, fill: `url(#${hatch})` }),
    s("image", { x, y, width, height, href: picture(matrix, most), preserveAspectRatio: "none", "image-rendering": "pixelated" }),
  ];
}

/* Fine lines between cells that are large enough. */
function lines(rows, columns, left, top, size, high, colour) {
  const [width, height] = [columns * size, rows * high];
  const across = Array.from({ length: rows - 1 }, (_, r) => `M${left} ${top + (r + 1) * high - 0.5}h${width}`);
  const down = Array.from({ length: columns - 1 }, (_, c) => `M${left + (c + 1) * size - 0.5} ${top}v${height}`);
  return s("path", { d: [...across, ...down].join(""), stroke: colour, "stroke-width": 1, fill: "none", "pointer-events": "none" });
}

/* A weight as a cell shows it: .07 */
export const brief = (value) => (value >= 0.995 ? "1" : value < 0.005 ? "0" : value.toFixed(2).slice(1));

function numbers(matrix, left, top, size, high, most) {
  const columns = matrix.columns.length;
  return s("g", { "pointer-events": "none", "font-size": 10.5, "text-anchor": "middle" }, Array.from(matrix.values, (value, at) => (
    matrix.hidden[at] || value < 0.05 ? null : s("text", { x: left + ((at % columns) + 0.5) * size, y: top + (Math.floor(at / columns) + 0.5) * high,
      "dominant-baseline": "central", fill: textOnWeight(value / most) }, brief(value)))));
}

/* In words: what each row looks at most. */
function inWords(matrix) {
  const columns = matrix.columns.length;
  return matrix.rows.slice(0, 60).map((name, r) => {
    let best = 0;
    for (let c = 1; c < columns; c += 1) if (matrix.values[r * columns + c] > matrix.values[r * columns + best]) best = c;
    return `${name}: ${matrix.columns[best]} ${brief(matrix.values[r * columns + best])}`;
  }).join("; ");
}

/* `room` is the width that there is; `titles` are those of rows and columns. Told of every cell under the pointer or
   the arrow keys: `hover(row, column)`, with null where there is none; and of clicks: `choose(row, column)`. */
export function heatmap(matrix, { room = 900, label: about = "weights", hover = () => {}, choose = null, most = 1, titles = ["", ""] } = {}) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const colours = palette();
  const left = Math.ceil(Math.min(LABEL, Math.max(30, textWidth(titles[0], 11), ...matrix.rows.map((text) => textWidth(text))))) + 12;
  const size = Math.max(columns > 120 ? 5 : LEAST, Math.min(WIDEST, Math.floor((room - left - 36) / columns)));
  const high = size < 15 && rows <= 70 ? 15 : Math.min(size, 40); // few rows beside many columns keep their labels
  const named = size >= LEAST, rowsNamed = high >= LEAST;
  const letters = Math.min(12, size + 1), upright = size < 20; // narrow columns have upright labels: they would overlap
  const longest = named ? Math.min(LABEL, Math.max(24, ...matrix.columns.map((text) => textWidth(text, letters)))) : 0;
  const top = Math.ceil(longest * (upright ? 1 : 0.8)) + 24;
  const lean = !named ? 60 : upright ? 8 : 0.62 * Math.min(LABEL, textWidth(matrix.columns.at(-1) ?? ""));
  const width = left + columns * size + Math.max(20, lean), height = top + rows * high + 8;
  const mark = s("g", { "pointer-events": "none" });
  const rowTexts = matrix.rows.map((text, r) => rowsNamed && s("text", {
    x: left - 8, y: top + (r + 0.5) * high, "text-anchor": "end", "dominant-baseline": "central", fill: colours.soft,
    "font-size": high >= 11 ? 12 : 9,
  }, fitted(text, LABEL)));
  const columnTexts = matrix.columns.map((text, c) => named && s("text", {
    transform: `translate(${left + (c + 0.5) * size} ${top - 8}) rotate(${upright ? -90 : -52})`, fill: colours.soft, "dominant-baseline": "central",
    "font-size": letters,
  }, fitted(text, LABEL, letters)));
  const svg = drawing(width, height, about, told(inWords(matrix)),
    titles[0] && s("text", { x: left - 8, y: top - 6, "text-anchor": "end", "font-size": 11, "font-style": "italic", fill: colours.soft }, titles[0]),
    titles[1] && s("text", { x: left, y: 10, "font-size": 11, "font-style": "italic", fill: colours.soft }, titles[1]),
    rowTexts, columnTexts,
    painted(matrix, left, top, columns * size, rows * high, most), size >= LEAST && lines(rows, columns, left, top, size, high, colours.surface),
    size >= NUMBERED && rows * columns <= 900 && numbers(matrix, left, top, size, high, most), mark);
  let now = null;

  function show(r, c) {
    now = r === null ? null : [r, c];
    mark.replaceChildren();
    rowTexts.forEach((text, i) => text && text.setAttribute("fill", i === r ? colours.text : colours.soft));
    columnTexts.forEach((text, i) => text && text.setAttribute("fill", i === c ? colours.text : colours.soft));
    if (now) {
      const frame = { fill: "none", stroke: colours.accent, "stroke-width": 1.5 };
      mark.append(
        s("rect", { x: left - 1, y: top + r * high - 1, width: columns * size + 1, height: high + 1, ...frame, "stroke-opacity": 0.45 }),
        s("rect", { x: left + c * size - 1, y: top - 1, width: size + 1, height: rows * high + 1, ...frame, "stroke-opacity": 0.45 }),
        s("rect", { x: left + c * size - 1, y: top + r * high - 1, width: size + 1, height: high + 1, ...frame, "stroke-width": 2 }));
      if (!named) mark.append(label(matrix.columns[c], Math.min(left + c * size, width - 134), top - 8, "start"));
      if (!rowsNamed) mark.append(label(matrix.rows[r], left - 8, top + (r + 0.5) * high + 4, "end"));
    }
    hover(r, c);
  }

  /* Where cells are too small for labels, those of the cell under the pointer are shown. */
  function label(text, x, y, anchor) {
    return s("text", { x, y, fill: colours.text, "text-anchor": anchor }, fitted(text, 130));
  }

  function place(event) {
    const box = svg.getBoundingClientRect(), zoom = width / box.width;
    const c = Math.floor(((event.clientX - box.left) * zoom - left) / size);
    const r = Math.floor(((event.clientY - box.top) * zoom - top) / high);
    return r >= 0 && r < rows && c >= 0 && c < columns ? [r, c] : [null, null];
  }

  svg.addEventListener("pointermove", (event) => {
    const [r, c] = place(event);
    if (now ? now[0] !== r || now[1] !== c : r !== null) show(r, c);
  });
  svg.addEventListener("pointerleave", () => show(null, null));
  svg.addEventListener("click", (event) => { const [r, c] = place(event); if (choose && r !== null) choose(r, c); });
  return operable(svg, (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step) {
      const [r, c] = now ?? [0, -step[1]];
      show(Math.min(rows - 1, Math.max(0, r + (now ? step[0] : 0))), Math.min(columns - 1, Math.max(0, c + step[1])));
      event.preventDefault();
    }
    if (event.key === "Enter" && now && choose) choose(...now);
  });
}

/* Where no weight is large, as in long sentences, colours reach to the largest. */
export const peak = (...matrices) => Math.min(1, Math.max(0.05, ...matrices.map((matrix) => Math.ceil(20 * matrix.values.reduce((a, b) => Math.max(a, b), 0)) / 20)));

/* From nothing to the largest, for the eye. */
export function ramp() {
  const colours = weightTable(), steps = 24;
  return s("svg", { width: 120, height: 10, role: "img", "aria-label": "scale, from least to most" },
    Array.from({ length: steps }, (_, at) => {
      const [r, g, b] = colours[Math.round((255 * at) / (steps - 1))];
      return s("rect", { x: (at * 120) / steps, y: 0, width: 120 / steps + 0.5, height: 10, fill: `rgb(${r},${g},${b})` });
    }));
}
