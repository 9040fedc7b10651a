/* Controls and cards that views are made of. */

import { h } from "./dom.js";

export function field(name, control, output = null) {
  return h("label", { class: "field" }, h("span", {}, name), control, output);
}

export function select(options, value, change) {
  const found = h("select", { onchange: () => change(found.value) },
    options.map(([key, name]) => h("option", { value: key }, name)));
  found.value = value;
  return found;
}

export function slider(name, from, to, step, value, show, change) {
  const output = h("output", {}, show(value));
  const input = h("input", {
    type: "range", min: from, max: to, step, "aria-label": name,
    oninput: () => { output.textContent = show(Number(input.value)); change(Number(input.value)); },
  });
  input.value = value;
  return field(name, input, output);
}

export const ofAll = (count) => (value) => `${value} of ${count}`;

/* The first slider among some controls, moved by something else. */
export function moved(place, value, show) {
  const input = place.querySelector("input[type=range]");
  input.value = value;
  input.nextSibling.textContent = show(value);
}

export function checkbox(name, checked, change) {
  const input = h("input", { type: "checkbox", checked, onchange: () => change(input.checked) });
  return h("label", { class: "field" }, input, h("span", {}, name));
}

export function segments(label, options, value, change) {
  return h("span", { class: "segments", role: "group", "aria-label": label }, options.map(([key, name]) =>
    h("button", { type: "button", "aria-pressed": String(key === value), "data-key": key, onclick: () => change(key) }, name)));
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", {}, title) : null, ...children);
}

/* A row of a table that can be chosen: by a click anywhere in it, or by its button. */
export function choice(chosen, choose, text, ...cells) {
  return h("tr", { class: "choice", "data-chosen": chosen ? "1" : null, onclick: choose },
    h("td", { class: "words", dir: "auto" }, h("button", { type: "button", class: "plain", "aria-pressed": String(chosen) }, text)),
    cells.map((cell) => h("td", {}, cell)));
}

/* A bar as long as a probability. */
export function bar(share, colour = null) {
  const inner = h("i", {});
  inner.style.width = `${100 * share}%`;
  if (colour) inner.style.background = colour;
  return h("span", { class: "share" }, inner);
}

/* What is said here is read out when it changes. */
export const readout = () => h("p", { class: "readout", "aria-live": "polite" });

export function empty(title, text) {
  return h("div", { class: "card empty" }, h("b", {}, title), h("span", {}, text));
}
