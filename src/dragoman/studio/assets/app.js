/* The frame around the views: which one is shown, for which run and sentence, in which theme; keys and files. */

import { dropped, send, turn as nextTurn } from "./api.js";
import { h } from "./dom.js";
import { composed, savePng, saveSvg } from "./export.js";
import { begin, link, listen, read, set, state } from "./state.js";

const VIEWS = [["translate", "Translate"], ["attention", "Attention"], ["beam", "Beam"], ["head", "Inside one head"], ["compare", "Compare"], ["training", "Training"]];
const KEYS = [["1 – 6", "the views"], ["/", "the sentence"], ["d", "light or dark"], ["s, p, l", "save SVG, save PNG, copy link"], ["← → ↑ ↓", "move inside a drawing that has the focus"], ["?", "this list"]];
const at = (id) => document.getElementById(id);
const loaded = new Map();
let runs = [], view = null, viewName = "", viewRun = "", turn = 0;

/* The search of a run as it was trained to be used: what the page shows is what `translate` gives. */
function settingsOf(name) {
  const run = runs.find((each) => each.name === name);
  return run ? { beam: run.beam, alpha: run.alpha } : {};
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
}

function problem(text) {
  at("problem").hidden = !text;
  at("problem").textContent = text;
}

function grow() {
  const area = at("text");
  area.style.height = "auto";
  area.style.height = `${Math.min(132, area.scrollHeight)}px`; // five lines; more of them scroll
}

function drawFrame() {
  const own = runs.find((run) => run.name === state.run) ?? runs[0];
  if (at("text").value !== state.text) at("text").value = state.text;
  grow();
  at("run").value = state.run;
  for (const tab of at("views").children) {
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  at("run").parentElement.hidden = state.view === "compare"; // it has its own two
  at("text-label").textContent = own.generates ? "Prompt" : own.languages[0] || "Source";
  at("about").textContent = state.view === "compare" ? "" : `${own.name}: ${own.model}, ${own.parameters ? `${(own.parameters / 1e6).toFixed(own.parameters < 1e5 ? 3 : 1)} M parameters, ` : ""}checkpoint ${state.checkpoint ?? own.checkpoint}`;
  document.title = `${VIEWS.find(([name]) => name === state.view)?.[1] ?? ""} · dragoman studio`;
}

/* What the model wrote, as soon as it is known. */
function wrote(text) {
  at("written").textContent = text;
}

/* Draw what the address says. What comes too late, because something else was asked meanwhile, is not shown. */
async function show() {
  const own = (turn += 1);
  nextTurn();
  if (!VIEWS.some(([name]) => name === state.view)) state.view = "translate";
  if (!runs.some((run) => run.name === state.run)) state.run = runs[0].name;
  drawFrame();
  at("view").setAttribute("aria-busy", "true");
  try {
    if (viewName !== state.view || viewRun !== state.run) { // its sliders stand where the run's own settings are
      const module = loaded.get(state.view) ?? await import(`./view-${state.view}.js`);
      loaded.set(state.view, module);
      if (own !== turn) return;
      view?.close?.();
      at("view").replaceChildren();
      [viewName, viewRun] = [state.view, state.run];
      view = module.create(at("view"), runs, wrote);
    }
    if (!state.text.trim() && state.view !== "training") {
      wrote("");
      problem("Type a sentence to begin with.");
      return;
    }
    const text = await view.update();
    if (own !== turn) return;
    if (text !== undefined) wrote(text);
    problem("");
  } catch (error) {
    if (!dropped(error) && own === turn) problem(error.message);
  } finally {
    if (own === turn) at("view").setAttribute("aria-busy", "false");
  }
}

function redraw() {
  viewName = "";
  show();
}

function choose(name) {
  set({ view: name });
}

async function exported(write) {
  const parts = view?.picture() ?? [];
  if (!parts.some((part) => part.svg)) { problem("There is nothing to save in this view yet."); return; }
  await write(composed(parts, state.view === "training" ? state.run : `${state.text}  →  ${at("written").textContent}`), `dragoman-${state.view}`);
}

async function copyLink() {
  const address = location.origin + location.pathname + link();
  try {
    await navigator.clipboard.writeText(address);
    at("link").textContent = "Copied";
  } catch {
    history.replaceState(null, "", link()); // no clipboard here: the address line has it
    at("link").textContent = "It is in the address line";
  }
  setTimeout(() => { at("link").textContent = "Copy link"; }, 1500);
}

function keys() {
  at("keys").replaceChildren(h("h2", {}, "Keys"), h("dl", {}, KEYS.flatMap(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])),
    h("button", { type: "button", onclick: () => at("keys").close() }, "Close"));
  at("keys").showModal();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const number = Number(event.key);
  if (number >= 1 && number <= VIEWS.length) choose(VIEWS[number - 1][0]);
  else if (event.key === "/") { at("text").focus(); at("text").select(); event.preventDefault(); }
  else if (event.key === "d") at("theme").click();
  else if (event.key === "s") at("svg").click();
  else if (event.key === "p") at("png").click();
  else if (event.key === "l") at("link").click();
  else if (event.key === "?") keys();
}

function prepare() {
  at("views").append(...VIEWS.map(([name, title]) => h("button", { type: "button", role: "tab", "data-view": name, onclick: () => choose(name) }, title)));
  at("views").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const now = VIEWS.findIndex(([name]) => name === state.view);
    choose(VIEWS[(now + step + VIEWS.length) % VIEWS.length][0]);
    at("views").querySelector('[aria-selected="true"]').focus();
  });
  at("run").append(...runs.map((run) => h("option", { value: run.name }, run.name)));
  const example = (name) => runs.find((run) => run.name === name).text;
  at("run").addEventListener("change", () => set({ run: at("run").value,
    text: state.text === example(state.run) ? example(at("run").value) : state.text, // another language, another sentence
    ...settingsOf(at("run").value), module: undefined, heads: "", masked: "", target: "", forced: "", at: undefined, checkpoint: undefined }));
  let waiting = 0;
  at("text").addEventListener("input", () => {
    grow();
    clearTimeout(waiting);
    waiting = setTimeout(() => set({ text: at("text").value.replaceAll("\n", " "), target: "", forced: "", at: undefined, position: 0 }), 200);
  });
  at("text").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); at("text").blur(); } });
  at("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    redraw();
  });
  at("help").addEventListener("click", keys);
  at("svg").addEventListener("click", () => exported(saveSvg));
  at("png").addEventListener("click", () => exported(savePng));
  at("link").addEventListener("click", copyLink);
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", () => { read(); show(); });
  let width = window.innerWidth, timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 150);
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { setTheme(dark.matches ? "dark" : "light"); redraw(); });
}

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
try {
  ({ runs } = await send("runs", null));
  begin({ run: runs[0].name, text: runs[0].text }, settingsOf);
  prepare();
  listen(show);
  await show();
} catch (error) {
  problem(error.message);
}
