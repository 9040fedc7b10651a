(() => {
  const { fixed, h, percent } = drawing_dom;
  const { surprise, textOnWeight, weightColour } = drawing_scale;
  const { heatmap, peak } = drawing_heatmap;
  const { candidate, legend, tree } = drawing_tree;
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const option = (select, value, text) => select.append(h("option", { value }, text));

  /* Translation */
  at("source").textContent = data.source;
  at("translation").textContent = data.translation;
  at("about").textContent = data.about;
  const buttons = data.written.map((piece, place) => h("button", { type: "button", class: "piece", "aria-pressed": "false", onclick: () => showAlternatives(place) },
    piece, h("small", {}, percent(data.scores[place]))));
  at("tokens").append(...buttons);
  const paintPieces = () => buttons.forEach((button, place) => { button.style.background = surprise(data.scores[place]); });
  function showAlternatives(place) {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(n === place)));
    const options = data.alternatives[place].map(([piece, score]) => `${piece} ${percent(score)}`);
    at("alternatives").textContent = `at position ${place + 1}: ${options.join("  ·  ")}`;
    const own = data.attentions[current.attention];
    if (own && own.rows.length === data.written.length && own.kind !== "encoder") choose(place, current.column);
  }
  if (data.best.length > 1) {
    at("nbest").hidden = false;
    at("nbest").tBodies[0].append(...data.best.map(({ score, log_prob: sum, text }) => h("tr", {}, h("td", {}, fixed(score, 3)), h("td", {}, fixed(sum, 3)), h("td", { dir: "auto" }, text))));
  }

  /* Attention */
  const current = { attention: data.start, head: -1, row: 0, column: 0 };
  const shown = () => data.attentions[current.attention];
  const cells = () => shown().rows.length * shown().columns.length;
  let weights = null;
  data.attentions.forEach((own, n) => {
    own.weights = weightsOf(own.weights);
    if (own.vectors) for (const name of ["query", "key", "value", "bias"])
      if (own.vectors[name] !== null) own.vectors[name] = numbersOf(own.vectors[name]);
    option(at("which"), n, `${own.kind}, layer ${own.layer}`);
  });
  function fillHeads() {
    at("head").replaceChildren();
    if (shown().heads > 1) option(at("head"), -1, "mean of all");
    for (let head = 0; head < shown().heads; head += 1) option(at("head"), head, String(head + 1));
    current.head = shown().heads > 1 ? -1 : 0;
    at("token").replaceChildren();
    shown().rows.forEach((piece, n) => option(at("token"), n, `${n + 1}: ${piece}`));
  }
  const hiddenCell = (own, row, column) => own.masked && column - (own.columns.length - own.rows.length) > row;
  function drawMap() {
    const { rows, columns } = shown();
    const hidden = new Uint8Array(cells());
    for (let cell = 0; cell < hidden.length; cell += 1) if (hiddenCell(shown(), Math.floor(cell / columns.length), cell % columns.length)) hidden[cell] = 1;
    const matrix = { rows, columns, values: weights, hidden }, head = current.head < 0 ? "mean of heads" : `head ${current.head + 1}`;
    at("map").replaceChildren(heatmap(matrix, { room: at("map").clientWidth || 900, most: peak(matrix), label: `${shown().kind} attention, layer ${shown().layer}, ${head}`,
      titles: [shown().kind === "encoder" ? "" : "read › written", ""], hover: (row, column) => { if (row !== null) choose(row, column); } }));
  }
  function refresh() {
    const size = cells();
    weights = current.head < 0 ? meanOfHeads(shown().weights, shown().heads, size)
      : shown().weights.subarray(current.head * size, (current.head + 1) * size);
    current.row = Math.min(current.row, shown().rows.length - 1);
    current.column = Math.min(current.column, shown().columns.length - 1);
    at("token").value = String(current.row);
    drawMap();
    tell();
    drawSteps();
    remember();
  }
  function tell() {
    const own = shown(), { row, column } = current;
    const value = hiddenCell(own, row, column) ? "hidden by the mask" : weights[row * own.columns.length + column].toFixed(4);
    const writes = own.kind === "encoder" ? "" : `, about to write ${data.written[row]}`;
    at("readout").textContent = `${own.read[row]}${writes}  looks at  ${own.columns[column]}:  ${value}`;
  }
  function choose(row, column) {
    const own = shown(), before = current.row;
    current.row = Math.min(own.rows.length - 1, Math.max(0, row));
    current.column = Math.min(own.columns.length - 1, Math.max(0, column));
    at("token").value = String(current.row);
    tell();
    if (before !== current.row) drawSteps();
    remember();
  }
  at("which").addEventListener("change", () => {
    current.attention = Number(at("which").value);
    fillHeads();
    refresh();
  });
  at("head").addEventListener("change", () => { current.head = Number(at("head").value); refresh(); });
  at("token").addEventListener("change", () => choose(Number(at("token").value), current.column));

  /* Six steps */
  const FEW = 4;
  const short = (value) => fixed(value).padStart(6);
  const vector = (values) => `${Array.from(values.slice(0, FEW), short).join(" ")}${values.length > FEW ? " …" : ""}`;
  function drawSteps() {
    const own = shown(), table = at("steps-table");
    table.replaceChildren();
    if (!own.vectors) {
      at("steps-note").textContent = own.why;
      return;
    }
    const head = Math.max(0, current.head);
    const { q, rows, summed } = sixSteps(own.vectors, head, current.row);
    const scale = own.vectors.scale === 1 ? "not divided" : `÷ √${own.vectors.width}`;
    at("steps-note").textContent = `Head ${head + 1}${current.head < 0 ? " (the map above shows the mean; choose a head to see this one)" : ""}, ` +
      `position ${current.row + 1}: ${own.rows[current.row]}. Its query (1): ${vector(q).trim()} ` +
      `Vectors are shown by their first ${Math.min(FEW, q.length)} of ${q.length} numbers; all of them are counted.`;
    const names = ["looks at", "key (1)", "value (1)", "q · k (2)", `${scale}${own.vectors.bias === null ? "" : " + position"} (3)`, "softmax (4)", "weight × value (5)"];
    const lines = rows.map((row, m) => {
      const numbers = row.visible ? [fixed(row.score), fixed(row.scaled), row.weight.toFixed(4), vector(row.weighted)] : [fixed(row.score), "−∞ (hidden)", "0", "0"];
      const line = h("tr", { class: row.visible ? null : "hidden-cell" }, [own.columns[m], vector(row.k), vector(row.v), ...numbers].map((cell) => h("td", {}, cell)));
      if (row.visible) {
        line.children[5].style.background = weightColour(row.weight);
        line.children[5].style.color = textOnWeight(row.weight);
      }
      return line;
    });
    const all = rows.reduce((sum, row) => sum + row.weight, 0);
    const last = h("tr", { class: "sum" }, ["sum (6)", "", "", "", "", all.toFixed(4), vector(summed)].map((cell) => h("td", {}, cell)));
    table.append(h("thead", {}, h("tr", {}, names.map((name) => h("th", {}, name)))), h("tbody", {}, lines, last));
  }

  /* Beam */
  function drawTree() {
    const { steps, path } = data.beam;
    at("beam-legend").replaceChildren(...legend(steps, "the translation"));
    at("tree").replaceChildren(tree(steps, steps.length, path, { hover: (step, index) => { at("beam-readout").textContent = candidate(steps, step, index); } }));
  }

  /* The place of a view is in the address: attention, head, row, column. */
  function remember() {
    const place = [current.attention, current.head, current.row, current.column].join(",");
    try { window.history.replaceState(null, "", `#${place}`); } catch { /* some viewers have no address */ }
  }
  function restore() {
    const place = window.location.hash.slice(1).split(",").map(Number);
    if (place.length !== 4 || !place.every(Number.isInteger)) return;
    const [attention, head, row, column] = place;
    if (attention < 0 || attention >= data.attentions.length) return;
    current.attention = attention;
    at("which").value = String(attention);
    fillHeads();
    if (head >= -1 && head < shown().heads && (head >= 0 || shown().heads > 1)) current.head = head;
    at("head").value = String(current.head);
    current.row = Math.min(Math.max(row, 0), shown().rows.length - 1);
    current.column = Math.min(Math.max(column, 0), shown().columns.length - 1);
  }

  function drawAll() {
    document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
    paintPieces();
    if (data.attentions.length) refresh();
    if (data.beam) drawTree();
  }

  if (data.attentions.length) {
    at("which").value = String(data.start);
    fillHeads();
    if (data.head >= 0) { current.head = data.head; at("head").value = String(data.head); }
    restore();
  } else {
    at("attention").replaceChildren(h("p", {}, "This model has no attention: there is nothing to look at."));
    at("steps").hidden = true;
  }
  at("beam").hidden = !data.beam;
  dark.addEventListener("change", drawAll);
  drawAll();
})();
