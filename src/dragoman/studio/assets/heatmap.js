/* A heat-map: the cells are one small picture inside the drawing, so that 40,000 of them are as quick as 40. */

import { drawing, fitted, s, textWidth } from "./dom.js";
import { palette, weightTable } from "./scale.js";

const LABEL = 150; // pixels that a label may take
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

/* `room` is the width that there is. Told of every cell under the pointer or the arrow keys: `hover(row, column)`,
   with null where there is none; and of clicks: `choose(row, column)`. */
export function heatmap(matrix, { room = 900, label: about = "weights", hover = () => {}, choose = null, most = 1 } = {}) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const colours = palette();
  const left = Math.ceil(Math.min(LABEL, Math.max(30, ...matrix.rows.map((text) => textWidth(text))))) + 12;
  const size = Math.max(5, Math.min(40, Math.floor((room - left - 36) / columns)));
  const high = size < 15 && rows <= 70 ? 15 : size; // few rows beside many columns keep their labels
  const named = size >= 11, rowsNamed = high >= 9;
  const top = Math.ceil(named ? Math.min(LABEL, Math.max(24, ...matrix.columns.map((text) => textWidth(text)))) * 0.8 : 0) + 22;
  const lean = named ? 0.62 * Math.min(LABEL, textWidth(matrix.columns.at(-1) ?? "")) : 60;
  const width = left + columns * size + Math.max(20, lean), height = top + rows * high + 8;
  const mark = s("g", { "pointer-events": "none" });
  const rowTexts = matrix.rows.map((text, r) => rowsNamed && s("text", {
    x: left - 8, y: top + (r + 0.5) * high, "text-anchor": "end", "dominant-baseline": "central", fill: colours.soft,
    "font-size": high >= 11 ? 12 : 9,
  }, fitted(text, LABEL)));
  const columnTexts = matrix.columns.map((text, c) => named && s("text", {
    transform: `translate(${left + (c + 0.5) * size} ${top - 8}) rotate(-52)`, fill: colours.soft, "dominant-baseline": "central",
  }, fitted(text, LABEL)));
  const svg = drawing(width, height, about,
    rowTexts, columnTexts,
    painted(matrix, left, top, columns * size, rows * high, most), size >= 10 && lines(rows, columns, left, top, size, high, colours.surface),
    mark);
  svg.setAttribute("tabindex", "0");
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
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step) {
      const [r, c] = now ?? [0, -step[1]];
      show(Math.min(rows - 1, Math.max(0, r + (now ? step[0] : 0))), Math.min(columns - 1, Math.max(0, c + step[1])));
      event.preventDefault();
    }
    if (event.key === "Enter" && now && choose) choose(...now);
  });
  return svg;
}

/* Where no weight is large, as in long sentences, colours reach to the largest. */
export const peak = (...matrices) => Math.min(1, Math.max(0.05, ...matrices.map((matrix) => Math.ceil(20 * matrix.values.reduce((a, b) => Math.max(a, b), 0)) / 20)));

/* From nothing to the largest, for the eye. */
export function ramp() {
  const colours = weightTable(), steps = 24;
  return s("svg", { width: 120, height: 10, role: "img", "aria-label": "scale from 0 to 1" },
    Array.from({ length: steps }, (_, at) => {
      const [r, g, b] = colours[Math.round((255 * at) / (steps - 1))];
      return s("rect", { x: (at * 120) / steps, y: 0, width: 120 / steps + 0.5, height: 10, fill: `rgb(${r},${g},${b})` });
    }));
}
