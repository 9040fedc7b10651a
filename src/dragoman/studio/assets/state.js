/* What is shown stands in the address, behind the #: a link restores it. */

const NUMBERS = { beam: 5, alpha: 1, threshold: 0.1, step: 0, position: 0, head: 0 };
const listeners = new Set();

export const state = { view: "translate", run: "", text: "" };
let defaults = {}, usual = () => defaults;

/* What is not in the address; a value that is as here is left out of it. `ofRun` are the settings that a run has of its
   own, such as its beam. */
export function begin(values, ofRun = () => ({})) {
  defaults = { ...NUMBERS, ...values };
  usual = (run) => ({ ...defaults, ...ofRun(run) });
  read();
}

export function read() {
  const at = location.hash.indexOf("?");
  const view = location.hash.slice(1, at < 0 ? undefined : at), query = at < 0 ? "" : location.hash.slice(at + 1);
  const found = Object.fromEntries(new URLSearchParams(query));
  for (const name of Object.keys(NUMBERS)) {
    if (name in found) found[name] = Number.isFinite(Number(found[name])) ? Number(found[name]) : defaults[name];
  }
  for (const name of Object.keys(state)) delete state[name];
  Object.assign(state, usual(found.run ?? defaults.run), found, { view: view || "translate" });
}

export function link() {
  const query = new URLSearchParams(), own = usual(state.run);
  for (const [name, value] of Object.entries(state)) {
    if (name !== "view" && value !== undefined && value !== null && value !== "" && value !== own[name]) query.set(name, value);
  }
  if (state.text) query.set("text", state.text);
  if (state.run) query.set("run", state.run);
  return `#${state.view}?${query}`;
}

export function set(changes) {
  const other = "view" in changes && changes.view !== state.view;
  Object.assign(state, changes);
  history[other ? "pushState" : "replaceState"](null, "", link());
  for (const listener of listeners) listener(changes);
}

export function listen(listener) {
  listeners.add(listener);
}

/* Lists in the address: 1.2.3 */
export const list = (text) => (text ? String(text).split(".").map(Number).filter(Number.isInteger) : []);
export const told = (values) => [...values].join(".");

/* {module: heads} in the address: module~1.2!module~3 */
export const heads = (text) => Object.fromEntries((text || "").split("!").filter(Boolean)
  .map((part) => part.split("~")).filter((part) => part.length === 2).map(([name, own]) => [name, list(own)]));
export const toldHeads = (found) => Object.entries(found).filter(([, own]) => own.length)
  .map(([name, own]) => `${name}~${told(own)}`).join("!");
