/* Drawings as files. Colours and fonts are attributes of what is drawn, so that a copy needs no style sheet. */

import { drawing, fitted, s, textWidth } from "./dom.js";
import { palette } from "./scale.js";

const GAP = 18, HEAD = 22, MARGIN = 20;

/* Several drawings one below the other, each with a title: [{title, svg}]. */
export function composed(parts, title = "") {
  const colours = palette();
  const shown = parts.filter((part) => part.svg);
  const titles = [1.1 * textWidth(title, 15), ...shown.map((part) => textWidth(part.title))];
  const width = Math.ceil(Math.max(360, Math.min(900, Math.max(...titles)), ...shown.map(({ svg }) => svg.viewBox.baseVal.width))) + 2 * MARGIN;
  const children = [];
  let y = MARGIN;
  if (title) {
    children.push(s("text", { x: MARGIN, y: y + 12, fill: colours.text, "font-size": 15, "font-weight": 600 }, fitted(title, (width - 2 * MARGIN) / 1.1, 15)));
    y += 30;
  }
  for (const part of shown) {
    if (part.title) {
      children.push(s("text", { x: MARGIN, y: y + 10, fill: colours.soft, "font-size": 12 }, fitted(part.title, width - 2 * MARGIN)));
      y += HEAD;
    }
    const copy = part.svg.cloneNode(true);
    copy.setAttribute("x", MARGIN);
    copy.setAttribute("y", y);
    for (const name of ["tabindex", "role", "class"]) copy.removeAttribute(name);
    children.push(copy);
    y += part.svg.viewBox.baseVal.height + GAP;
  }
  return drawing(width, y - GAP + MARGIN, title || "drawing",
    s("rect", { width: "100%", height: "100%", fill: colours.surface }), children);
}

export function source(svg) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD"); // what XML cannot hold
}

function save(blob, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

export function saveSvg(svg, name) {
  save(new Blob([source(svg)], { type: "image/svg+xml" }), `${name}.svg`);
}

async function pngOf(svg, zoom = 2) {
  const { width, height } = svg.viewBox.baseVal;
  const scale = Math.min(zoom, 12_000 / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source(svg))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}

export async function savePng(svg, name) {
  save(await pngOf(svg), `${name}.png`);
}
