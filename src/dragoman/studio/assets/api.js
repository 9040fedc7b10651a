/* Questions to the server. The last answers are kept: going back and forth between views asks nothing again. */

const KEPT = 40;
const answers = new Map();
let control = new AbortController(), running = new Map();

/* Something else is to be shown: what has not been answered yet is not waited for any more. */
export function turn() {
  control.abort();
  control = new AbortController();
  running = new Map();
  busy();
}

function busy() {
  document.getElementById("busy").hidden = running.size === 0;
}

export function ask(path, body) {
  const key = `${path} ${JSON.stringify(body)}`;
  if (answers.has(key)) {
    const found = answers.get(key);
    answers.delete(key); // the last that was asked for is the last to be forgotten
    answers.set(key, found);
    return found;
  }
  if (!running.has(key)) running.set(key, fresh(key, path, body, running));
  busy();
  return running.get(key);
}

async function fresh(key, path, body, own) {
  try {
    const found = await send(path, body, control.signal);
    answers.set(key, found);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value);
    return found;
  } finally {
    own.delete(key);
    busy();
  }
}

export async function send(path, body, signal = undefined, headers = {}) {
  const options = body === null ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body), signal,
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
