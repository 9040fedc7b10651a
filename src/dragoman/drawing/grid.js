/* All heads of one kind: a row a layer, a thumbnail a head. */

import { drawing, fixed, s } from "./dom.js";
import { painted, peak } from "./heatmap.js";
import { palette } from "./scale.js";
import { habit, matrixOf } from "./weights.js";

/* `entries` are the attentions of one kind from the first layer on; `chosen` is {module, heads}; `falls` the loss of
   log p without a head, by module, where it was asked for. `hover(entry, head, matrix, row, column)` is told of cells. */
export function grid(data, entries, { room = 900, words = false, rows = "written", chosen, masked = {}, falls = null, choose, hover = () => {} }) {
  const colours = palette();
  const most = Math.max(...entries.map((entry) => entry.heads)), gap = 12, left = 58, under = falls ? 46 : 32;
  const wide = Math.max(56, Math.min(170, Math.floor((room - left) / most) - gap));
  const { rows: down, columns: across } = matrixOf(data, entries[0], [0], { words, rows });
  const shape = Math.min(1.4, Math.max(0.5, down.length / across.length));
  const high = Math.round(wide * shape);
  const [width, height] = [left + most * (wide + gap), entries.length * (high + under + gap) + 4];
  const worst = falls ? Math.max(1e-9, ...Object.values(falls).flat().map(Math.abs)) : 1;
  const matrices = entries.map((entry) => Array.from({ length: entry.heads }, (_, head) => matrixOf(data, entry, [head], { words, rows })));
  const scale = peak(...matrices.flat()), overlay = [];
  entries.forEach((entry, layer) => {
    const y = layer * (high + under + gap) + 2;
    overlay.push(s("text", { x: 0, y: y + high / 2, fill: colours.soft, "dominant-baseline": "central" }, `Layer ${entry.layer}`));
    for (let head = 0; head < entry.heads; head += 1) {
      const x = left + head * (wide + gap);
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
