/* What the page computes itself: no document is touched here. */

function numbersOf(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/* One head of an attention: vectors H Q E, H M E and H (1 or Q) M W, all in one row. */
function sixSteps(own, head, query) {
  const { size, memory, width, outWidth, queries } = own;
  const q = own.query.subarray((head * queries + query) * width).subarray(0, width);
  const rows = [];
  for (let m = 0; m < memory; m += 1) {
    const k = own.key.subarray((head * memory + m) * width).subarray(0, width);
    const place = own.valuesEach === 1 ? head * memory + m : (head * queries + query) * memory + m;
    const v = own.value.subarray(place * outWidth).subarray(0, outWidth);
    let score = 0;
    for (let e = 0; e < width; e += 1) score += q[e] * k[e];
    const bias = own.bias === null ? 0 : own.bias[(head * queries + query) * memory + m];
    const visible = !own.causal || m <= query + memory - queries;
    rows.push({ k, v, score, bias, scaled: visible ? score * own.scale + bias : -Infinity, visible });
  }
  const most = Math.max(...rows.map((row) => row.scaled));
  const powers = rows.map((row) => Math.exp(row.scaled - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  const summed = new Float64Array(outWidth);
  rows.forEach((row, m) => {
    row.weight = powers[m] / total;
    row.weighted = Float64Array.from(row.v, (value) => value * row.weight);
    row.weighted.forEach((value, w) => { summed[w] += value; });
  });
  return { q, rows, summed, size };
}

if (typeof module !== "undefined") module.exports = { numbersOf, sixSteps };
