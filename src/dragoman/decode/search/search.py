"""From a padded batch of sources to the n best hypotheses of each, by the search that is configured."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.rules.lexical import Required, pieces_for
from dragoman.decode.rules.rules import Rules, rules_for
from dragoman.decode.search.allocate import Banks, best_extensions
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.exhaustive import Exhaustive
from dragoman.decode.search.finished import Ended
from dragoman.decode.search.one_path import most_probable, walk
from dragoman.decode.search.sample import sample
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.trace import Recorder
from dragoman.decode.translator.cancel import Wanted, some_of
from dragoman.errors import UserError
from dragoman.shapes import Bool, Int, Tensor
from dragoman.text.spelling import Spelling

_WIDEST_RAISE = 24
"""A beam is made wider than configured, up to this, where required phrases need banks."""


def search(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] | None = None,
    spelling: Spelling | None = None,
    wanted: Sequence[Wanted] | None = None,
) -> list[list[Ended]]:
    """The n best hypotheses of every sentence, best first; samples in the order of drawing. For minimum Bayes
    risk these are the candidates: what they are worth is a matter of their texts.

    `constraints` has an entry for every sentence, and `spelling` says what the pieces write. Sentences with
    required phrases are searched apart, with a beam that depends on their own phrases alone. A sentence that
    is not `wanted` any more has fewer hypotheses, or none.
    """
    if config.method == "mbr":
        config = config.for_candidates()
    if not constraints or not any(own != Constraints() for own in constraints):
        return _search(scorer, src_ids, src_mask, config, wanted=wanted)
    if spelling is None or len(spelling) != scorer.vocab.tgt_size:
        raise UserError("spelling: constraints need the text of every piece of the target vocabulary")
    if config.groups > 1 and any(own.required for own in constraints):
        raise UserError(f"groups: phrases that are required need the whole beam, not {config.groups} groups")
    groups: dict[tuple[bool, int], list[int]] = {}
    for row, own in enumerate(constraints):
        groups.setdefault((bool(own.required), _width(config, own, spelling)), []).append(row)
    found: dict[int, list[Ended]] = {}
    for (_, width), rows in groups.items():
        index = torch.tensor(rows, device=src_ids.device)
        own = [constraints[row] for row in rows]
        wide = replace(config, beam=width)
        results = _search(scorer, src_ids[index], src_mask[index], wide, own, spelling, some_of(wanted, rows))
        found |= dict(zip(rows, results, strict=True))
    return [found[row] for row in range(len(constraints))]


def _search(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] = (),
    spelling: Spelling | None = None,
    wanted: Sequence[Wanted] | None = None,
) -> list[list[Ended]]:
    with torch.inference_mode():
        limits, rules, required = set_up(scorer, src_mask, config, constraints, spelling)
        if config.method == "sample":
            return sample(scorer, src_ids, src_mask, limits, rules, config, wanted)
        if src_ids.device.type == "cuda" and not constraints and scorer.rooms.take(scorer.models, config):
            return scorer.rooms.search(scorer.models[0], src_ids, src_mask, limits, config, wanted)
        found = _by_beam(scorer, src_ids, src_mask, limits, rules, config, required, wanted)
        if config.method == "beam":
            return found
        return [
            Exhaustive(scorer, limit, rules, row, config, found[row], wanted[row] if wanted else None).run(
                src_ids[row : row + 1, :length], src_mask[row : row + 1, :length]
            )
            for row, (length, limit) in enumerate(
                zip(src_mask.sum(dim=1).tolist(), limits.tolist(), strict=True)
            )
        ]


def set_up(
    scorer: Scorer,
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] = (),
    spelling: Spelling | None = None,
) -> tuple[Int[Tensor, "B"], Rules, Required | None]:
    """The greatest length of every sentence, the rules, and the phrases that have to come."""
    lengths = src_mask.sum(dim=1)
    longest = [config.longest(n) for n in lengths.tolist()]
    required = None
    if spelling is not None:
        longest = [max(n, _least(own, spelling)) for n, own in zip(longest, constraints, strict=True)]
    limits = torch.tensor(longest, device=src_mask.device)
    if spelling is not None and any(own.required for own in constraints):
        required = Required(scorer.vocab, constraints, spelling, limits)
    return limits, rules_for(config, scorer.vocab, lengths, limits, constraints, spelling, required), required


def _by_beam(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    limits: Int[Tensor, "B"],
    rules: Rules,
    config: SearchConfig,
    required: Required | None,
    wanted: Sequence[Wanted] | None,
) -> list[list[Ended]]:
    watched = config.coverage > 0
    state = scorer.start(src_ids, src_mask, watched)
    if config.beam == 1 and not (config.record or watched or required):
        return walk(scorer, state, limits, rules, most_probable, wanted=wanted)
    allocation = best_extensions if required is None else Banks(required, scorer.vocab.eos_id)
    if not config.record:
        return Beam(scorer, state, src_mask, limits, rules, config, allocation, wanted=wanted).run()
    recorder = Recorder(len(limits), config.beam, scorer.vocab.eos_id)
    stop = "complete" if config.beam == 1 else config.stop  # greedy search stops at the first end
    config = replace(config, stop=stop)
    found = Beam(scorer, state, src_mask, limits, rules, config, allocation, recorder, wanted).run()
    recorded = zip(found, recorder.traces, strict=True)
    return [[replace(hypothesis, trace=trace) for hypothesis in best] for best, trace in recorded]


def _least(own: Constraints, spelling: Spelling) -> int:
    """The room, `</s>` counted, in which any way of writing the prefix leaves enough for what is required."""
    if not own.longest_prefix and not own.required:
        return 1
    return own.longest_prefix + pieces_for(own, spelling) + 2


def _width(config: SearchConfig, own: Constraints, spelling: Spelling) -> int:
    """Room for a bank of every size, so that a narrow beam need not write the phrases at once."""
    if not own.required:
        return config.beam
    banks = pieces_for(own, spelling) + 1
    return max(config.beam, min(_WIDEST_RAISE, -(-banks // 4) * 4))
