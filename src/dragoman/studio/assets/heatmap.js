/* A heat-map: the cells are one picture inside the drawing, so that 40,000 of them are as quick as 40. */

import { drawing, fitted, s, textWidth } from "./dom.js";
import { palette, theme, weightTable } from "./scale.js";

const LABEL = 150; // pixels that a label may take

/* Cells as a data: address. `size` is that of a cell in pixels; hidden ones are hatched. */
export function picture(matrix, size, most = 1) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const canvas = document.createElement("canvas");
  canvas.width = columns * size;
  canvas.height = rows * size;
  paint(canvas.getContext("2d"), matrix, 0, 0, size, most);
  return canvas.toDataURL();
}

export function paint(context, matrix, left, top, size, most = 1) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const colours = weightTable(), gap = size >= 10 ? 1 : 0;
  const image = context.createImageData(columns * size, rows * size);
  const pixels = new Uint32Array(image.data.buffer);
  const packed = colours.map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  const dark = theme() === "dark";
  const ground = dark ? 0xff221d19 : 0xffffffff, blank = dark ? 0xff2e2721 : 0xfff2f0ee, hatch = dark ? 0xff473e36 : 0xffd5d1cc;
  pixels.fill(ground);
  const width = columns * size;
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < columns; c += 1) {
      const at = r * columns + c;
      const colour = packed[Math.min(255, Math.round((255 * matrix.values[at]) / most))];
      for (let y = 0; y < size - gap; y += 1) {
        const from = (r * size + y) * width + c * size;
        if (!matrix.hidden[at]) pixels.fill(colour, from, from + size - gap);
        else for (let x = 0; x < size - gap; x += 1) pixels[from + x] = (x + y) % 5 === 0 ? hatch : blank;
      }
    }
  }
  context.putImageData(image, left, top);
}

/* `room` is the width that there is. Told of every cell under the pointer or the arrow keys: `hover(row, column)`,
   with null where there is none; and of clicks: `choose(row, column)`. */
export function heatmap(matrix, { room = 900, label = "weights", hover = () => {}, choose = null, most = 1 } = {}) {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const colours = palette();
  const left = Math.min(LABEL, Math.max(30, ...matrix.rows.map((text) => textWidth(text)))) + 12;
  const size = Math.max(5, Math.min(40, Math.floor((room - left - 36) / columns)));
  const named = size >= 11;
  const top = (named ? Math.min(LABEL, Math.max(24, ...matrix.columns.map((text) => textWidth(text)))) * 0.8 : 0) + 22;
  const scale = Math.min(3, Math.max(1, Math.ceil(window.devicePixelRatio || 1)));
  const sharp = columns * size * scale > 3000 ? 1 : scale;
  const lean = named ? 0.62 * Math.min(LABEL, textWidth(matrix.columns.at(-1) ?? "")) : 60;
  const width = left + columns * size + Math.max(20, lean), height = top + rows * size + 8;
  const mark = s("g", { "pointer-events": "none" });
  const rowTexts = matrix.rows.map((text, r) => (named || size >= 9) && s("text", {
    x: left - 8, y: top + (r + 0.5) * size, "text-anchor": "end", "dominant-baseline": "central", fill: colours.soft,
    "font-size": named ? 12 : 9,
  }, fitted(text, LABEL)));
  const columnTexts = matrix.columns.map((text, c) => named && s("text", {
    transform: `translate(${left + (c + 0.5) * size} ${top - 8}) rotate(-52)`, fill: colours.soft, "dominant-baseline": "central",
  }, fitted(text, LABEL)));
  const svg = drawing(width, height, label,
    rowTexts, columnTexts,
    s("image", { x: left, y: top, width: columns * size, height: rows * size, href: picture(matrix, size * sharp, most),
      preserveAspectRatio: "none" }),
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
        s("rect", { x: left - 1, y: top + r * size - 1, width: columns * size + 1, height: size + 1, ...frame, "stroke-opacity": 0.45 }),
        s("rect", { x: left + c * size - 1, y: top - 1, width: size + 1, height: rows * size + 1, ...frame, "stroke-opacity": 0.45 }),
        s("rect", { x: left + c * size - 1, y: top + r * size - 1, width: size + 1, height: size + 1, ...frame, "stroke-width": 2 }));
      if (!named) mark.append(...hovered(r, c));
    }
    hover(r, c);
  }

  /* Where cells are too small for labels, that of the column under the pointer is shown. */
  function hovered(r, c) {
    const text = fitted(matrix.columns[c], 130);
    const x = Math.min(left + c * size, width - textWidth(text) - 4);
    return [s("text", { x, y: top - 8, fill: colours.text }, text)];
  }

  function place(event) {
    const box = svg.getBoundingClientRect(), zoom = width / box.width;
    const c = Math.floor(((event.clientX - box.left) * zoom - left) / size);
    const r = Math.floor(((event.clientY - box.top) * zoom - top) / size);
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

/* From 0 to 1, for the eye. */
export function ramp() {
  const colours = weightTable(), steps = 24;
  return s("svg", { width: 120, height: 10, role: "img", "aria-label": "scale from 0 to 1" },
    Array.from({ length: steps }, (_, at) => {
      const [r, g, b] = colours[Math.round((255 * at) / (steps - 1))];
      return s("rect", { x: (at * 120) / steps, y: 0, width: 120 / steps + 0.5, height: 10, fill: `rgb(${r},${g},${b})` });
    }));
}
