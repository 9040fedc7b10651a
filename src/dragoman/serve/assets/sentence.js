
// The card of a sentence: other words, other translations, the memory, and a translation of one's own.
let open = null; // the number of the sentence

function closeCard() {
  open = null;
  byId("card").hidden = true;
  result.querySelectorAll(".chosen").forEach((one) => one.classList.remove("chosen"));
}

function openCard(number, word) {
  closeCard();
  const one = state.shown.sentences[number];
  open = number;
  byId("card").hidden = false;
  result.querySelector('.sentence[data-sentence="' + number + '"]').classList.add("chosen");
  byId("card-source").textContent = one.source;
  byId("card-source").lang = state.shown.source;
  byId("edit").value = one.text;
  byId("edit").lang = state.shown.target;
  byId("saved").textContent = "";
  byId("save").hidden = !state.info.corrections;
  const words = units(one.text, one.text_words).map(([start, end]) => one.text.slice(start, end));
  byId("card-words").replaceChildren(...["Whole sentence", ...words].map((told, place) => {
    const button = make("button", told, { type: "button", ariaPressed: "false" });
    button.addEventListener("click", () => others(number, place ? place - 1 : undefined));
    return button;
  }));
  others(number, word);
  byId("matches-side").hidden = !hasMemory();
  if (hasMemory()) matches(number);
}

function hasMemory() {
  const own = language();
  return state.info.corrections
    || state.info.pairs.some((pair) => pair.source === own.source && pair.target === own.target && pair.memory);
}

function language() { return { source: state.shown.source, target: state.shown.target }; }

async function others(number, chosen) {
  // Of the sentence, or, where a word is chosen, of the rest from that word on.
  const one = state.shown.sentences[number], list = byId("others");
  const place = chosen === undefined ? null : units(one.text, one.text_words)[chosen];
  const pressed = chosen === undefined ? 0 : chosen + 1;
  [...byId("card-words").children].forEach((button, own) => { button.ariaPressed = String(own === pressed); });
  byId("others-title").textContent =
    place ? "Instead of «" + one.text.slice(...place) + "»" : "Other translations";
  list.replaceChildren(make("li", "…"));
  try {
    const prefix = place ? one.text.slice(0, place[0]) : "";
    const response = await post("/api/v1/alternatives", { text: one.source, ...language(), prefix });
    const word = place ? one.text.slice(...place) : null, seen = new Set([word]);
    const found = (await response.json()).filter((other) =>
      other.text !== one.text && !(word && seen.has(other.next)) && seen.add(other.next));
    if (open !== number) return;
    const rows = found.map((other) => choice(other.text, place ? other.next : null));
    list.replaceChildren(...(rows.length ? rows : [make("li", "None that the model finds likely.")]));
  } catch (error) {
    list.replaceChildren(make("li", error.message));
  }
}

function choice(whole, word) {
  const shown = make("span", word ? [make("strong", word), " · " + whole] : whole, { dir: "auto" });
  const button = make("button", "Use", { type: "button", ariaLabel: "Use: " + whole });
  button.addEventListener("click", () => take(whole));
  return make("li", [shown, button]);
}

async function matches(number) {
  const one = state.shown.sentences[number], list = byId("matches");
  const query = new URLSearchParams({ ...language(), text: one.source });
  list.replaceChildren(make("li", "…"));
  try {
    const found = await (await ask("/api/v1/memory?" + query)).json();
    if (open !== number) return;
    list.replaceChildren(...(found.length ? found.map(match) : [make("li", "Nothing similar.")]));
  } catch (error) {
    list.replaceChildren(make("li", error.message));
  }
}

function match(found) {
  const names = { same: "span", removed: "del", added: "ins" };
  const difference = found.difference.map((part) => make(names[part.kind], part.text));
  const button = make("button", "Use", { type: "button", ariaLabel: "Use: " + found.target });
  button.addEventListener("click", () => take(found.target));
  const told = make("span", found.target, { dir: "auto" });
  return make("li", [
    make("div", [make("span", Math.floor(found.quality) + "%"), button], { className: "row" }),
    make("span", difference, { dir: "auto", className: "difference" }), told,
  ]);
}

function take(value) {
  byId("edit").value = value;
  apply();
}

function apply() {
  // The translation of one's own stands in the place of the model's, until the text is translated again.
  const number = open, own = state.shown, one = own.sentences[number], value = byId("edit").value.trim();
  if (!value || value === one.text) return;
  own.text = own.text.slice(0, one.at) + value + own.text.slice(one.at + one.text.length);
  own.sentences.slice(number + 1).forEach((other) => { other.at += value.length - one.text.length; });
  Object.assign(one, { text: value, text_words: wordsOf(value), alignment: null, confidence: null });
  draw();
  openCard(number);
}

function wordsOf(value) {
  const places = [], found = /\S+/gu;
  const characters = (end) => Array.from(value.slice(0, end)).length; // code points
  for (const word of value.matchAll(found)) {
    places.push([characters(word.index), characters(word.index + word[0].length)]);
  }
  return places;
}

async function saveCorrection() {
  const one = state.shown.sentences[open], translation = byId("edit").value.trim();
  try {
    await post("/api/v1/corrections", { ...language(), text: one.source, translation });
    apply();
    byId("saved").textContent = "Saved: from now on this server answers with it.";
  } catch (error) {
    byId("saved").textContent = error.message;
  }
}
