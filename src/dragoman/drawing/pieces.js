/* Pieces as chips in a drawing, coloured by how little they were expected. */

import { drawing, h, percent, s, textWidth, told } from "./dom.js";
import { palette, surprise } from "./scale.js";

const SIZE = 15, HIGH = 42, GAP = 6;

/* `differs` are the numbers of those that another model did not write: they are underlined. */
export function chips(found, room = 760, differs = new Set()) {
  const colours = palette();
  let [x, y, most] = [0, 0, 0];
  const children = found.map((piece, number) => {
    const width = Math.max(46, textWidth(piece.piece, SIZE) + 18);
    if (x > 0 && x + width > room) [x, y] = [0, y + HIGH + GAP];
    const middle = x + width / 2;
    const own = s("g", {},
      s("rect", { x: x + 0.5, y: y + 0.5, width, height: HIGH, rx: 8, fill: surprise(piece.score), stroke: differs.has(number) ? colours.accent : colours.line,
        "stroke-width": differs.has(number) ? 2 : 1 }),
      s("text", { x: middle, y: y + 18, "text-anchor": "middle", "font-size": SIZE, fill: colours.text }, piece.piece),
      s("text", { x: middle, y: y + 34, "text-anchor": "middle", "font-size": 11, fill: colours.soft }, percent(piece.score)));
    x += width + GAP;
    most = Math.max(most, x);
    return own;
  });
  return drawing(most, y + HIGH + 2, "pieces", told(found.map((piece) => `${piece.piece} ${percent(piece.score)}`).join(", ")), children);
}

/* A text whose words that another one has not are marked. */
export function compared(text, other) {
  if (!text) return "(empty)";
  const [own, theirs] = [text, other].map((each) => each.split(/\s+/).filter(Boolean)), [odd] = differences(own, theirs);
  return own.flatMap((word, at) => [at ? " " : "", odd.has(at) ? h("mark", {}, word) : word]);
}

/* Which of two lists stand in a longest common subsequence; the others are where they differ. */
export function differences(first, second) {
  const [n, m] = [first.length, second.length];
  const longest = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i -= 1) for (let j = m - 1; j >= 0; j -= 1) {
    longest[i][j] = first[i] === second[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  }
  const found = [new Set(), new Set()];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && first[i] === second[j]) [i, j] = [i + 1, j + 1];
    else if (j >= m || (i < n && longest[i + 1][j] >= longest[i][j + 1])) found[0].add(i++);
    else found[1].add(j++);
  }
  return found;
}
