
// The translation of the text: asked for, shown sentence by sentence, linked to the source.
const UNSURE = 0.5;

function count() {
  const length = [...text.value].length;
  const limit = state.info ? state.info.characters : 0;
  byId("count").textContent = length ? length.toLocaleString() + " of " + limit.toLocaleString() : "";
  byId("clear").hidden = !length;
}

function clear() {
  state.shown = null;
  result.replaceChildren();
  byId("mirror").replaceChildren();
  byId("note").textContent = "";
  byId("copy").hidden = byId("legend").hidden = true;
  result.classList.remove("waiting");
  closeCard();
}

async function translate() {
  if (state.running) state.running.abort();
  if (!state.info) return;
  if (!text.value.trim()) { clear(); say(""); return; }
  const length = [...text.value].length;
  if (length > state.info.characters) {
    result.classList.add("waiting"); // what stands there is of an earlier text
    const most = state.info.characters.toLocaleString();
    say("The text has " + length.toLocaleString() + " characters, and this server translates " + most
      + " at a time. Shorten it, or send it as a document.");
    return;
  }
  const own = state.running = new AbortController();
  result.classList.add("waiting");
  try {
    const glossary = terms();
    const asked = { texts: [text.value], source: source.value, target: target.value, details: true, glossary };
    const response = await post("/api/v1/translate", asked, { signal: own.signal });
    const answer = await response.json();
    if (own === state.running) show(answer.translations[0], asked.texts[0]);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message); // the last translation stays, faded
  }
}

function located(whole, parts) {
  // Where each part stands in the whole, one after the other; null where one is not to be found.
  let at = 0;
  const found = parts.map((part) => {
    const start = whole.indexOf(part, at);
    at = start < 0 ? at : start + part.length;
    return start;
  });
  return found.includes(-1) ? null : found;
}

function show(found, asked) {
  say("");
  result.classList.remove("waiting");
  closeCard();
  const sources = located(asked, found.sentences.map((one) => one.source));
  const targets = located(found.text, found.sentences.map((one) => one.text));
  const linked = sources && targets && found.sentences.length > 0;
  const whole = { source: asked.trim(), text: found.text, source_words: [], text_words: [], alignment: null };
  const sentences = (linked ? found.sentences : [whole]).map((one, number) => ({
    ...one, from: linked ? sources[number] : 0, at: linked ? targets[number] : 0,
  }));
  state.shown = { source: found.source, target: found.target, asked, text: found.text, sentences };
  draw();
  const notes = [];
  if (source.value === "auto") notes.push("from " + nameOf(found.source));
  if (found.from_memory) notes.push("from the translation memory");
  byId("note").textContent = notes.join(" · ");
  byId("copy").hidden = !found.text;
}

function shownText() { return state.shown.text; }

function pieces(words, content, offset, number, side) {
  // A text with a span around each word.
  const nodes = [];
  let at = 0;
  words.forEach(([start, end], word) => {
    nodes.push(content.slice(at, start), make("span", content.slice(start, end), { className: "word" }));
    Object.assign(nodes.at(-1).dataset, { sentence: number, word, side });
    at = end;
  });
  nodes.push(content.slice(at));
  return nodes;
}

function draw() {
  const { sentences, asked, text: whole, target: language } = state.shown;
  result.lang = language;
  const drawn = [], mirrored = [];
  let at = 0, from = 0, unsure = false, kept = false;
  sentences.forEach((one, number) => {
    // Words are counted in characters; JavaScript counts halves of those beyond U+FFFF.
    const inText = units(one.text, one.text_words), inSource = units(one.source, one.source_words);
    const span = make("span", pieces(inText, one.text, at, number, "target"),
      { className: "sentence", tabIndex: 0, role: "button" });
    span.dataset.sentence = number;
    if (one.from_memory) span.classList.add("memory");
    kept ||= one.from_memory;
    (one.confidence || []).forEach((sure, word) => {
      const element = span.querySelector('[data-word="' + word + '"]');
      if (sure >= UNSURE || !element) return;
      unsure = true;
      element.classList.add("unsure");
      element.title = "probability " + Math.round(100 * sure) + "%";
    });
    drawn.push(whole.slice(at, one.at), span);
    mirrored.push(asked.slice(from, one.from), ...pieces(inSource, one.source, from, number, "source"));
    [at, from] = [one.at + one.text.length, one.from + one.source.length];
  });
  result.replaceChildren(...drawn, whole.slice(at));
  byId("mirror").replaceChildren(...mirrored, asked.slice(from), "\n");
  byId("legend").hidden = !whole;
  byId("legend-memory").hidden = !kept;
  byId("legend-unsure").hidden = !unsure;
}

function units(content, words) {
  if (!/[\ud800-\udbff]/.test(content)) return words;
  const places = [0];
  for (const character of content) places.push(places.at(-1) + character.length);
  return words.map(([start, end]) => [places[start], places[end]]);
}

function link(word) {
  // Marks what a word is linked to, in the source and in the translation.
  document.querySelectorAll(".linked").forEach((one) => one.classList.remove("linked"));
  const mirror = byId("mirror");
  if (!word || text.value !== state.shown?.asked) return;
  const { sentence, side } = word.dataset, number = Number(word.dataset.word);
  const links = state.shown.sentences[sentence].alignment || [];
  const mine = side === "source" ? 0 : 1;
  const others = links.filter((one) => one[mine] === number).map((one) => one[1 - mine]);
  const find = (root, one) =>
    root.querySelector('[data-sentence="' + sentence + '"][data-word="' + one + '"]');
  if (!others.length) return;
  word.classList.add("linked");
  others.forEach((one) => find(side === "source" ? result : mirror, one)?.classList.add("linked"));
}

function wordAt(x, y) {
  // The textarea lies above its mirror, so the words of the source are found by where they stand.
  return [...byId("mirror").querySelectorAll(".word")].find((word) => [...word.getClientRects()].some(
    (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom)) || null;
}
