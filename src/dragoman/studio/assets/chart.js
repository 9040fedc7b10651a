/* Lines over updates, with a readout under the pointer. */

import { drawing, s, textWidth } from "./dom.js";
import { palette } from "./scale.js";

const HEIGHT = 220, RIGHT = 14, TOP = 26, BOTTOM = 28;

function ticks(low, high, count = 4) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  return found;
}

export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10_000) return `${Number((value / 1000).toPrecision(3))}k`;
  return size < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/* `series`: [{name, points: [[x, y]], colour, dots}]. */
export function chart(title, series, room) {
  const colours = palette(), shown = series.filter((each) => each.points.length);
  const xs = shown.flatMap((each) => each.points.map(([x]) => x)), ys = shown.flatMap((each) => each.points.map(([, y]) => y));
  const reach = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const [firstX, lastX] = reach(xs), [lowest, highest] = reach(ys);
  const pad = (highest - lowest) * 0.06 || Math.abs(highest) * 0.1 || 1;
  const [low, high] = [lowest >= 0 ? Math.max(0, lowest - pad) : lowest - pad, highest + pad];
  const marks = ticks(low, high), left = Math.max(...marks.map((value) => textWidth(short(value), 11))) + 14;
  const x = (value) => left + ((value - firstX) / (lastX - firstX || 1)) * (room - left - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const children = [s("text", { x: 0, y: 13, fill: colours.text, "font-weight": 600 }, title)];
  let at = room - RIGHT;
  for (const each of [...shown].reverse()) {
    at -= textWidth(each.name, 11);
    children.push(s("text", { x: at, y: 13, "font-size": 11, fill: colours.soft }, each.name), s("rect", { x: at - 16, y: 8, width: 12, height: 3, rx: 1.5, fill: each.colour }));
    at -= 30;
  }
  for (const value of marks) children.push(
    s("line", { x1: left, x2: room - RIGHT, y1: y(value), y2: y(value), stroke: colours.line }),
    s("text", { x: left - 8, y: y(value), "text-anchor": "end", "dominant-baseline": "central", "font-size": 11, fill: colours.soft }, short(value)));
  for (const value of ticks(firstX, lastX, 5)) children.push(s("text", { x: x(value), y: HEIGHT - 10, "text-anchor": "middle", "font-size": 11, fill: colours.soft }, short(value)));
  for (const each of shown) {
    children.push(s("path", { d: each.points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join(""), fill: "none", stroke: each.colour,
      "stroke-width": 1.8, "stroke-linejoin": "round", "data-series": each.name }));
    if (each.dots || each.points.length === 1) for (const [px, py] of each.points) children.push(s("circle", { cx: x(px), cy: y(py), r: 3, fill: each.colour }));
  }
  const cursor = s("g", { "pointer-events": "none" });
  const svg = drawing(room, HEIGHT, title, children, cursor);
  const nearest = (points, value) => points.reduce((best, point) => (Math.abs(point[0] - value) < Math.abs(best[0] - value) ? point : best));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), value = firstX + ((event.clientX - box.left - left) / (room - left - RIGHT)) * (lastX - firstX);
    const found = shown.map((each) => [each, nearest(each.points, value)]), closest = nearest(found.map(([, point]) => point), value)[0];
    const lines = [`update ${closest}`, ...found.filter(([, point]) => point[0] === closest).map(([each, point]) => `${each.name} ${short(point[1])}`)];
    const wide = Math.max(...lines.map((text) => textWidth(text, 11))) + 14, from = Math.max(left, Math.min(x(closest) + 8, room - wide));
    cursor.replaceChildren(s("line", { x1: x(closest), x2: x(closest), y1: TOP, y2: HEIGHT - BOTTOM, stroke: colours.accent, "stroke-opacity": 0.5 }),
      s("rect", { x: from, y: TOP, width: wide, height: 15 * lines.length + 6, rx: 5, fill: colours.surface, stroke: colours.line }),
      ...lines.map((text, i) => s("text", { x: from + 7, y: TOP + 14 + 15 * i, "font-size": 11, fill: i ? colours.text : colours.soft }, text)));
  });
  svg.addEventListener("pointerleave", () => cursor.replaceChildren());
  return svg;
}
