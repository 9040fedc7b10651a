"""From a padded batch of sources to the n best hypotheses of each, by the search that is configured."""

from dataclasses import replace

import torch

from dragoman.decode.beam import Beam
from dragoman.decode.config import SearchConfig
from dragoman.decode.constrain import Rules, rules_for
from dragoman.decode.ended import Ended
from dragoman.decode.exhaustive import Exhaustive
from dragoman.decode.greedy import greedy
from dragoman.decode.scorer import Scorer
from dragoman.decode.trace import Recorder
from dragoman.shapes import Bool, Int, Tensor


def search(
    scorer: Scorer, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], config: SearchConfig
) -> list[list[Ended]]:
    """The n best hypotheses of every sentence, best first."""
    with torch.inference_mode():
        lengths = src_mask.sum(dim=1)
        limits = torch.tensor([config.longest(n) for n in lengths.tolist()], device=src_ids.device)
        rules = rules_for(config, scorer.vocab, lengths)
        found = _by_beam(scorer, src_ids, src_mask, limits, rules, config)
        if config.method == "beam":
            return found
        return [
            Exhaustive(scorer, limit, rules, row, config, found[row]).run(
                src_ids[row : row + 1, :length], src_mask[row : row + 1, :length]
            )
            for row, (length, limit) in enumerate(zip(lengths.tolist(), limits.tolist(), strict=True))
        ]


def _by_beam(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    limits: Int[Tensor, "B"],
    rules: Rules,
    config: SearchConfig,
) -> list[list[Ended]]:
    state = scorer.start(src_ids, src_mask)
    if config.beam == 1 and not config.record:
        return [[hypothesis] for hypothesis in greedy(scorer, state, limits, rules)]
    if not config.record:
        return Beam(scorer, state, limits, rules, config).run()
    recorder = Recorder(len(limits), config.beam, scorer.vocab.eos_id)
    stop = "complete" if config.beam == 1 else config.stop  # greedy search stops at the first end
    found = Beam(scorer, state, limits, rules, replace(config, stop=stop), recorder).run()
    recorded = zip(found, recorder.traces, strict=True)
    return [[replace(hypothesis, trace=trace) for hypothesis in best] for best, trace in recorded]
