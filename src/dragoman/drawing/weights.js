/* Weights as they come, and as a drawing shows them. No document is touched here. */

const decoded = new WeakMap();

/* Weights come in 255 steps, a byte each, or in as many as `steps` says, two bytes each. */
function unpacked({ weights, steps }) {
  const bytes = Uint8Array.from(atob(weights), (sign) => sign.charCodeAt(0));
  return steps ? new Uint16Array(bytes.buffer) : bytes;
}

function stepsIn(attention) {
  if (!decoded.has(attention)) decoded.set(attention, unpacked(attention));
  return decoded.get(attention);
}

/* Which sides the rows and the columns of a kind stand for. `rows` is what a decoder's position is called by: what it
   has read last, or what it writes. */
function sidesOf(data, kind, rows = "written") {
  const { src, read, written } = data.sides;
  if (kind === "encoder") return { rows: src, columns: src };
  const own = rows === "read" ? read : written;
  if (kind === "decoder") return { rows: own, columns: read };
  return kind === "cross" || kind === "copy" ? { rows: own, columns: src } : { rows: own, columns: joined(src, read) };
}

/* Each position of the decoder as «read › written»: its weights may belong to either. A word that was read is «word ›»,
   one that is written «› word»; so do all pictures, and `explain`. */
export const stepsOf = ({ sides }) => sides.read.pieces.map((piece, at) => `${piece} › ${sides.written.pieces[at]}`);

function joined(first, second) {
  const shift = first.words.length;
  return {
    pieces: [...first.pieces, ...second.pieces],
    words: [...first.words, ...second.words],
    shares: [...first.shares, ...second.shares.map((row) => row.map(([word, share]) => [word + shift, share]))],
  };
}

/* Whether pieces are merged into words where nobody has chosen: not where all that is written is one word, such as a
   number or an inflected form, whose pieces are what one wants to see. (`</s>` counts as a word.) */
export const merges = ({ sides }) => sides.written.words.length > 2 || sides.written.pieces.length <= 2;

/* What the rows are, as their labels are written. */
export const rowTitle = (kind, { words, rows }) => (kind === "encoder" ? "looks" : !words ? "read › written" : rows === "read" ? "read ›" : "› written");

/* One head, or the mean of several: {rows, columns, values (row by row), hidden}. */
export function matrixOf(data, attention, heads, { words = false, rows = "written" } = {}) {
  const sides = sidesOf(data, attention.kind, rows);
  const [q, m] = [sides.rows.pieces.length, sides.columns.pieces.length];
  const all = stepsIn(attention), size = q * m;
  const values = new Float32Array(size);
  for (const head of heads) {
    const from = head * size;
    for (let cell = 0; cell < size; cell += 1) values[cell] += all[from + cell];
  }
  const scale = (attention.steps ?? 255) * Math.max(1, heads.length);
  for (let cell = 0; cell < size; cell += 1) values[cell] /= scale;
  const masked = attention.kind === "decoder" || attention.kind === "joint";
  const hidden = new Uint8Array(size);
  if (masked) for (let r = 0; r < q; r += 1) for (let c = m - q + r + 1; c < m; c += 1) hidden[r * m + c] = 1;
  if (!words) return { rows: attention.kind === "encoder" ? sides.rows.pieces : stepsOf(data), columns: sides.columns.pieces, values, hidden };
  const blind = merged(hidden, sides).values;
  const found = merged(values, sides);
  if (attention.kind !== "encoder") found.rows = found.rows.map((word) => (rows === "read" ? `${word} ›` : `› ${word}`));
  return { ...found, hidden: Uint8Array.from(blind, (value) => (value > 0.999 ? 1 : 0)) };
}

/* A row is the mean over the pieces of a word, a column their sum. */
function merged(values, sides) {
  const { rows, columns } = sides;
  const [q, m, r, c] = [rows.pieces.length, columns.pieces.length, rows.words.length, columns.words.length];
  const half = new Float32Array(q * c), found = new Float32Array(r * c), total = new Float32Array(r);
  columns.shares.forEach((own, at) => {
    for (const [word, share] of own) for (let row = 0; row < q; row += 1) half[row * c + word] += share * values[row * m + at];
  });
  rows.shares.forEach((own, at) => {
    for (const [word, share] of own) {
      total[word] += share;
      for (let column = 0; column < c; column += 1) found[word * c + column] += share * half[at * c + column];
    }
  });
  for (let word = 0; word < r; word += 1) for (let column = 0; column < c; column += 1) found[word * c + column] /= total[word] || 1;
  return { rows: rows.words, columns: columns.words, values: found };
}

export const all = (count) => Array.from({ length: count }, (_, number) => number);

/* What a head does most of the time, where one thing takes more than half of its weight: looks at the piece before,
   after or at the same place, or at a mark. `matrix` is of pieces. */
export function habit(matrix, kind) {
  const { rows, columns, values } = matrix, [q, m] = [rows.length, columns.length];
  const places = { "</s>": (_, c) => columns[c] === "</s>", "<s>": (_, c) => columns[c] === "<s>" };
  if (kind !== "cross" && kind !== "copy") {
    const shift = m - q; // a joint attention has read the source before
    Object.assign(places, { previous: (r, c) => c === r + shift - 1, itself: (r, c) => c === r + shift, next: (r, c) => c === r + shift + 1 });
  }
  for (const [name, there] of Object.entries(places)) {
    let sum = 0;
    for (let r = 0; r < q; r += 1) for (let c = 0; c < m; c += 1) if (there(r, c)) sum += values[r * m + c];
    if (sum > 0.5 * q) return `${name} ${Math.round((100 * sum) / q)}%`;
  }
  return null;
}

/* In nats, the mean over rows; 0 looks at one place. */
export function entropy(matrix) {
  const rows = matrix.rows.length;
  let sum = 0;
  for (const value of matrix.values) if (value > 0) sum -= value * Math.log(value);
  return rows ? sum / rows : 0;
}
