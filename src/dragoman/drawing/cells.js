/* A matrix with its numbers in its cells; what is masked is hatched and says so. */

import { drawing, fitted, fixed, s, textWidth } from "./dom.js";
import { palette, signedColour, textOnSigned } from "./scale.js";

const HIGH = 22, LABEL = 110;
let patterns = 0;

/* `values` are rows of numbers, null for −∞; `masked(r, c)` says which cells may not be looked at. Colours reach from
   −most to most; `digits` behind the point; `marked` is a row in a frame. */
export function cells({ rows, columns = null, values, most = null, digits = 2, masked = () => false, marked = null, choose = null, label = "matrix" }) {
  const colours = palette(), hatch = `hatch-${(patterns += 1)}`;
  const peak = most ?? Math.max(1e-9, ...values.flat().map((value) => Math.abs(value ?? 0)));
  const wide = Math.max(40, ...values.flat().slice(0, 400).map((value) => textWidth(fixed(value, digits), 11) + 10));
  const left = Math.min(LABEL, Math.max(10, ...rows.map((text) => textWidth(text, 11)))) + 10;
  const top = columns ? 20 : 2, count = values[0]?.length ?? 0;
  const children = [s("defs", {}, s("pattern", { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("rect", { width: 6, height: 6, fill: colours.sunk }), s("rect", { width: 1.5, height: 6, fill: colours.soft, "fill-opacity": 0.45 })))];
  columns?.forEach((text, c) => children.push(s("text", { x: left + (c + 0.5) * wide, y: 12, "text-anchor": "middle", "font-size": 10.5, fill: colours.soft },
    fitted(text, wide - 4, 10.5))));
  values.forEach((row, r) => {
    const y = top + r * HIGH, own = [];
    own.push(s("text", { x: left - 6, y: y + HIGH / 2, "text-anchor": "end", "dominant-baseline": "central", "font-size": 11,
      fill: r === marked ? colours.accent : colours.soft, "font-weight": r === marked ? 650 : 400 }, fitted(rows[r], LABEL, 11)));
    row.forEach((value, c) => {
      const hidden = masked(r, c), share = hidden ? 0 : Math.max(-1, Math.min(1, (value ?? 0) / peak));
      own.push(s("rect", { x: left + c * wide, y, width: wide - 1, height: HIGH - 1, fill: hidden ? `url(#${hatch})` : signedColour(share),
        "data-masked": hidden ? "1" : null }));
      own.push(s("text", { x: left + (c + 0.5) * wide, y: y + HIGH / 2, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 11,
        fill: hidden ? colours.soft : textOnSigned(share) }, hidden && value === null ? "−∞" : fixed(value, digits)));
    });
    if (r === marked) own.push(s("rect", { x: left - 1, y: y - 1, width: count * wide + 1, height: HIGH + 1, fill: "none", stroke: colours.accent, "stroke-width": 2 }));
    children.push(choose ? s("g", { cursor: "pointer", tabindex: 0, role: "button", onclick: () => choose(r),
      onkeydown: (event) => { if (event.key === "Enter") choose(r); } }, own) : s("g", {}, own));
  });
  const svg = drawing(left + count * wide + 2, top + values.length * HIGH + 2, label, children);
  if (choose) svg.setAttribute("role", "group"); // its rows are buttons
  return svg;
}
