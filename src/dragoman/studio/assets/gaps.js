/* Words of a text that can be taken out, and the text with gaps in their place. No document is touched here. */

const GAP = "<mask>";
const GAPS = /<mask>|\[MASK\]/giu;

function segments(text) {
  if (typeof Intl.Segmenter === "function") {
    return [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)].map(({ segment, index }) => [index, segment]);
  }
  return [...text.matchAll(/[\p{L}\p{M}\p{N}'’-]+|[^\s]/gu)].map((found) => [found.index, found[0]]);
}

/* [{text, start, end, gap}]: words, signs, and what is a gap already. */
export function words(text) {
  const found = [];
  let from = 0;
  const add = (part, offset) => {
    for (const [index, segment] of segments(part)) {
      if (segment.trim()) found.push({ text: segment, start: offset + index, end: offset + index + segment.length, gap: false });
    }
  };
  for (const gap of text.matchAll(GAPS)) {
    add(text.slice(from, gap.index), from);
    from = gap.index + gap[0].length;
    found.push({ text: gap[0], start: gap.index, end: from, gap: true });
  }
  add(text.slice(from), from);
  return found;
}

/* The text with gaps in the place of some of its words, by their numbers. */
export function masked(text, gaps) {
  let found = text;
  for (const { start, end } of words(text).filter((_, number) => gaps.includes(number)).reverse()) found = found.slice(0, start) + GAP + found.slice(end);
  return found;
}

export const hasGaps = (text) => text.search(GAPS) >= 0;

/* The text with something else at each of its gaps, in order. */
export function filled(text, fillings) {
  let at = -1;
  return text.replace(GAPS, (gap) => fillings[(at += 1)] ?? gap);
}
