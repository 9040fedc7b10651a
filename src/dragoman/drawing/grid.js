/* All heads of one kind: a row a layer, a thumbnail a head. */

import { drawing, fitted, fixed, s, textWidth } from "./dom.js";
import { painted, peak } from "./heatmap.js";
import { palette } from "./scale.js";
import { habit, matrixOf } from "./weights.js";

/* `entries` are the attentions of one kind from the first layer on; `chosen` is {module, heads}; `falls` the loss of
   log p without a head, by module, where it was asked for. `hover(entry, head, matrix, row, column)` is told of cells. */
const LEAST = 9, LABEL = 76; // pixels of a cell that has a label, and of the longest label

export function grid(data, entries, { room = 900, words = false, rows = "written", chosen, masked = {}, falls = null, choose, hover = () => {} }) {
  const colours = palette();
  const most = Math.max(...entries.map((entry) => entry.heads)), gap = 12, under = falls ? 46 : 32;
  const { rows: down, columns: across } = matrixOf(data, entries[0], [0], { words, rows });
  const reach = (texts) => Math.ceil(Math.min(LABEL, Math.max(...texts.map((text) => textWidth(text, 10)))));
  const widthFor = (left) => Math.max(56, Math.min(230, Math.floor((room - left) / most) - gap));
  const side = widthFor(58) / across.length >= LEAST ? reach(down) + 8 : 0, left = 58 + side, wide = widthFor(left);
  const shape = Math.min(1.4, Math.max(0.5, down.length / across.length));
  const high = Math.round(wide * shape);
  const named = { rows: side > 0 && high / down.length >= LEAST, columns: wide / across.length >= LEAST };
  const top = named.columns ? Math.ceil(0.8 * reach(across)) + 12 : 2, overhang = named.columns ? 36 : 0; // slanted labels lean to the right
  const [width, height] = [left + most * (wide + gap) + overhang, top + entries.length * (high + under + gap) + 4];
  const worst = falls ? Math.max(1e-9, ...Object.values(falls).flat().map(Math.abs)) : 1;
  const matrices = entries.map((entry) => Array.from({ length: entry.heads }, (_, head) => matrixOf(data, entry, [head], { words, rows })));
  const scale = peak(...matrices.flat()), overlay = [];
  const label = (text, x, y, rest) => s("text", { x, y, "font-size": 10, fill: colours.soft, ...rest }, fitted(text, LABEL, 10));
  entries.forEach((entry, layer) => {
    const y = top + layer * (high + under + gap);
    if (named.rows) down.forEach((text, r) => overlay.push(label(text, left - 6, y + ((r + 0.5) * high) / down.length, { "text-anchor": "end", "dominant-baseline": "central" })));
    overlay.push(s("text", { x: 0, y: y + high / 2, fill: colours.soft, "dominant-baseline": "central" }, `Layer ${entry.layer}`));
    for (let head = 0; head < entry.heads; head += 1) {
      const x = left + head * (wide + gap);
      if (named.columns && !layer) across.forEach((text, c) => {
        const at = x + ((c + 0.5) * wide) / across.length;
        overlay.push(label(text, at, y - 5, { transform: `rotate(-52 ${at.toFixed(1)} ${y - 5})` }));
      });
      overlay.push(painted(matrices[layer][head], x, y, wide, high, scale));
      const own = chosen.module === entry.module && chosen.heads.includes(head);
      const off = masked[entry.module]?.includes(head);
      const fall = falls?.[entry.module]?.[head];
      overlay.push(s("g", { tabindex: 0, role: "button", "data-module": entry.module, "data-head": head, cursor: "pointer",
        "aria-label": `Layer ${entry.layer}, head ${head + 1}`,
        onclick: () => choose(entry, head),
        onpointermove: (event) => {
          const box = event.currentTarget.querySelector("rect").getBoundingClientRect(), own = matrices[layer][head];
          const r = Math.floor(((event.clientY - box.top) / box.height) * own.rows.length), c = Math.floor(((event.clientX - box.left) / box.width) * own.columns.length);
          if (own.rows[r] !== undefined && own.columns[c] !== undefined) hover(entry, head, own, r, c);
        },
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { choose(entry, head); event.preventDefault(); } },
      },
      s("rect", { x: x - 0.5, y: y - 0.5, width: wide + 1, height: high + 1, fill: off ? colours.surface : "transparent",
        "fill-opacity": off ? 0.75 : 1, stroke: own ? colours.accent : colours.line, "stroke-width": own ? 2.5 : 1, rx: 3 }),
      s("text", { x: x + wide / 2, y: y + high + 13, "text-anchor": "middle", "font-size": 11, fill: own ? colours.accent : colours.soft },
        off ? `${head + 1} · off` : `${head + 1}`),
      s("text", { x: x + wide / 2, y: y + high + 26, "text-anchor": "middle", "font-size": 10, fill: colours.soft, "data-habit": "1" },
        habit(matrixOf(data, entry, [head]), entry.kind) ?? ""),
      fall !== undefined && s("text", { x, y: y + high + 38, "font-size": 10, fill: fall >= 0 ? colours.warn : colours.accent }, fixed(-fall, 2)),
      fall !== undefined && s("rect", { x, y: y + high + 41, width: Math.max(1, (wide * Math.abs(fall)) / worst), height: 4, rx: 2,
        fill: fall >= 0 ? colours.warn : colours.accent }),
      s("title", {}, fall === undefined ? `Head ${head + 1}` : `Without head ${head + 1}, log p falls by ${fixed(fall, 3)}`)));
    }
  });
  const svg = drawing(width, height, "all heads", overlay.flat());
  svg.setAttribute("role", "group"); // its heads are buttons
  return svg;
}
