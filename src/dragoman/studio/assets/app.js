/* The frame around the views: which one is shown, for which run and sentence, in which theme; keys and files. */

import { dropped, send, turn as nextTurn } from "./api.js";
import { checkbox } from "./controls.js";
import { h } from "./dom.js";
import { composed, savePng, saveSvg } from "./export.js";
import { kept, keep } from "./kept.js";
import { drawLesson } from "./lesson.js";
import { begin, link, listen, read, set, state } from "./state.js";
import { know, runOf, titleOf, viewsOf } from "./views.js";

const KEYS = [["1 – 9", "the views, from left to right"], ["/", "the sentence"], ["d", "light or dark"], ["z", "large type"], ["s, p, l", "save SVG, save PNG, copy link"], ["← → ↑ ↓", "move inside a drawing that has the focus"], ["?", "this list"]];
const at = (id) => document.getElementById(id);
const loaded = new Map();
let runs = [], lessons = {}, view = null, viewName = "", viewRun = "", turn = 0;

/* A run begins with a sentence of its own, and with its search as it was trained to be used: what the page shows is what
   `translate` gives. */
function settingsOf(name) {
  const run = runs.find((each) => each.name === name);
  return run ? { text: run.text, beam: run.beam ?? 5, alpha: run.alpha ?? 1 } : {};
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
}

function setLarge(on) {
  document.documentElement.toggleAttribute("data-large", on);
  at("large").setAttribute("aria-pressed", String(on));
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

/* The tabs of what can be looked into in this run. */
function drawTabs(own) {
  const names = viewsOf(own), key = names.map((name) => titleOf(name, own)).join();
  if (at("views").dataset.key !== key) {
    at("views").dataset.key = key;
    at("views").replaceChildren(...names.map((name) => h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", "data-view": name, onclick: () => choose(name) }, titleOf(name, own))));
  }
  for (const tab of at("views").children) {
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  reveal();
}

/* The chosen tab is seen, also when a scroll bar has made the window narrower. */
function reveal() {
  at("views").querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  cue();
}

/* Whether there are tabs beyond the right edge. */
function cue() {
  const { scrollLeft, clientWidth, scrollWidth } = at("views");
  at("views").toggleAttribute("data-more", scrollLeft + clientWidth < scrollWidth - 10);
}

/* The code of a language, where it is known. */
const language = (run, side, name) => (["", "src", "tgt"].includes(run.languages[side]) ? name : run.languages[side]);

function drawFrame() {
  const own = runOf(state.view === "compare" ? (state.left ?? state.run).split("@")[0] : state.run);
  at("run").value = state.run;
  drawTabs(own);
  drawLesson(at("lesson"), lessons, runs);
  at("view").setAttribute("aria-labelledby", `tab-${state.view}`);
  at("run").parentElement.hidden = state.view === "compare" || !runs.length; // it has its own two
  at("sentence").hidden = Boolean(own.sees) || ["train", "data"].includes(state.view);
  const reads = own.reads || (own.generates && state.view === "read"); // nothing is written
  if (at("text").value !== state.text) at("text").value = state.text;
  grow(); // where it is seen: what is hidden has no height
  at("text-label").textContent = reads ? "Text" : own.generates ? "Prompt" : own.fills ? "Text" : language(own, 0, "Source");
  at("written-label").textContent = own.generates ? "Text" : reads ? "" : own.fills ? "Filled" : language(own, 1, "Target");
  at("written").hidden = at("written-label").hidden = reads;
  at("exports").hidden = state.view === "train";
  at("about").textContent = own.none ? "No run is open." : ["compare", "train"].includes(state.view) ? "" : `${own.name}: ${own.model}, ${own.parameters ? `${(own.parameters / 1e6).toFixed(own.parameters < 1e5 ? 3 : 1)} M parameters, ` : ""}checkpoint ${state.checkpoint ?? own.checkpoint}`;
  at("title").textContent = own.none ? titleOf(state.view, own) : `${titleOf(state.view, own)}: ${own.name}`;
  document.title = `${titleOf(state.view, own)} · dragoman studio`;
}

/* What the model wrote, as soon as it is known. */
function wrote(text) {
  at("written").textContent = text;
}

/* Draw what the address says. What comes too late, because something else was asked meanwhile, is not shown. */
async function show() {
  const own = (turn += 1);
  nextTurn();
  state.run = runOf(state.run).name;
  const views = viewsOf(runOf(state.run));
  if (!views.includes(state.view)) [state.view] = views;
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
    if (!state.text.trim() && !runOf(state.run).sees && !["training", "data", "train"].includes(state.view)) {
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
    if (own === turn) {
      reach();
      at("view").setAttribute("aria-busy", "false");
    }
  }
}

/* What scrolls and has nothing in it that takes the focus takes it itself, so that arrow keys scroll it. */
function reach() {
  for (const box of at("view").querySelectorAll(".drawing, .scrolls")) {
    const wide = box.scrollWidth > box.clientWidth + 1 && !box.querySelector("[tabindex], button");
    if (wide) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
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
    h("p", {}, checkbox("Use single keys", kept("keys") !== "off", (on) => keep("keys", on ? "on" : "off"))),
    h("button", { type: "button", onclick: () => at("keys").close() }, "Close"));
  at("keys").showModal();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, select, dialog, input[type=text]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (kept("keys") === "off") return;
  const number = Number(event.key), views = viewsOf(runOf(state.run));
  if (number >= 1 && number <= views.length) choose(views[number - 1]);
  else if (event.key === "/") { at("text").focus(); at("text").select(); event.preventDefault(); }
  else if (event.key === "?") keys();
  else at({ d: "theme", z: "large", s: "svg", p: "png", l: "link" }[event.key] ?? "")?.click();
}

function prepareViews() {
  at("views").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], views = viewsOf(runOf(state.run));
    if (!step) return;
    choose(views[(views.indexOf(state.view) + step + views.length) % views.length]);
    at("views").querySelector('[aria-selected="true"]').focus();
  });
  at("views").addEventListener("scroll", cue);
  new ResizeObserver(reveal).observe(at("views"));
  at("run").append(...runs.map((run) => h("option", { value: run.name }, run.name)));
  const example = (name) => runOf(name).text;
  at("run").addEventListener("change", () => set({ run: at("run").value, ...settingsOf(at("run").value),
    text: state.text === example(state.run) ? example(at("run").value) : state.text, // another language, another sentence
    module: undefined, heads: "", masked: "", target: "", forced: "", gaps: "", at: undefined, checkpoint: undefined, example: undefined, layer: undefined, part: undefined, channel: undefined }));
}

function prepareText() {
  let waiting = 0;
  at("text").addEventListener("input", () => {
    grow();
    clearTimeout(waiting);
    waiting = setTimeout(() => set({ text: at("text").value.replaceAll("\n", " "), target: "", forced: "", gaps: "", at: undefined, position: 0 }), 200);
  });
  at("text").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); at("text").blur(); } });
}

/* Light or dark: as was chosen here before, else as the system. */
function prepareLook() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(kept("theme") ?? (dark.matches ? "dark" : "light"));
  setLarge(kept("large") === "on");
  at("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    keep("theme", document.documentElement.dataset.theme);
    redraw();
  });
  at("large").addEventListener("click", () => {
    keep("large", kept("large") === "on" ? "off" : "on");
    setLarge(kept("large") === "on");
    redraw();
  });
  dark.addEventListener("change", () => { if (!kept("theme")) { setTheme(dark.matches ? "dark" : "light"); redraw(); } });
}

/* The token of the printed address leaves it at once: links are shared. */
function keepToken() {
  if (!state.token) return;
  try {
    sessionStorage.setItem("dragoman-token", state.token);
  } catch { /* then nothing can be trained from here */ }
  delete state.token;
  history.replaceState(null, "", link());
}

function prepare() {
  prepareViews();
  prepareText();
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
}

prepareLook();
try {
  const found = await send("runs", null);
  ({ runs, lessons } = found);
  know(found);
  begin({ run: runOf("").name, text: runOf("").text }, settingsOf);
  keepToken();
  prepare();
  listen(show);
  await show();
  if (state.lesson && state.page === undefined) at("lesson-here")?.click(); // it begins with a run that suits its first page
} catch (error) {
  problem(error.message);
}
