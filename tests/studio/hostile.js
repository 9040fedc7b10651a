/* Run in the page by test_browser.py: every drawing with the texts in values[0] as its labels. */
const names = ["heatmap", "bipartite", "tree", "pieces", "cells", "chart", "export", "dom"];
const modules = await Promise.all(names.map((name) => import(`/assets/${name}.js`)));
const { heatmap, bipartite, tree, chips, cells, chart, composed, source, h } = Object.assign({}, ...modules);
const texts = values[0], count = texts.length ** 2;
const matrix = { rows: texts, columns: texts, values: new Float32Array(count).fill(0.01), hidden: new Uint8Array(count) };
const step = texts.map((piece) => ({ parent: 0, piece, score: -1, sum: -1, fate: "kept" }));
const drawn = [
  heatmap(matrix),
  bipartite([{ head: null, matrix }], { titles: texts }),
  tree([step, step], 2, [0, 0]),
  chips(texts.map((piece) => ({ piece, score: -1 }))),
  cells({ rows: texts, columns: texts.slice(0, 2), values: texts.map(() => [1, null]) }),
  chart(texts[0], [{ name: texts[1], points: [[1, 2], [2, 3]], colour: "red" }], 400),
];
const shown = h("div", {}, h("p", {}, texts), drawn);
document.getElementById("view").append(shown);
await new Promise((resolve) => setTimeout(resolve, 50));
if (!texts.every((text) => shown.textContent.includes(text))) throw new Error("text was lost");
shown.remove();
return source(composed(drawn.map((svg) => ({ title: texts.join(" "), svg })), texts[0]));
