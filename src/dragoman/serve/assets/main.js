
// Start, and what a person does.
let timer = 0;

async function start() {
  try {
    state.info = await (await ask("/api/v1/languages")).json();
  } catch (error) {
    say(error.message);
    document.body.classList.add("locked");
    byId("key").select();
    return;
  }
  if (state.key) sessionStorage.setItem("key", state.key); // for as long as this tab is open
  say("");
  byId("lock").hidden = true;
  document.body.classList.remove("locked");
  showLanguages();
  const suffixes = state.info.document_suffixes.map((suffix) => suffix.slice(1)).join(", ");
  byId("suffixes").textContent = "Formats: " + suffixes + ".";
  byId("file").accept = state.info.document_suffixes.join(",");
  byId("learnt").hidden = !state.info.corrections;
  count();
  translate();
}

function terms() {
  const lines = byId("glossary").value.split("\n").map((line) => line.split("="));
  const found = lines.filter((parts) => parts.length > 1 && parts[0].trim());
  return Object.fromEntries(found.map(([term, ...rest]) => [term.trim(), rest.join("=").trim()]));
}

function termsChanged() {
  const number = Object.keys(terms()).length;
  byId("terms-count").textContent = number ? "(" + number + ")" : "";
  remember("glossary", byId("glossary").value);
}

function soon() { count(); link(null); clearTimeout(timer); timer = setTimeout(translate, 350); }

text.addEventListener("input", soon);
text.addEventListener("scroll", () => { byId("mirror").scrollTop = text.scrollTop; });
text.addEventListener("mousemove", (event) => link(wordAt(event.clientX, event.clientY)));
result.addEventListener("mouseover", (event) => link(event.target.closest(".word")));
[text, result].forEach((one) => one.addEventListener("mouseleave", () => link(null)));
source.addEventListener("change", () => { chosen(); translate(); });
target.addEventListener("change", () => { languagesChanged(); translate(); });
byId("swap").addEventListener("click", swap);
byId("clear").addEventListener("click", () => { text.value = ""; soon(); text.focus(); });
byId("copy").addEventListener("click", async () => {
  try {
    await copy(shownText());
  } catch (error) {
    say(error.message);
    return;
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
});

function chooseSentence(event) {
  const sentence = event.target.closest(".sentence"), word = event.target.closest(".word");
  if (!sentence || (event.type === "click" && String(getSelection()).trim())) return; // text is being selected
  openCard(Number(sentence.dataset.sentence), word ? Number(word.dataset.word) : undefined);
}
result.addEventListener("click", chooseSentence);
result.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  chooseSentence(event);
  byId("edit").focus();
});
byId("close").addEventListener("click", closeCard);
byId("card").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const number = open;
  closeCard();
  result.querySelector('.sentence[data-sentence="' + number + '"]').focus();
});
byId("apply").addEventListener("click", apply);
byId("save").addEventListener("click", saveCorrection);
byId("glossary").value = remembered("glossary");
byId("glossary").addEventListener("change", () => { termsChanged(); translate(); });
termsChanged();

byId("choose").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", () => {
  const files = [...byId("file").files];
  byId("file").value = ""; // so that the same document can be chosen again
  sendAll(files);
});
const dropped = byId("files");
document.addEventListener("dragover", (event) => { event.preventDefault(); dropped.classList.add("over"); });
document.addEventListener("dragleave", () => dropped.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  dropped.classList.remove("over");
  sendAll(event.dataTransfer.files);
});
byId("fetch").addEventListener("click", async () => {
  try {
    save(await (await ask("/api/v1/corrections")).blob(), "corrections.tmx");
  } catch (error) {
    say(error.message);
  }
});
byId("lock").addEventListener("submit", (event) => {
  event.preventDefault();
  state.key = byId("key").value.trim();
  start();
});
start();
