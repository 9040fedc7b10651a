(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const make = (name, text, parent) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const percent = (value) => `${(100 * value).toFixed(value < 0.0995 || value > 0.995 ? 1 : 0)}%`;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  /* One hue, light to dark (by night dark to light): the order is seen without colours too. */
  const shade = (value) => {
    const x = Math.min(1, Math.max(0, value));
    const from = dark.matches ? [24, 32, 44] : [255, 255, 255];
    const to = dark.matches ? [150, 205, 255] : [8, 60, 120];
    return `rgb(${from.map((low, i) => Math.round(low + (to[i] - low) * x)).join(",")})`;
  };
  /* A piece by its probability, as in the studio: the less the model expected it, the more orange. */
  const doubt = (chance) => {
    const from = dark.matches ? [25, 29, 34] : [255, 255, 255];
    const to = dark.matches ? [160, 90, 23] : [238, 154, 69];
    return `rgb(${from.map((low, i) => Math.round(low + (to[i] - low) * (1 - chance))).join(",")})`;
  };
  const ink = (value) => ((value > 0.5) !== dark.matches ? "#ffffff" : "#111111");
  const option = (select, value, text) => { make("option", text, select).value = value; };

  /* Translation */
  at("source").textContent = data.source;
  at("translation").textContent = data.translation;
  at("about").textContent = data.about;
  const buttons = data.written.map((piece, place) => {
    const chance = Math.exp(data.scores[place]);
    const button = make("button", piece, at("tokens"));
    make("small", percent(chance), button);
    button.type = "button";
    button.style.background = doubt(chance);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => showAlternatives(place));
    return button;
  });
  function showAlternatives(place) {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(n === place)));
    const options = data.alternatives[place].map(([piece, score]) => `${piece} ${percent(Math.exp(score))}`);
    at("alternatives").textContent = `at position ${place + 1}: ${options.join("  ·  ")}`;
    const own = data.attentions[current.attention];
    if (own && own.rows.length === data.written.length && own.kind !== "encoder") choose(place, current.column);
  }
  if (data.best.length > 1) {
    at("nbest").hidden = false;
    for (const { score, log_prob: sum, text } of data.best) {
      const row = make("tr", undefined, at("nbest").tBodies[0]);
      for (const cell of [score.toFixed(3), sum.toFixed(3), text]) make("td", cell, row);
    }
  }

  /* Attention */
  const current = { attention: data.start, head: -1, row: 0, column: 0 };
  const CELL = () => (Math.max(shown().rows.length, shown().columns.length) > 40 ? 14 : 24);
  const shown = () => data.attentions[current.attention];
  const cells = () => shown().rows.length * shown().columns.length;
  let weights = null;
  const box = { left: 0, top: 0, cell: 0 };
  data.attentions.forEach((own, n) => {
    own.weights = weightsOf(own.weights);
    if (own.vectors) for (const name of ["query", "key", "value", "bias"])
      if (own.vectors[name] !== null) own.vectors[name] = numbersOf(own.vectors[name]);
    option(at("which"), n, `${own.kind}, layer ${own.layer}`);
  });
  function fillHeads() {
    at("head").replaceChildren();
    if (shown().heads > 1) option(at("head"), -1, "mean of all");
    for (let h = 0; h < shown().heads; h += 1) option(at("head"), h, String(h + 1));
    current.head = shown().heads > 1 ? -1 : 0;
    at("token").replaceChildren();
    shown().rows.forEach((piece, n) => option(at("token"), n, `${n}: ${piece}`));
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
  const hiddenCell = (own, row, column) =>
    own.masked && column - (own.columns.length - own.rows.length) > row;
  function drawMap() {
    const own = shown(), canvas = at("map"), pen = canvas.getContext("2d");
    const style = getComputedStyle(document.body);
    const font = `${CELL() < 20 ? 10 : 12}px ${style.fontFamily}`;
    pen.font = font;
    const widest = (names) => Math.max(...names.map((name) => pen.measureText(name).width));
    box.cell = CELL();
    box.left = Math.ceil(widest(own.rows)) + 10;
    box.top = Math.ceil(widest(own.columns)) + 10;
    const width = box.left + box.cell * own.columns.length + 2, height = box.top + box.cell * own.rows.length + 2;
    const dense = window.devicePixelRatio || 1;
    canvas.width = width * dense;
    canvas.height = height * dense;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    pen.scale(dense, dense);
    pen.font = font;
    pen.textBaseline = "middle";
    own.rows.forEach((name, row) => {
      pen.fillStyle = row === current.row ? style.getPropertyValue("--best") : style.color;
      pen.textAlign = "right";
      pen.fillText(name, box.left - 5, box.top + (row + 0.5) * box.cell);
    });
    own.columns.forEach((name, column) => {
      pen.save();
      pen.translate(box.left + (column + 0.5) * box.cell, box.top - 5);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillStyle = column === current.column ? style.getPropertyValue("--best") : style.color;
      pen.fillText(name, 0, 0);
      pen.restore();
    });
    own.rows.forEach((_, row) => own.columns.forEach((__, column) => {
      const x = box.left + column * box.cell, y = box.top + row * box.cell;
      if (hiddenCell(own, row, column)) {
        hatch(pen, x, y, box.cell, style.getPropertyValue("--left"));
      } else {
        pen.fillStyle = shade(weights[row * own.columns.length + column]);
        pen.fillRect(x, y, box.cell, box.cell);
      }
    }));
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.strokeRect(box.left, box.top, box.cell * own.columns.length, box.cell * own.rows.length);
    pen.strokeStyle = style.getPropertyValue("--best");
    pen.lineWidth = 2;
    pen.strokeRect(box.left + current.column * box.cell, box.top + current.row * box.cell, box.cell, box.cell);
  }
  function hatch(pen, x, y, size, colour) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, size, size);
    pen.clip();
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    for (let shift = -size; shift < size; shift += 6) {
      pen.beginPath();
      pen.moveTo(x + shift, y + size);
      pen.lineTo(x + shift + size, y);
      pen.stroke();
    }
    pen.restore();
  }
  function tell() {
    const own = shown(), { row, column } = current;
    const value = hiddenCell(own, row, column) ? "hidden by the mask"
      : weights[row * own.columns.length + column].toFixed(4);
    const writes = own.kind === "encoder" ? "" : `, about to write ${data.written[row]}`;
    at("readout").textContent = `${own.read[row]}${writes}  looks at  ${own.columns[column]}:  ${value}`;
  }
  function choose(row, column) {
    const own = shown();
    const before = current.row;
    current.row = Math.min(own.rows.length - 1, Math.max(0, row));
    current.column = Math.min(own.columns.length - 1, Math.max(0, column));
    at("token").value = String(current.row);
    drawMap();
    tell();
    if (before !== current.row) drawSteps();
    remember();
  }
  function cellAt(event) {
    const area = at("map").getBoundingClientRect();
    const column = Math.floor((event.clientX - area.left - box.left) / box.cell);
    const row = Math.floor((event.clientY - area.top - box.top) / box.cell);
    const own = shown();
    return row >= 0 && column >= 0 && row < own.rows.length && column < own.columns.length ? [row, column] : null;
  }
  at("map").addEventListener("mousemove", (event) => {
    const found = cellAt(event);
    if (found && (found[0] !== current.row || found[1] !== current.column)) choose(...found);
  });
  at("map").addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(current.row + moves[event.key][0], current.column + moves[event.key][1]);
  });
  at("which").addEventListener("change", () => {
    current.attention = Number(at("which").value);
    fillHeads();
    refresh();
  });
  at("head").addEventListener("change", () => { current.head = Number(at("head").value); refresh(); });
  at("token").addEventListener("change", () => choose(Number(at("token").value), current.column));
  dark.addEventListener("change", () => window.location.reload());

  /* Six steps */
  const FEW = 4;
  const short = (value) => value.toFixed(2).replace(/^-(0\.00)$/, "$1").padStart(6);
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
      `position ${current.row}: ${own.rows[current.row]}. Its query (1): ${vector(q).trim()} ` +
      `Vectors are shown by their first ${Math.min(FEW, q.length)} of ${q.length} numbers; all of them are counted.`;
    const heading = make("tr", undefined, make("thead", undefined, table));
    const bias = own.vectors.bias !== null;
    for (const name of ["looks at", "key (1)", "value (1)", "q · k (2)", `${scale}${bias ? " + position" : ""} (3)`,
      "softmax (4)", "weight × value (5)"]) make("th", name, heading);
    const body = make("tbody", undefined, table);
    rows.forEach((row, m) => {
      const line = make("tr", undefined, body);
      if (!row.visible) line.className = "hidden-cell";
      const numbers = row.visible ? [row.score.toFixed(2), row.scaled.toFixed(2), row.weight.toFixed(4), vector(row.weighted)]
        : [row.score.toFixed(2), "−∞ (hidden)", "0", "0"];
      for (const cell of [own.columns[m], vector(row.k), vector(row.v), ...numbers]) make("td", cell, line);
      if (row.visible) {
        line.children[5].style.background = shade(row.weight);
        line.children[5].style.color = ink(row.weight);
      }
    });
    const last = make("tr", undefined, body);
    last.className = "sum";
    const all = rows.reduce((sum, row) => sum + row.weight, 0);
    for (const cell of ["sum (6)", "", "", "", "", all.toFixed(4), vector(summed)]) make("td", cell, last);
  }

  /* Beam */
  function svg(name, attributes, parent, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }
  function drawTree() {
    const { steps, path } = data.beam;
    const names = { kept: "kept", ended: "ended", cut: "ended by the length limit", pruned: "pruned", stopped: "live when the search was done" };
    const colours = { kept: "--kept", ended: "--ended", cut: "--ended", pruned: "--left", stopped: "--live" };
    const longest = Math.max(...steps.flat().map((found) => found.piece.length));
    const wide = Math.max(84, longest * 8 + 34), tall = 36, most = Math.max(...steps.map((step) => step.length));
    const root = svg("svg", { width: steps.length * wide + 10, height: most * tall + 26, role: "img" }, at("tree"));
    svg("title", {}, root, "tree of the beam search");
    const edges = svg("g", {}, root), texts = svg("g", {}, root);
    const half = (found) => found.piece.length * 4 + 8;
    steps.forEach((step, s) => {
      svg("text", { x: (s + 0.5) * wide, y: 14, "text-anchor": "middle", fill: "var(--soft)" }, texts, `step ${s + 1}`);
      step.forEach((found, rank) => {
        const chosen = path[s] === rank;
        const colour = chosen ? "var(--best)" : `var(${colours[found.fate]})`;
        const x = (s + 0.5) * wide, y = 36 + rank * tall;
        if (s) {
          const before = steps[s - 1][found.parent];
          svg("line", { x1: (s - 0.5) * wide + half(before), y1: 36 + found.parent * tall, x2: x - half(found), y2: y,
            stroke: colour, "stroke-width": chosen ? 2.5 : 1 }, edges);
        }
        const word = svg("text", { x, y: y + 1, "text-anchor": "middle", fill: colour,
          "font-weight": chosen ? "700" : "400" }, texts, found.piece);
        svg("title", {}, word, `${found.piece}: log p ${found.log_prob.toFixed(3)}, sum ${found.sum.toFixed(3)}, ${names[found.fate]}`);
        svg("text", { x, y: y + 13, "text-anchor": "middle", fill: "var(--soft)", class: "sum" }, texts,
          short(found.sum).trim());
      });
    });
    const legend = at("beam-legend");
    make("span", "Below each piece the sum of its log-probabilities, best on top. ", legend);
    const key = (text, colour) => {
      make("span", text, legend).style.color = `var(${colour})`;
      make("span", " · ", legend);
    };
    if (path.length) key("the translation", "--best");
    const fates = new Set(steps.flat().map((found) => found.fate));
    for (const fate of Object.keys(names)) if (fates.has(fate)) key(names[fate], colours[fate]);
    legend.lastChild.remove();
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
    at("token").value = String(current.row);
  }

  if (data.attentions.length) {
    at("which").value = String(data.start);
    fillHeads();
    if (data.head >= 0) { current.head = data.head; at("head").value = String(data.head); }
    restore();
    refresh();
  } else {
    at("attention").replaceChildren(make("p", "This model has no attention: there is nothing to look at."));
    at("steps").hidden = true;
  }
  if (data.beam) drawTree();
  else at("beam").hidden = true;
})();
