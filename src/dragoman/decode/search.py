"""From a padded batch of sources to the n best hypotheses of each, by the search that is configured."""

import torch

from dragoman.decode.beam import Beam
from dragoman.decode.config import SearchConfig
from dragoman.decode.constrain import Rules, rules_for
from dragoman.decode.ended import Ended
from dragoman.decode.sample import sample
from dragoman.decode.scorer import Scorer
from dragoman.decode.walk import most_probable, walk
from dragoman.shapes import Bool, Int, Tensor


def search(
    scorer: Scorer, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], config: SearchConfig
) -> list[list[Ended]]:
    """The n best hypotheses of every sentence, best first; samples in the order of drawing. For minimum Bayes
    risk these are the candidates: what they are worth is a matter of their texts."""
    if config.method == "mbr":
        config = config.for_candidates()
    lengths = src_mask.sum(dim=1)
    limits = torch.tensor([config.longest(n) for n in lengths.tolist()], device=src_ids.device)
    return search_with(scorer, src_ids, src_mask, limits, rules_for(config, scorer.vocab, lengths), config)


@torch.inference_mode()
def search_with(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    limits: Int[Tensor, "B"],
    rules: Rules,
    config: SearchConfig,
) -> list[list[Ended]]:
    """The same with limits and rules given."""
    if config.method == "sample":
        return sample(scorer, src_ids, src_mask, limits, rules, config)
    watched = config.coverage > 0
    state = scorer.start(src_ids, src_mask, watched)
    if config.beam == 1 and not watched:
        return walk(scorer, state, limits, rules, most_probable)
    return Beam(scorer, state, src_mask, limits, rules, config).run()
