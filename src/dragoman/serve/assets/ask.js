
"use strict";
// What the other parts need: elements, messages, what is remembered, and the server.
const byId = (id) => document.getElementById(id);
const [source, target, text, result] = ["source", "target", "text", "result"].map(byId);
const state = { info: null, key: sessionStorage.getItem("key") || "", shown: null, running: null };

function say(message) { byId("message").textContent = message; }

function make(name, content, settings) {
  const element = Object.assign(document.createElement(name), settings);
  element.append(...[content].flat());
  return element;
}

function remembered(name) {
  try { return localStorage.getItem(name) || ""; } catch { return ""; }
}

function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* a browser that keeps nothing */ }
}

async function ask(path, options) {
  const headers = new Headers((options && options.headers) || {});
  if (state.key) headers.set("Authorization", "Bearer " + state.key);
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) {
    byId("lock").hidden = false;
    const told = state.key ? "This key is not one of the server's. Please type it again." : "";
    throw new Error(told || "Please give a key: whoever runs this server has one for you.");
  }
  throw new Error(body.error || "The server answered with status " + response.status + ".");
}

function post(path, body, more) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), ...more });
}

async function copy(value) {
  if (navigator.clipboard) return navigator.clipboard.writeText(value);
  const area = make("textarea", []); // an address that is neither https nor localhost
  area.value = value;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("The browser does not let this page copy.");
}

function save(blob, name) {
  const link = make("a", [], { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
