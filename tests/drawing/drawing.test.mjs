import assert from "node:assert/strict";
import { test } from "node:test";
import { theme } from "./document.mjs";
import { cellKind, cellTells, formulasOf, rowName, workedOut } from "./cell-steps.js";
import { cells } from "./cells.js";
import { chart, short } from "./chart.js";
import { fitted, fixed, h, percent, s, spaced } from "./dom.js";
import { filled, hasGaps, masked, words } from "./gaps.js";
import { brief, heatmap, peak } from "./heatmap.js";
import { chips, compared, differences } from "./pieces.js";
import { signedColour, surprise, textOnSigned, textOnWeight, weightColour, weightTable } from "./scale.js";
import { candidate, legend, tree } from "./tree.js";
import { entropy, habit, matrixOf, merges, rowTitle, stepsOf } from "./weights.js";

const rgb = (colour) => colour.match(/\d+/g).map(Number);
const light = (colour) => rgb(colour).map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, at) => sum + [0.2126, 0.7152, 0.0722][at] * value, 0);
const hex = (colour) => `rgb(${[1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).join(",")})`;
const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };
const matrix = (rows, columns, values, hidden = []) => ({ rows, columns, values: Float32Array.from(values), hidden: Uint8Array.from(values, (_, at) => Number(hidden.includes(at))) });

for (const name of ["light", "dark"]) {
  test(`colours by ${name}`, () => {
    theme(name);
    const lightness = weightTable().map(([r, g, b]) => light(`rgb(${r},${g},${b})`));
    assert.ok(lightness.every((value, at) => !at || (name === "light" ? value <= lightness[at - 1] + 1e-4 : value >= lightness[at - 1] - 1e-4)), "weights are monotone in lightness");
    for (let share = -1; share <= 1; share += 0.05) {
      assert.ok(contrast(signedColour(share), hex(textOnSigned(share))) >= 4, `numbers can be read at ${share}`);
      assert.ok(contrast(weightColour(Math.abs(share)), hex(textOnWeight(Math.abs(share)))) >= 4);
    }
    const [r, , b] = rgb(signedColour(-1)), [s, , c] = rgb(signedColour(1));
    assert.ok(r - b > 60 && c - s > 60, "below 0 is orange, above blue, also at the ends");
    const doubt = (score) => { const [red, , blue] = rgb(surprise(score)); return red - blue; };
    assert.ok(doubt(-9) > doubt(-1) && doubt(-1) > doubt(-0.01), "the less expected, the more orange");
  });
}

test("numbers", () => {
  assert.equal(fixed(-0.001), "0.00");
  assert.equal(fixed(-1.5), "−1.50");
  assert.equal(fixed(null), "−∞");
  assert.equal(percent(0), "100%");
  assert.equal(percent(null), "0%");
  assert.equal(percent(-20), "<0.1%");
  assert.deepEqual([brief(0.714), brief(0.001), brief(0.999)], [".71", "0", "1"]);
  assert.deepEqual([short(0), short(12_345), short(0.0001)], ["0", "12.3k", "1.0e-4"]);
  assert.ok(fitted("a very long label", 50).endsWith("…"));
});

test("a heat-map has a name, its weights in words, and moves by keys", () => {
  const told = [];
  const svg = heatmap(matrix(["a", "b"], ["x", "y", "z"], [0.1, 0.9, 0, 0.5, 0.3, 0.2], [2]), { label: "cross attention", titles: ["read › written", "source"], hover: (r, c) => told.push([r, c]) });
  assert.equal(svg.getAttribute("aria-label"), "cross attention");
  assert.equal(svg.all("desc")[0].textContent, "a: y .90; b: x .50");
  const texts = svg.all("text").map((text) => text.textContent);
  for (const text of ["read › written", "source", "a", "z", ".90", ".50"]) assert.ok(texts.includes(text), text);
  for (const key of ["ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]) svg.press(key);
  assert.deepEqual(told, [[0, 0], [1, 0], [1, 1], [1, 2], [1, 2]]);
  assert.equal(svg.all("pattern").length, 1); // what is hidden is hatched
});

test("many columns keep labels that do not overlap", () => {
  const names = Array.from({ length: 57 }, (_, at) => `word${at}`);
  const svg = heatmap(matrix(names, names, names.flatMap(() => names.map(() => 0.01))), { room: 640 });
  const turned = svg.all("text").filter((text) => (text.getAttribute("transform") ?? "").includes("rotate(-90)"));
  assert.equal(turned.length, 57);
});

test("where no weight is large, the scale ends at the largest", () => {
  assert.equal(peak(matrix(["a"], ["x", "y"], [0.21, 0.02])), 0.25);
  assert.equal(peak(matrix(["a"], ["x"], [1])), 1);
});

const STEPS = [
  [{ parent: 0, piece: "Ein", score: -0.1, sum: -0.1, fate: "kept" }, { parent: 0, piece: "Der", score: -3, sum: -3, fate: "pruned" }],
  [{ parent: 0, piece: "Mann", score: -0.2, sum: -0.3, fate: "kept" }, { parent: 0, piece: "</s>", score: -2, sum: -2.1, fate: "ended" }],
];

test("a tree is gone through by keys", () => {
  const told = [], svg = tree(STEPS, 2, [0, 1], { hover: (step, index) => told.push(`${step} ${index}`) });
  for (const key of ["ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"]) svg.press(key);
  assert.deepEqual(told, ["0 0", "1 1", "1 0", "0 0"]); // right along the hypothesis in colour
  assert.equal(svg.all("g").filter((node) => node.getAttribute("data-chosen")).length, 2);
  assert.equal(candidate(STEPS, 1, 1), "step 2: </s>, log p −2.000, sum −2.100, ended");
  assert.deepEqual(legend(STEPS, "chosen").map((item) => item.textContent), ["chosen", "kept", "ended", "pruned"]);
});

test("fates are told apart without colour", () => {
  const boxes = tree(STEPS, 2, []).all("g").filter((node) => node.getAttribute("data-fate"));
  const looks = boxes.map((node) => node.all("rect")[0].attributes).map((own) => `${own.fill} ${own["stroke-dasharray"]}`);
  assert.equal(new Set(looks).size, 3);
});

const side = (...pieces) => ({ pieces, words: pieces, shares: pieces.map((_, at) => [[at, 1]]) });
const DATA = { sides: { src: side("A", "girl", "</s>"), read: side("<s>", "Ein"), written: side("Ein", "</s>") } };
const CROSS = { kind: "cross", heads: 2, weights: btoa(String.fromCharCode(255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 255)) };

test("rows say what was read and what is written", () => {
  assert.deepEqual(stepsOf(DATA), ["<s> › Ein", "Ein › </s>"]);
  assert.deepEqual(matrixOf(DATA, CROSS, [0]).rows, ["<s> › Ein", "Ein › </s>"]);
  assert.deepEqual(matrixOf(DATA, CROSS, [0], { words: true, rows: "read" }).rows, ["<s> ›", "Ein ›"]);
  assert.deepEqual(matrixOf(DATA, CROSS, [0], { words: true, rows: "written" }).rows, ["› Ein", "› </s>"]);
  assert.deepEqual([...matrixOf(DATA, CROSS, [0, 1]).values], [0.5, 0, 0.5, 0, 0.5, 0.5]);
});

test("pieces of one word stay apart, and the title of the rows says what they are", () => {
  const written = (words, pieces) => ({ sides: { written: { words, pieces } } });
  assert.equal(merges(written(["2059", "</s>"], ["2", "0", "59", "</s>"])), false);
  assert.equal(merges(written(["Haus", "</s>"], ["Haus", "</s>"])), true);
  assert.equal(merges(written(["ein", "Haus", "</s>"], ["ein", "Ha", "us", "</s>"])), true);
  assert.equal(rowTitle("cross", { words: false }), "read › written");
  assert.equal(rowTitle("cross", { words: true, rows: "written" }), "› written");
  assert.equal(rowTitle("decoder", { words: true, rows: "read" }), "read ›");
  assert.equal(rowTitle("encoder", { words: true }), "looks");
});

test("what a head does most", () => {
  assert.equal(habit(matrixOf(DATA, CROSS, [1]), "cross"), "</s> 100%");
  assert.equal(habit(matrixOf(DATA, CROSS, [0]), "cross"), null);
  assert.equal(habit(matrix(["a", "b", "c"], ["a", "b", "c"], [1, 0, 0, 1, 0, 0, 0, 1, 0]), "encoder"), "previous 67%");
  assert.equal(entropy(matrix(["a"], ["x", "y"], [0.5, 0.5])).toFixed(3), "0.693");
});

test("cells, chips and charts are named and hold their text", () => {
  const drawn = cells({ rows: ["q"], columns: ["1", "2"], values: [[1, null]], masked: (_, c) => c === 1 });
  assert.ok(drawn.textContent.includes("−∞"));
  assert.equal(chips([{ piece: "Ein", score: 0 }]).all("desc")[0].textContent, "Ein 100%");
  const lines = chart("Loss", [{ name: "training", points: [[10, 4], [20, 2]], colour: "red" }], 400, { span: [0, 40] });
  assert.equal(lines.all("desc")[0].textContent, "training: from 4 to 2");
  assert.ok(lines.textContent.includes("updates"));
  assert.deepEqual(differences(["a", "b"], ["a", "c"]).map((own) => [...own]), [[1], [1]]);
});

test("words are taken out and put back", () => {
  const text = "The old cat, asleep.";
  assert.deepEqual(words(text).map((word) => word.text), ["The", "old", "cat", ",", "asleep", "."]);
  assert.equal(masked(text, [1, 4]), "The <mask> cat, <mask>.");
  assert.ok(hasGaps("a [MASK] b") && !hasGaps(text));
  assert.deepEqual(words("a <mask> b").map((word) => word.gap), [false, true, false]);
  assert.equal(filled("The <mask> cat, <mask>.", ["new", "awake"]), "The new cat, awake.");
});

test("a chart with a logarithmic axis tells the values themselves", () => {
  const lines = chart("Loss", [{ name: "training", points: [[1, 0], [2, 100], [3, 1]], colour: "red" }], 400, { log: true });
  assert.equal(lines.all("desc")[0].textContent, "training: from 100 to 1");
});

test("texts are compared word by word", () => {
  const found = compared("ein alter Hund", "ein Hund").map((part) => (part.tag === "mark" ? `[${part.textContent}]` : part)).join("");
  assert.equal(found, "ein [alter] Hund");
  assert.equal(compared("", "a"), "(empty)");
});

test("the formulas of a cell hold for its numbers", () => {
  const lstm = { "cell before": [[0.5]], "forget gate": [[0.8]], "input gate": [[0.25]], candidate: [[-0.4]], cell: [[0.3]], "output gate": [[0.9]], state: [[0.9 * Math.tanh(0.3)]] };
  const gru = { "state before": [[0.5]], "reset gate": [[0.1]], "update gate": [[0.75]], candidate: [[-0.2]], state: [[0.325]] };
  assert.deepEqual(workedOut(lstm, 0, 0), ["c = f · c′ + i · g = 0.800 · 0.500 + 0.250 · −0.400 = 0.300", "h = o · tanh(c) = 0.900 · tanh(0.300) = 0.262"]);
  assert.deepEqual(workedOut(gru, 0, 0), ["h = (1 − z) · n + z · h′ = (1 − 0.750) · −0.200 + 0.750 · 0.500 = 0.325"]);
  const plain = { "state before": [[0]], state: [[0.2]] };
  assert.deepEqual([lstm, gru, plain].map(cellKind), ["LSTM", "GRU", "RNN"]);
  assert.deepEqual([...Object.keys(lstm).map((name) => rowName(name, lstm)), rowName("candidate", gru)], ["cell before c′", "forget gate f", "input gate i", "candidate g", "cell c", "output gate o", "state h", "candidate n"]);
  assert.ok(cellTells(gru, true).includes("right to left") && !cellTells(plain, false).includes("right to left"));
  for (const gates of [lstm, gru, plain]) assert.ok(formulasOf(gates).at(-1).startsWith("h = "));
});

test("the mark of a space is shown as one, wherever text is drawn", () => {
  assert.equal(spaced("▁a▁b"), "␣a␣b");
  assert.equal(h("b", {}, "▁Haus", [" und ", "▁Hof"]).textContent, "␣Haus und ␣Hof");
  assert.equal(s("text", {}, "▁Haus").textContent, "␣Haus");
  assert.deepEqual(chips([{ piece: "▁Ein", score: 0 }]).all("text").map((text) => text.textContent), ["␣Ein", "100%"]);
});

test("weights in two bytes are the same weights, more exactly", () => {
  const steps = Uint16Array.from([65535, 0, 0, 16384, 32768, 16383]);
  const fine = { kind: "cross", heads: 1, steps: 65535, weights: btoa(String.fromCharCode(...new Uint8Array(steps.buffer))) };
  const found = matrixOf(DATA, fine, [0]);
  assert.deepEqual([...found.values].map((value) => value.toFixed(4)), ["1.0000", "0.0000", "0.0000", "0.2500", "0.5000", "0.2500"]);
  assert.deepEqual(matrixOf(DATA, fine, [0], { words: true }).rows, ["› Ein", "› </s>"]);
});
