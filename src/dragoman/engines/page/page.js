// Translates in the browser with the model beside this page. The page's Content-Security-Policy allows no
// other origin, so nothing can be loaded from elsewhere or sent there.

import { env, pipeline } from './library/transformers.min.js';

const here = new URL('./', import.meta.url).href;
const element = (id) => document.getElementById(id);

env.allowRemoteModels = false;
env.allowLocalModels = true;
env.localModelPath = './'; // a whole address would be taken for a remote model
env.useBrowserCache = false; // the server's own caching does, and a changed model is seen
env.backends.onnx.wasm.wasmPaths = `${here}library/`;
env.backends.onnx.wasm.numThreads = globalThis.crossOriginIsolated ? navigator.hardwareConcurrency : 1;

const say = (message) => {
  element('message').textContent = message;
};

const start = async () => {
  const about = await (await fetch('page.json')).json();
  const [from, to] = about.languages;
  element('title').textContent = `${from} → ${to}`;
  document.title = `${from} → ${to}`;
  element('source').lang = from;
  element('target').lang = to;
  return pipeline('translation', 'model', { dtype: about.dtype, device: 'wasm' });
};

const run = async (translator) => {
  element('translate').disabled = true;
  element('target').textContent = '';
  const lines = element('source').value.split('\n');
  try {
    const done = [];
    for (const [number, line] of lines.entries()) {
      say(`${number + 1} of ${lines.length} lines …`);
      done.push(line.trim() ? (await translator(line.trim()))[0].translation_text : '');
      element('target').textContent = done.join('\n');
    }
    say('');
  } catch (error) {
    say(`This text could not be translated: ${error.message}`);
  }
  element('translate').disabled = false;
};

try {
  const translator = await start();
  element('translate').addEventListener('click', () => run(translator));
  element('translate').disabled = false;
  say('');
} catch (error) {
  say(`The model could not be loaded: ${error.message}`);
}
