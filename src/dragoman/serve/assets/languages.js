
// Which languages can be chosen, and which were chosen last.
function fill(select, codes, chosen) {
  select.replaceChildren(...codes.map(([code, name]) => new Option(name, code)));
  if (codes.some(([code]) => code === chosen)) select.value = chosen;
}

function sources() {
  const found = new Map(state.info.pairs.map((pair) => [pair.source, pair.source_name]));
  return found.size > 1 ? [["auto", "Detect language"], ...found] : [...found];
}

function targets(from) {
  const pairs = state.info.pairs.filter((pair) => from === "auto" || pair.source === from);
  const named = (pair) => pair.target_name + (from !== "auto" && pair.zero_shot ? " (zero-shot)" : "");
  return [...new Map(pairs.map((pair) => [pair.target, named(pair)]))];
}

function canSwap() {
  return state.info.pairs.some((pair) => pair.source === target.value && pair.target === source.value);
}

function nameOf(code) {
  const pair = state.info.pairs.find((one) => one.source === code);
  return pair ? pair.source_name : code;
}

function chosen() {
  fill(target, targets(source.value), target.value);
  languagesChanged();
}

function languagesChanged() {
  byId("swap").disabled = !canSwap();
  remember("languages", source.value + " " + target.value);
}

function showLanguages() {
  const [from, to] = remembered("languages").split(" ");
  fill(source, sources(), source.value || from);
  fill(target, targets(source.value), target.value || to);
  languagesChanged();
}

function swap() {
  const [from, to] = [source.value, target.value];
  if (state.shown) text.value = shownText();
  source.value = to;
  fill(target, targets(to), from);
  languagesChanged();
  count();
  translate();
}
