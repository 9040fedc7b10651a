
// Documents: any number, each with its progress, saved when it is translated.
const POLL = 400;

async function send(file) {
  if (!file || !state.info) return;
  if (source.value === "auto") { say("Choose the language of the document first."); return; }
  if (file.size > state.info.document_bytes) { say("The document is larger than this server takes."); return; }
  say("");
  const [from, to] = [source.value, target.value];
  const bar = make("progress", []), told = make("span", "waiting", { role: "status" });
  const stop = make("button", "Stop", { type: "button", ariaLabel: "Stop: " + file.name });
  const row = make("li", [make("span", file.name, { className: "name", dir: "auto" }), bar, told, stop]);
  byId("jobs").prepend(row);
  let path = null, stopped = false; // it may be stopped before the server has answered
  const cancel = () => { if (stopped && path) ask(path, { method: "DELETE" }).catch(() => {}); };
  stop.addEventListener("click", () => { stopped = true; cancel(); });
  try {
    const form = new FormData();
    Object.entries({ file, source: from, target: to, wait: "false" }).forEach(([name, value]) => form.append(name, value));
    const { id } = await (await ask("/api/v1/documents", { method: "POST", body: form })).json();
    path = "/api/v1/documents/" + id;
    cancel();
    await finished(path, bar, told, () => stopped);
    const response = await ask(path + "/result");
    save(await response.blob(), renamed(file.name, to));
    const left = Number(response.headers.get("X-Units-Left"));
    told.textContent = "done" + (left ? ": " + left + " parts could not be translated safely and are as they were" : "");
  } catch (error) {
    told.textContent = error.message;
  }
  bar.remove();
  stop.remove();
}

async function finished(path, bar, told, stopped) {
  for (;;) {
    const response = await ask(path).catch((error) => { throw stopped() ? new Error("stopped") : error; });
    const job = await response.json();
    if (stopped()) throw new Error("stopped");
    if (job.status === "error") throw new Error(job.error);
    if (job.status === "done") return;
    if (job.total) {
      Object.assign(bar, { max: job.total, value: job.done });
      told.textContent = job.done + " of " + job.total + " sentences";
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}

function renamed(name, language) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) + "." + language + name.slice(dot) : name + "." + language;
}

function sendAll(files) { return Promise.all([...files].map(send)); }
