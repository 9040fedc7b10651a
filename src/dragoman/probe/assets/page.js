(() => {
  const { fixed, h, percent, spaced } = drawing_dom;
  const { signedColour, surprise, textOnSigned, textOnWeight, weightColour } = drawing_scale;
  const { heatmap, peak } = drawing_heatmap;
  const { bipartite } = drawing_bipartite;
  const { all, matrixOf, rowTitle } = drawing_weights;
  const { bar, checkbox, segments, slider } = drawing_controls;
  const { composed, savePng, saveSvg } = drawing_export;
  const { candidate, legend, tree } = drawing_tree;
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const option = (select, value, text) => select.append(h("option", { value }, text));

  /* Translation */
  at("source").textContent = data.source;
  at("translation").textContent = data.translation;
  at("about").textContent = data.about;
  at("arrow").hidden = !data.source || !data.translation;
  at("piecewise").hidden = !data.written.length;
  const buttons = data.written.map((piece, place) => h("button", { type: "button", class: "piece", "aria-pressed": "false", onclick: () => showAlternatives(place) },
    piece, h("small", {}, percent(data.scores[place]))));
  at("tokens").append(...buttons);
  /* What a classifier says, and why. */
  const units = (data.units ?? []).map(([text, share]) => h("span", { class: "piece chip" }, text, h("small", {}, fixed(share, 3))));
  at("answer").hidden = !data.labels?.length;
  at("why").hidden = !units.length;
  at("units").append(...units);
  at("labels").append(...(data.labels ?? []).map(([name, share]) => h("li", { class: name === data.translation ? "own" : null }, h("b", { dir: "auto" }, name), bar(share), h("span", { class: "number soft" }, `${(100 * share).toFixed(1)}%`))));
  function paintUnits() {
    const most = Math.max(1e-6, ...units.map((_, n) => Math.abs(data.units[n][1])));
    units.forEach((chip, n) => {
      const share = data.units[n][1] / most;
      chip.style.background = signedColour(share);
      chip.style.color = chip.lastChild.style.color = textOnSigned(share);
    });
  }
  const paintPieces = () => buttons.forEach((button, place) => { button.style.background = surprise(data.scores[place]); });
  function showAlternatives(place) {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(n === place)));
    const options = data.alternatives[place].map(([piece, score]) => `${piece} ${percent(score)}`);
    at("alternatives").textContent = spaced(`at position ${place + 1}: ${options.join("  ·  ")}`);
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
  const look = { mode: "map", words: false, rows: data.when_read ? "read" : "written", least: 0.1 };
  let weights = null;
  data.attentions.forEach((own, n) => {
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
  const headsShown = () => (current.head < 0 ? all(shown().heads) : [current.head]);
  const headName = () => (shown().heads === 1 ? "" : current.head < 0 ? ", mean of heads" : `, head ${current.head + 1}`);
  const about = () => `${shown().kind} attention, layer ${shown().layer}${headName()}`;
  const NOTES = {
    map: "A row for each position that looks, a column for each that is looked at. Hatched cells are hidden by the mask. Point at a cell, or move with the arrow keys",
    links: "What is looked at on the left, who looks on the right; the stronger a line, the larger the weight. Point at a word, or move with the arrow keys",
  };
  function drawControls() {
    at("mode").replaceChildren(segments("Drawing", [["map", "Heat-map"], ["links", "Links"]], look.mode, (mode) => { look.mode = mode; drawMap(); }));
    at("merging").replaceChildren(checkbox("Merge into words", look.words, (on) => { look.words = on; drawMap(); }));
    at("least").replaceChildren(...(look.mode === "links" ? [slider("Hide below", 0, 0.9, 0.02, look.least, (value) => value.toFixed(2), (least) => { look.least = least; drawPicture(); })] : []));
    at("map-note").textContent = `${NOTES[look.mode]}${look.words ? ". A row of words is the mean over their pieces, a column the sum" : look.mode === "map" ? "; a row that is chosen is worked out below" : ""}.`;
  }
  function drawMap() {
    drawControls();
    if (look.words || look.mode === "links") at("readout").textContent = about();
    else tell();
    drawPicture();
  }
  function drawPicture() {
    const matrix = matrixOf(data, shown(), headsShown(), look), room = at("map").clientWidth || 900;
    const titles = [rowTitle(shown().kind, look), "looked at"];
    const words = (side, number, found) => { if (side !== null) at("readout").textContent = spaced(`${(side === "rows" ? matrix.rows : matrix.columns)[number]} ${side === "rows" ? "looks at" : "is looked at by"} ${found.slice(0, 4).map(([other, weight]) => `${(side === "rows" ? matrix.columns : matrix.rows)[other]} ${weight.toFixed(2)}`).join(", ")}`); };
    const cell = (row, column) => {
      if (row === null) return;
      if (look.words) at("readout").textContent = `${matrix.rows[row]} looks at ${matrix.columns[column]}: ${matrix.values[row * matrix.columns.length + column].toFixed(3)}`;
      else choose(row, column);
    };
    at("map").replaceChildren(look.mode === "links" ? bipartite([{ head: current.head < 0 ? null : current.head, matrix }], { room, threshold: look.least, label: about(), titles: [titles[1], titles[0]], hover: words })
      : heatmap(matrix, { room, most: peak(matrix), label: about(), titles, hover: cell }));
  }
  function refresh() {
    weights = matrixOf(data, shown(), headsShown()).values;
    current.row = Math.min(current.row, shown().rows.length - 1);
    current.column = Math.min(current.column, shown().columns.length - 1);
    at("token").value = String(current.row);
    drawMap();
    drawSteps();
    remember();
  }
  function tell() {
    const own = shown(), { row, column } = current;
    const value = hiddenCell(own, row, column) ? "hidden by the mask" : weights[row * own.columns.length + column].toFixed(4);
    const writes = own.kind === "encoder" ? "" : `, about to write ${data.written[row]}`;
    at("readout").textContent = spaced(`${own.read[row]}${writes}  looks at  ${own.columns[column]}:  ${value}`);
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
    at("steps-note").textContent = spaced(`Head ${head + 1}${current.head < 0 ? " (the map above shows the mean; choose a head to see this one)" : ""}, ` +
      `position ${current.row + 1}: ${own.rows[current.row]}. Its query (1): ${vector(q).trim()} ` +
      `Vectors are shown by their first ${Math.min(FEW, q.length)} of ${q.length} numbers; all of them are counted.`);
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

  /* Files of what is drawn, with a title. */
  function saves(prefix, place, name, title) {
    for (const [ending, save] of [["svg", saveSvg], ["png", savePng]])
      at(`${prefix}-${ending}`).addEventListener("click", () => save(composed([{ title: title(), svg: at(place).querySelector("svg") }], `${data.source}  →  ${data.translation}`), name));
  }
  saves("map", "map", "attention", about);
  saves("tree", "tree", "beam", () => "beam search");

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
    paintUnits();
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
  }
  at("steps").hidden = !data.attentions.some((own) => own.vectors); // another score has other steps
  at("beam").hidden = !data.beam;
  dark.addEventListener("change", drawAll);
  drawAll();
})();
