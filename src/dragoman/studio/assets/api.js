/* Questions to the server. The last answers are kept: going back and forth between views asks nothing again. */

const KEPT = 40;
const answers = new Map();
const running = new Map();
let active = 0;

function busy(change) {
  active += change;
  document.getElementById("busy").hidden = active === 0;
}

/* A later question of the same `purpose` replaces an earlier one that has not been answered: it is dropped. */
export async function ask(path, body, purpose = null) {
  const key = `${path} ${JSON.stringify(body)}`;
  if (answers.has(key)) {
    const found = answers.get(key);
    answers.delete(key);
    answers.set(key, found);
    return found;
  }
  if (purpose) running.get(purpose)?.abort();
  const control = new AbortController();
  if (purpose) running.set(purpose, control);
  busy(1);
  try {
    const found = await send(path, body, control.signal);
    answers.set(key, found);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value);
    return found;
  } finally {
    busy(-1);
  }
}

export async function send(path, body, signal = undefined) {
  const options = body === null ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  };
  let answer;
  try {
    answer = await fetch(`/api/studio/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio does not answer any more; start it again with  dragoman studio");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || `The studio answered ${answer.status}`);
  return found;
}

export const dropped = (error) => error.name === "AbortError";
