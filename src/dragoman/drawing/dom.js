/* Elements from our own code only. What a person or a model wrote is always a text node. */

const SVG = "http://www.w3.org/2000/svg"; // a name, no address

/* A piece that begins a word has ▁ in front of it. Many fonts draw that as a thick bar, so it is shown as ␣. */
export const spaced = (text) => text.replaceAll("▁", "␣");
const written = (child) => (typeof child === "string" ? spaced(child) : child);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(written));
  return element;
}

export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

const FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";

/* The root of a drawing. Its size is that of its content; a parent scrolls. `label` is its name for those who do not
   see it. */
export function drawing(width, height, label, ...children) {
  return s("svg", {
    width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    role: "img", "aria-label": label, "font-family": FONT, "font-size": 12,
  }, ...children);
}

/* What a drawing shows, in words. */
export const told = (text) => s("desc", {}, text);

/* A drawing with parts that can be pressed or gone through by keys is no picture, but a group of them. */
export function operable(svg, keys) {
  svg.setAttribute("role", "group");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-roledescription", "drawing; arrow keys move in it");
  svg.addEventListener("keydown", keys);
  return svg;
}

let measure = null;

export function textWidth(text, size = 12) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = `${size}px ${FONT}`;
  return measure.measureText(spaced(text)).width;
}

/* As much of a text as there is room for. */
export function fitted(text, room, size = 12) {
  if (textWidth(text, size) <= room) return text;
  const signs = Array.from(text);
  let low = 0, high = signs.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${signs.slice(0, middle).join("")}…`, size) <= room) low = middle; else high = middle - 1;
  }
  return `${signs.slice(0, low).join("")}…`;
}

export const percent = (score) => {
  const share = 100 * Math.exp(score === null ? -Infinity : score);
  return share >= 99.95 ? "100%" : share >= 0.1 ? `${share.toFixed(1)}%` : share > 0 ? "<0.1%" : "0%";
};

export const fixed = (value, digits = 2) =>
  value === null ? "−∞" : value.toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1").replace("-", "−");
