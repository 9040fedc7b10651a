/* What the views ask for one sentence, from what stands in the address. */

import { ask } from "./api.js";
import { masked as withGaps } from "./gaps.js";
import { heads, list, state } from "./state.js";
import { runOf } from "./views.js";

export const about = (run = state.run, checkpoint = state.checkpoint) =>
  ({ run, text: withGaps(state.text, list(state.gaps)), ...(checkpoint ? { checkpoint } : {}) });

/* A language model may draw instead of searching for the best. */
const drawn = (run) => (state.draw && runOf(run).generates
  ? { draw: { temperature: Number(state.temperature ?? 1), top_k: Number(state.topk ?? 0), top_p: Number(state.topp ?? 1), seed: Number(state.draw) } } : {});

/* The best, from the pieces that were forced on. */
export function translation(run = state.run, checkpoint = state.checkpoint) {
  const forced = run === state.run ? list(state.forced) : [];
  return ask("translate", { ...about(run, checkpoint), beam: state.beam, n_best: Math.min(state.beam, 8), alpha: state.alpha, head: forced, ...drawn(run) });
}

/* The translation that is looked at: one that was chosen from the list, else the best. */
export async function target() {
  if (runOf(state.run).reads) return []; // it writes nothing
  if (state.target) return list(state.target);
  return (await translation()).hypotheses[0].ids;
}

export async function attention({ kind = null, masked = heads(state.masked) } = {}) {
  const ids = await target();
  return ask("attention", {
    ...about(), target: ids, beam: state.beam, alpha: state.alpha, masked, ...(kind ? { kind } : {}),
  });
}

/* An attention with its weights: those of a long sentence come kind by kind. */
export async function withWeights(data, module, again) {
  const found = data.attentions.find((entry) => entry.module === module) ?? data.attentions[0];
  return found.weights === null ? again(found.kind) : data;
}
