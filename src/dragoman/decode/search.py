"""From a padded batch of sources to the n best hypotheses of each, by the search that is configured."""

import torch

from dragoman.decode.beam import Beam
from dragoman.decode.config import SearchConfig
from dragoman.decode.constrain import rules_for
from dragoman.decode.ended import Ended
from dragoman.decode.greedy import greedy
from dragoman.decode.scorer import Scorer
from dragoman.shapes import Bool, Int, Tensor


def search(
    scorer: Scorer, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], config: SearchConfig
) -> list[list[Ended]]:
    """The n best hypotheses of every sentence, best first."""
    with torch.inference_mode():
        lengths = src_mask.sum(dim=1)
        limits = torch.tensor([config.longest(n) for n in lengths.tolist()], device=src_ids.device)
        rules = rules_for(config, scorer.vocab, lengths)
        state = scorer.start(src_ids, src_mask)
        if config.beam == 1:
            return [[hypothesis] for hypothesis in greedy(scorer, state, limits, rules)]
        return Beam(scorer, state, limits, rules, config).run()
