"""The record of a beam search tells all of it: the hypotheses can be rebuilt from it, to the last bit."""

import json
import math
from dataclasses import replace

import pytest
import torch

from battery.models import make, random_batch
from dragoman.decode.search.config import SearchConfig, StopRule
from dragoman.decode.search.job import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.trace import Trace
from dragoman.decode.translator.hypothesis import Hypothesis
from searching import search

EOS = 2
LENGTHS = [4, 1, 6, 2, 3, 5, 2, 7]


def searched(seed: int, config: SearchConfig, eos_weight: float = 1.5) -> list[list[Ended]]:
    model = make("gru-luong-feeding" if seed % 2 else "transformer", torch.float32, seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
        model.projection.weight[EOS] *= eos_weight
    src, mask, _ = random_batch(model.vocab, LENGTHS, 1, seed)
    return search(Scorer([model]), src, mask, config)


def rebuilt(
    trace: Trace, config: SearchConfig
) -> list[tuple[float, tuple[int, ...], tuple[float, ...], str]]:
    """What ended, best first, from nothing but the record."""
    found = []
    for number, step in enumerate(trace.steps):
        for index, candidate in enumerate(step):
            if candidate.fate in ("ended", "cut"):
                path = trace.path(number, index)
                scores = tuple(each.log_prob for each in path)
                score = math.fsum(scores) / len(path) ** config.alpha
                reason = "length" if candidate.fate == "cut" else "stop"
                found.append((score, tuple(each.token for each in path), scores, reason))
    return sorted(found, key=lambda each: each[0], reverse=True)[: config.n_best]


@pytest.mark.parametrize("stop", ["settled", "complete", "bound", "limit"])
@pytest.mark.parametrize(("beam", "n_best"), [(1, 1), (3, 2), (30, 4)])
def test_recording_changes_nothing_and_rebuilds_everything(beam: int, n_best: int, stop: StopRule) -> None:
    for seed in range(4):
        config = SearchConfig(
            beam=beam, n_best=n_best, max_ratio=1.0, max_extra=2, stop=stop, min_length=seed % 2
        )
        plain = searched(seed, config)
        recorded = searched(seed, replace(config, record=True))
        assert recorded == plain
        for found, without in zip(recorded, plain, strict=True):
            trace = found[0].trace
            assert trace is not None
            assert all(hypothesis.trace is trace for hypothesis in found)
            assert all(hypothesis.trace is None for hypothesis in without)
            expected = [(h.score(config), h.tokens, h.token_scores, h.reason) for h in found]
            assert rebuilt(trace, config) == expected


def test_every_candidate_has_a_living_parent_and_a_fate() -> None:
    config = SearchConfig(beam=3, n_best=2, max_ratio=1.0, max_extra=3, record=True)
    fates = set()
    for seed in range(6):
        for found, length in zip(searched(seed, config), LENGTHS, strict=True):
            trace = found[0].trace
            assert trace is not None
            assert 1 <= len(trace.steps) <= length + 3
            assert all(candidate.parent == -1 for candidate in trace.steps[0])
            before: list = []
            for number, step in enumerate(trace.steps):
                last = number == len(trace.steps) - 1
                fates |= {candidate.fate for candidate in step}
                assert [c.sum for c in step] == sorted((c.sum for c in step), reverse=True) or step[
                    0
                ].fate == "cut"
                assert len({(c.parent, c.token) for c in step}) == len(step) <= 6
                for candidate in step:
                    if number:
                        parent = before[candidate.parent]
                        assert parent.fate == "kept"
                        assert candidate.sum == pytest.approx(parent.sum + candidate.log_prob, abs=1e-5)
                    assert (candidate.token == EOS) or candidate.fate not in ("ended", "cut")
                    assert last or candidate.fate not in ("cut", "stopped")
                kept = sum(candidate.fate == "kept" for candidate in step)
                assert kept == (0 if last else 3)
                before = step
    assert fates == {"kept", "ended", "pruned", "cut", "stopped"}


def test_json_can_hold_it_and_pieces_can_be_told() -> None:
    trace = searched(0, SearchConfig(beam=2, record=True))[0][0].trace
    assert trace is not None
    told = trace.with_pieces(lambda ids: [f"<{i}>" for i in ids])
    again = json.loads(json.dumps(told.as_dict()))
    assert [[c["token"] for c in step] for step in again["steps"]] == [
        [c.token for c in s] for s in trace.steps
    ]
    assert all(c["piece"] == f"<{c['token']}>" for step in again["steps"] for c in step)


def test_a_recorded_hypothesis_is_equal_to_one_that_is_not() -> None:
    plain = Hypothesis("a", -1.0, -1.0, (5,), ("a",), (-1.0,), "stop")
    recorded = replace(plain, trace=object())  # type: ignore[arg-type]
    assert recorded == plain and repr(recorded) == repr(plain)
    assert replace(plain, score=-2.0) != plain
