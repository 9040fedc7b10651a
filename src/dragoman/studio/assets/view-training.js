/* Training: live curves, samples over time, and the attention of one sentence from checkpoint to checkpoint. */

import { ask, send } from "./api.js";
import { chart } from "./chart.js";
import { card, checkbox, empty, readout as spoken, slider } from "./controls.js";
import { h } from "./dom.js";
import { heatmap, peak } from "./heatmap.js";
import { HEADS, palette } from "./scale.js";
import { set, state } from "./state.js";
import { all, matrixOf, merges, rowTitle } from "./weights.js";

const EVERY = 2000; // milliseconds between two looks at a run
const CHARTS = [["Loss (cross-entropy)", ["loss"]], ["Quality (0 to 100)", ["bleu", "chrf", "exact", "rouge", "brackets"]], ["Perplexity", ["perplexity"]], ["Accuracy (share of right answers)", ["accuracy"]],
  ["Quality (0 to 1)", ["f1", "macro_f1", "matthews", "pearson", "spearman", "exact_match"]], ["Loss after the reference, and after the model's own words", ["forced_loss", "free_loss"]], ["Learning rate", ["rate"]], ["Gradient norm", ["gradient_norm"]]];
const NAMES = { forced_loss: "forced: the reference", free_loss: "free: the model's own words", train: "training", valid: "validation",
  bleu: "BLEU", chrf: "chrF", exact: "exact match, %", rouge: "ROUGE-L", brackets: "bracket F1", f1: "F1", macro_f1: "macro F1", matthews: "Matthews", pearson: "Pearson", spearman: "Spearman", exact_match: "exact match" };

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

/* Where a run stands, in a sentence. */
function standing(found, last) {
  const of = found.updates ? ` of ${found.updates}` : "", best = found.best;
  return [`Update ${last}${of}`, best && `best checkpoint ${best.name} (${NAMES[best.metric] ?? best.metric}: ${best.value.toPrecision(4)})`,
    found.speed && `${Math.round(found.speed).toLocaleString("en")} ${found.unit} per second`, found.left && `about ${clock(found.left)} left`].filter(Boolean).join("; ") + `. Updated every ${EVERY / 1000} s.`;
}

export function create(root, runs) {
  const status = h("p", { class: "soft" }), charts = h("div", { class: "charts" });
  const sampleBar = h("div", { class: "bar" }), samples = h("div", { class: "table scrolls" });
  const timeBar = h("div", { class: "bar" }), readout = spoken(), map = h("div", { class: "drawing" });
  const sampleCard = card("Samples of the validation set", sampleBar, samples), timeCard = card("Attention of this sentence over training", timeBar, readout, map);
  const also = h("div", { class: "heads", role: "group", "aria-label": "Other runs on the same charts" });
  const scale = h("span", {});
  root.append(card(null, status, h("div", { class: "bar" }, also, scale), charts), h("div", { class: "columns" }, sampleCard, timeCard));
  let run = "", records = 0, points = [], told = [], checkpoints = [], timer = 0, latest = 0;

  async function look() {
    if (run !== state.run) [run, records, points, told, checkpoints] = [state.run, 0, [], [], []];
    const found = await send("training", { run, since: records });
    if (run !== state.run) return false;
    if (found.since === 0) points = [];
    const fresh = found.records !== records || found.checkpoints.length !== checkpoints.length || !points.length;
    points.push(...found.points);
    records = found.records;
    if (found.samples) told = found.samples;
    checkpoints = found.checkpoints;
    const last = points.reduce((most, point) => Math.max(most, point.update), 0);
    status.textContent = points.length
      ? standing(found, last)
      : "Nothing has been written down yet.";
    return fresh;
  }

  const series = (all, kind, name) => all.filter((point) => point.kind === kind && name in point.values).map((point) => [point.update, point.values[name]]);

  /* Runs that were put on the same charts. */
  const chosen = () => String(state.also ?? "").split("|").filter((name) => name !== run && runs.some((each) => each.name === name));

  function drawAlso() {
    const others = runs.map((each) => each.name).filter((name) => name !== run), own = chosen();
    also.hidden = !others.length;
    const flip = (name) => set({ also: (own.includes(name) ? own.filter((each) => each !== name) : [...own, name]).join("|") });
    also.replaceChildren(h("span", {}, "Compare with"), ...others.map((name) => h("button", { type: "button", "data-also": name, "aria-pressed": String(own.includes(name)), onclick: () => flip(name) }, name)));
    scale.replaceChildren(checkbox("Logarithmic", Boolean(state.log), (on) => set({ log: on ? "1" : undefined })));
  }

  /* One line for training and one for validation; several runs have a colour each, and validation is dashed. */
  function linesOf(name, names, at, all) {
    const accent = palette().accent, several = all.length > 1;
    return all.flatMap(([own, found], number) => [["train", accent], ["valid", HEADS[1]]].map(([kind, colour]) => ({
      name: `${several ? `${own} ` : ""}${names.length > 1 ? NAMES[name] ?? name : NAMES[kind]}`, points: series(found, kind, name), dots: kind === "valid",
      colour: several ? HEADS[(number + (names.length > 1 ? at * all.length : 0)) % HEADS.length] : names.length > 1 ? HEADS[at % HEADS.length] : colour, dash: several && kind === "valid" ? "5 3" : null,
    })));
  }

  async function drawCharts() {
    drawAlso();
    const all = [[run, points], ...await Promise.all(chosen().map(async (name) => [name, (await send("training", { run: name, since: 0 })).points]))];
    const columns = getComputedStyle(charts).gridTemplateColumns.split(" ").length;
    const room = Math.max(240, (charts.clientWidth - 24 * (columns - 1)) / columns);
    const updates = all.flatMap(([, found]) => found.map((point) => point.update)), span = updates.length ? [updates.reduce((a, b) => Math.min(a, b)), updates.reduce((a, b) => Math.max(a, b))] : null; // one axis for all
    const drawn = CHARTS.map(([title, names]) => {
      const lines = names.flatMap((name, at) => linesOf(name, names, at, all)).filter((each) => each.points.length);
      return lines.length ? chart(title, lines, room, { span, log: Boolean(state.log) }) : null;
    }).filter(Boolean);
    charts.replaceChildren(...drawn.map((svg) => h("div", { class: "drawing" }, svg)));
  }

  function drawSamples() {
    sampleCard.hidden = !told.length;
    if (!told.length) return;
    const now = Math.min(state.sample === undefined ? told.length - 1 : Number(state.sample), told.length - 1);
    if (sampleBar.dataset.key !== `${run} ${told.length}`) {
      sampleBar.dataset.key = `${run} ${told.length}`;
      sampleBar.replaceChildren(told.length > 1 ? slider("Validation", 0, told.length - 1, 1, now, (at) => `update ${told[at].update}`, (at) => set({ sample: at === told.length - 1 ? undefined : String(at) })) : `Update ${told[0].update}`);
    }
    samples.replaceChildren(h("table", {}, h("tbody", {}, told[now].samples.map((sample) => h("tr", {}, h("td", { class: "words" },
      h("div", { dir: "auto" }, sample.src), h("div", { class: "soft", dir: "auto" }, sample.tgt), h("div", { dir: "auto", class: sample.out === sample.tgt ? "right" : "wrong" }, sample.out || "(empty)")))))),
    h("p", { class: "soft" }, runs.find((each) => each.name === run)?.reads ? "text · right answer · answer of the model at that update" : "source · reference · output of the model at that update"));
  }

  async function drawTime() {
    const own = runs.find((each) => each.name === run);
    timeCard.hidden = !checkpoints.length || !state.text.trim() || (own.reads && !own.attentions);
    if (timeCard.hidden) return undefined;
    const now = Math.max(0, state.time === undefined ? checkpoints.length - 1 : checkpoints.indexOf(state.time));
    if (timeBar.dataset.key !== `${run} ${checkpoints}`) {
      timeBar.dataset.key = `${run} ${checkpoints}`;
      timeBar.replaceChildren(checkpoints.length > 1
        ? slider("Checkpoint", 0, checkpoints.length - 1, 1, now, (at) => checkpoints[at], (at) => set({ time: checkpoints[at] }))
        : h("span", { class: "soft" }, `One checkpoint is kept, ${checkpoints[0]}; train with train.keep=10 to see more.`));
    }
    const mine = (latest += 1);
    const about = { run, text: state.text }, at = checkpoints[now];
    if (own.reads) { // it writes nothing: only its attention changes
      const data = await ask("attention", { ...about, checkpoint: at, masked: {} });
      if (mine === latest) drawAttention(data, at, data.text && ["At ", at, " it said: ", h("b", {}, data.text)]);
      return undefined;
    }
    // One translation for all checkpoints, the best of the run as it was opened: its rows stay where they are.
    const final = (await ask("translate", { ...about, beam: own.beam, n_best: 1, alpha: own.alpha, head: [] })).hypotheses[0];
    const [data, then] = [await ask("attention", { ...about, checkpoint: at, target: final.ids, masked: {}, beam: 1, alpha: own.alpha }),
      await ask("translate", { ...about, checkpoint: at, beam: own.beam, n_best: 1, alpha: own.alpha, head: [] })];
    if (mine !== latest) return final.text;
    if (!data.start) {
      map.replaceChildren(empty("This model has no attention", `At ${at} it wrote: ${then.hypotheses[0].text}`));
      return final.text;
    }
    drawAttention(data, at, ["At ", at, " the model wrote: ", h("b", {}, then.hypotheses[0].text || "(nothing)")]);
    return final.text;
  }

  function drawAttention(data, at, said) {
    const entry = data.attentions.find((each) => each.module === data.start.module);
    const options = { words: merges(data), rows: data.start.when_read ? "read" : "written" };
    const matrix = matrixOf(data, entry, data.start.head === null ? all(entry.heads) : [data.start.head], options);
    readout.replaceChildren(...(said || []));
    map.replaceChildren(heatmap(matrix, { room: map.clientWidth || 480, most: peak(matrix), label: `attention at ${at}`, titles: [rowTitle(entry.kind, options), "looked at"] }));
  }

  async function tick() {
    try {
      if (await look()) { await drawCharts(); drawSamples(); await drawTime(); }
    } catch { /* the next look tells, or the frame does */ }
    timer = setTimeout(tick, EVERY);
  }

  async function update() {
    clearTimeout(timer);
    await look();
    await drawCharts();
    drawSamples();
    const text = await drawTime();
    timer = setTimeout(tick, EVERY);
    return text;
  }

  return {
    update,
    close: () => clearTimeout(timer),
    picture: () => [...[...charts.querySelectorAll("svg")].map((svg) => ({ title: "", svg })), { title: readout.textContent, svg: timeCard.hidden ? null : map.querySelector("svg") }],
  };
}
