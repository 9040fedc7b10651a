/* Lines over updates, with a readout under the pointer. */

import { drawing, s, textWidth, told } from "./dom.js";
import { palette } from "./scale.js";

const HEIGHT = 232, RIGHT = 14, TOP = 26, BOTTOM = 40;

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

/* Where the name of each line stands: in rows below the title, [x, row]. */
function placesOf(shown, left, room) {
  let at = left, row = 0;
  return shown.map((each) => {
    const wide = textWidth(each.name, 11) + 34;
    if (at > left && at + wide > room) [at, row] = [left, row + 1];
    at += wide;
    return [at - wide, row];
  });
}

/* `series`: [{name, points: [[x, y]], colour, dots, dash}]. `span` is the first and the last update, so that charts one
   below the other have one axis. */
export function chart(title, series, room, { span = null, axis = "updates", unit = "update", log = false } = {}) {
  const colours = palette(), real = (value) => (log ? 10 ** value : value);
  const drawn = series.map((each) => (log ? { ...each, points: each.points.filter(([, y]) => y > 0).map(([x, y]) => [x, Math.log10(y)]) } : each));
  const shown = drawn.filter((each) => each.points.length);
  const xs = shown.flatMap((each) => each.points.map(([x]) => x)), ys = shown.flatMap((each) => each.points.map(([, y]) => y));
  const reach = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const [firstX, lastX] = span ?? reach(xs), [lowest, highest] = reach(ys);
  const pad = (highest - lowest) * 0.06 || Math.abs(highest) * 0.1 || 1;
  const [low, high] = [lowest >= 0 && !log ? Math.max(0, lowest - pad) : lowest - pad, highest + pad];
  const marks = ticks(low, high), left = Math.max(...marks.map((value) => textWidth(short(real(value)), 11)), 34) + 14; // at least so much, so that charts one below the other are in line
  const places = placesOf(shown, left, room), top = TOP + 15 * ((places.at(-1)?.[1] ?? 0) + 1), height = HEIGHT + top - TOP;
  const x = (value) => left + ((value - firstX) / (lastX - firstX || 1)) * (room - left - RIGHT);
  const y = (value) => height - BOTTOM - ((value - low) / (high - low)) * (height - BOTTOM - top);
  const children = [s("text", { x: 0, y: 13, fill: colours.text, "font-weight": 600 }, title)];
  shown.forEach((each, number) => {
    const [at, row] = places[number], middle = 22 + 15 * row;
    children.push(s("line", { x1: at, x2: at + 14, y1: middle, y2: middle, stroke: each.colour, "stroke-width": 3, "stroke-dasharray": each.dash ?? null }),
      s("text", { x: at + 19, y: middle + 4, "font-size": 11, fill: colours.soft }, each.name));
  });
  for (const value of marks) children.push(
    s("line", { x1: left, x2: room - RIGHT, y1: y(value), y2: y(value), stroke: colours.line }),
    s("text", { x: left - 8, y: y(value), "text-anchor": "end", "dominant-baseline": "central", "font-size": 11, fill: colours.soft }, short(real(value))));
  for (const value of ticks(firstX, lastX, 5)) children.push(s("text", { x: x(value), y: height - 24, "text-anchor": "middle", "font-size": 11, fill: colours.soft }, short(value)));
  children.push(s("text", { x: room - RIGHT, y: height - 8, "text-anchor": "end", "font-size": 11, "font-style": "italic", fill: colours.soft }, axis));
  for (const each of shown) {
    children.push(s("path", { d: each.points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join(""), fill: "none", stroke: each.colour,
      "stroke-width": 1.8, "stroke-dasharray": each.dash ?? null, "stroke-linejoin": "round", "data-series": each.name }));
    if (each.dots || each.points.length === 1) for (const [px, py] of each.points) children.push(s("circle", { cx: x(px), cy: y(py), r: 3, fill: each.colour }));
  }
  const cursor = s("g", { "pointer-events": "none" });
  const svg = drawing(room, height, title, told(shown.map((each) => `${each.name}: from ${short(real(each.points[0][1]))} to ${short(real(each.points.at(-1)[1]))}`).join("; ")), children, cursor);
  const nearest = (points, value) => points.reduce((best, point) => (Math.abs(point[0] - value) < Math.abs(best[0] - value) ? point : best));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), value = firstX + ((event.clientX - box.left - left) / (room - left - RIGHT)) * (lastX - firstX);
    const found = shown.map((each) => [each, nearest(each.points, value)]), closest = nearest(found.map(([, point]) => point), value)[0];
    const lines = [`${unit} ${closest}`, ...found.filter(([, point]) => point[0] === closest).map(([each, point]) => `${each.name} ${short(real(point[1]))}`)];
    const wide = Math.max(...lines.map((text) => textWidth(text, 11))) + 14, from = Math.max(left, Math.min(x(closest) + 8, room - wide));
    cursor.replaceChildren(s("line", { x1: x(closest), x2: x(closest), y1: top, y2: height - BOTTOM, stroke: colours.accent, "stroke-opacity": 0.5 }),
      s("rect", { x: from, y: top, width: wide, height: 15 * lines.length + 6, rx: 5, fill: colours.surface, stroke: colours.line }),
      ...lines.map((text, i) => s("text", { x: from + 7, y: top + 14 + 15 * i, "font-size": 11, fill: i ? colours.text : colours.soft }, text)));
  });
  svg.addEventListener("pointerleave", () => cursor.replaceChildren());
  return svg;
}
