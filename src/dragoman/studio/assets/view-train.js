/* Train: from files of this machine to a run that can be looked into. Everything is done by `dragoman` itself, as in a
   terminal; this page starts it, shows what it says, and asks it to stop. */

import { send } from "./api.js";
import { card, field } from "./controls.js";
import { h } from "./dom.js";

const EVERY = 1500; // milliseconds between two looks
const ENDS = { 0: "done", 130: "stopped" };
const size = (bytes) => (bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(bytes / 1e3))} kB`);

export function create(root) {
  const chosen = new Set(), files = h("div", { class: "files", role: "group", "aria-label": "Files" }), where = h("p", { class: "soft" });
  const name = h("input", { type: "text", value: "model", "aria-label": "Name of the run", maxlength: 80 });
  const minutes = h("input", { type: "text", inputmode: "decimal", value: "10", "aria-label": "Minutes", size: 6 });
  const said = h("pre", { class: "said", tabindex: 0, role: "log", "aria-label": "What dragoman says" }), status = h("p", { role: "status" });
  const filter = h("input", { type: "text", "aria-label": "Show files whose name contains", placeholder: "filter", oninput: () => drawFiles() });
  const button = (id, text, act) => h("button", { type: "button", id, onclick: () => run(act) }, text);
  const stop = button("stop", "Stop", () => post("stop")), made = h("div", {});
  root.append(
    card("1  Files", where, filter, files, h("p", {}, button("report", "What is in them?", async () => tell(await post("report", { files: [...chosen] }))))),
    card("2  Plan and training", h("div", { class: "bar" }, field("Run", name), field("Minutes", minutes),
      button("plan", "Show the plan", async () => tell(await post("plan", asked()))), button("start", "Start", () => post("start", asked())), stop), status, said),
    card("3  Runs", h("p", { class: "soft" }, "«Test» uses the chosen files. «Export» writes a CTranslate2 directory with 8-bit weights into the run. «Serve» opens a page for translators, for this machine alone, until «Stop»."), made));
  let found = [], base = "", timer = 0;

  const post = (path, body = {}) => send(`workshop/${path}`, body, undefined, { "X-Studio-Token": sessionStorage.getItem("dragoman-token") ?? "" });
  const asked = () => ({ files: [...chosen], name: name.value.trim(), minutes: Number(minutes.value) || 10 });
  const tell = ({ text }) => { said.textContent = text; };

  /* Do something, and say what went wrong if it did. */
  async function run(act) {
    status.textContent = "…";
    try {
      await act();
      status.textContent = "";
      await look();
    } catch (error) {
      status.textContent = error.message;
    }
  }

  function drawFiles() {
    files.replaceChildren(...found.filter((file) => file.path.includes(filter.value)).slice(0, 100).map((file) => {
      const box = h("input", { type: "checkbox", checked: chosen.has(file.path), onchange: () => (box.checked ? chosen.add(file.path) : chosen.delete(file.path)) });
      return h("label", { class: "field" }, box, h("span", {}, file.path.startsWith(base) ? file.path.slice(base.length) : file.path), h("span", { class: "soft" }, size(file.bytes)));
    }));
  }

  function drawRuns({ runs, running }) {
    if (made.dataset.key === `${runs} ${running}`) return;
    made.dataset.key = `${runs} ${running}`;
    const files = () => ({ files: [...chosen] });
    made.replaceChildren(...runs.map((name) => {
      const does = (text, why, act, off = running) => h("button", { type: "button", disabled: off, "data-act": text, "aria-label": `${text}: ${name}`, title: why, onclick: () => run(act) }, text);
      return h("div", { class: "bar", role: "group", "aria-label": name }, h("b", {}, name),
        does("Resume", "Continue the training", () => post("resume", { name })),
        does("Test", "BLEU, chrF and TER on the chosen files", () => post("evaluate", { name, ...files() })),
        does("Sentences", "The chosen files, sentence by sentence", async () => visit("data", name, (await post("test", files())).name), false),
        does("Export", "For a CPU, without PyTorch", () => post("export", { name })),
        does("Serve", "A page for translators", () => post("serve", { name })),
        does("Look inside", "Translations, attention, training", () => visit("", name), false));
    }), runs.length ? "" : h("span", { class: "soft" }, "None yet."));
  }

  /* A view of a run; the frame asks for the runs anew. */
  async function visit(view, name, test = "") {
    const opened = await post("open", { name });
    location.hash = `#${view}?${new URLSearchParams({ run: opened.name, ...(test ? { test } : {}) })}`;
    location.reload();
  }

  async function look() {
    clearTimeout(timer);
    const state = await post("state");
    stop.disabled = !state.running;
    if (state.what) {
      const end = said.scrollTop + said.clientHeight >= said.scrollHeight - 8;
      if (state.running || state.text) said.textContent = state.text;
      if (end) said.scrollTop = said.scrollHeight;
      status.replaceChildren(`dragoman ${state.what}: ${state.running ? "running" : ENDS[state.code] ?? `ended with status ${state.code}`} `,
        state.address ? h("a", { href: state.address, target: "_blank", rel: "noopener", id: "service" }, state.address) : "");
    }
    drawRuns(state);
    if (state.running) timer = setTimeout(() => look().catch(() => {}), EVERY);
  }

  async function update() {
    const told = await post("files");
    found = told.files;
    base = told.roots.length === 1 ? `${told.roots[0]}/` : ""; // the files of one directory are called as in it
    where.textContent = `Files below ${told.roots.join(", ")}${told.more ? "; there are more, give a smaller directory with --data" : ""}. Choose source and target, or a table of pairs.`;
    drawFiles();
    await look();
    return "";
  }

  return { update, close: () => clearTimeout(timer), picture: () => [] };
}
