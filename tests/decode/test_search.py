"""Search against brute force and against a slow beam search written out for one sentence."""

import functools
import itertools
import math
from dataclasses import replace

import pytest
import torch

from battery.models import make, random_batch
from decode.constrained import wild
from dragoman.decode.search import beam as beam_module
from dragoman.decode.search.beam import Beam, best_extensions
from dragoman.decode.search.beam_allocation import best_pieces
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Ended, SearchMethod
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from searching import batch_of, brute_force, jobs_of, search, token_scores_of

PAD, BOS, EOS = 0, 1, 2


wild_model = functools.partial(wild, dtype=torch.float64)


def slow_beam(
    model: EncoderDecoder, src: torch.Tensor, limit: int, config: SearchConfig, stop_early: bool = True
) -> list[tuple[float, tuple[int, ...]]]:
    """The rules of the search, for one sentence, in lists; every score from a full forward pass."""
    live, ended, token_scores = [(0.0, ())], [], token_scores_of(model, src)
    for length in range(1, limit + 1):
        if length == limit:
            for _, tokens in live:
                full = (*tokens, EOS)
                ended.append((math.fsum(token_scores(full)) / length**config.alpha, full))
            break
        extended = []
        for _, tokens in live:
            for piece in range(model.vocab.tgt_size):
                if piece in (PAD, BOS) or (piece == EOS and length <= config.min_length):
                    continue
                full = (*tokens, piece)
                extended.append((math.fsum(token_scores(full)), full))
        extended.sort(reverse=True)
        for total, tokens in extended[: config.beam]:
            if tokens[-1] == EOS:
                ended.append((total / length**config.alpha, tokens))
        live = [(total, tokens) for total, tokens in extended if tokens[-1] != EOS][: config.beam]
        ended.sort(reverse=True)
        if stop_early and len(ended) >= config.n_best:
            hopeless = ended[config.n_best - 1][0] >= live[0][0] / limit**config.alpha
            enough = config.stop != "bound" and len(ended) >= config.beam
            if config.stop == "settled":
                enough = enough and ended[config.n_best - 1][0] >= live[0][0] / length**config.alpha
            if hopeless or enough:
                break
    return sorted(ended, reverse=True)[: config.n_best]


def same(found: list[Ended], expected: list[tuple[float, tuple]], config: SearchConfig) -> None:
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in expected]
    for hypothesis, (score, _) in zip(found, expected, strict=True):
        assert hypothesis.score(config) == pytest.approx(score, abs=1e-5)


def one(length: int, size: int, seed: int) -> torch.Tensor:
    return torch.randint(3, size, (length,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_a_huge_beam_finds_what_brute_force_finds(seed: int, alpha: float) -> None:
    model, src = wild_model(6, seed), one(3, 6, seed)
    config = SearchConfig(beam=81, n_best=5, alpha=alpha, max_ratio=0, max_extra=5, stop="bound")
    found = search(Scorer([model]), src[None], torch.ones(1, 3, dtype=torch.bool), config)[0]
    same(found, brute_force(model, src, limit=5, alpha=alpha)[:5], config)


def test_a_better_live_hypothesis_is_not_cut_off() -> None:
    """A confident model has one good hypothesis; beside it, bad ones end early and fill the count."""
    gains = []
    for seed in range(12):
        model = wild_model(9, seed, eos_bias=1.0)
        src, mask, _ = random_batch(model.vocab, [4], 1, seed)
        config = SearchConfig(beam=2, max_ratio=0, max_extra=8)
        (settled,), (complete,) = (
            search(Scorer([model]), src, mask, replace(config, stop=stop))[0]
            for stop in ("settled", "complete")
        )
        gains.append(settled.score(config) - complete.score(config))
    assert min(gains) >= -1e-6
    assert max(gains) > 0.05


@pytest.mark.parametrize("stop", ["settled", "complete", "bound"])
@pytest.mark.parametrize("seed", range(6))
def test_equal_to_a_slow_beam_in_any_batch(seed: int, stop: str) -> None:
    model = wild_model(9, seed, eos_bias=1.0)
    lengths = [4, 1, 6, 2, 3]
    config = SearchConfig(beam=3, n_best=2, max_ratio=1, max_extra=3, min_length=seed % 2, stop=stop)  # type: ignore[arg-type]
    src, mask, _ = random_batch(model.vocab, lengths, 1, seed)
    together = search(Scorer([model]), src, mask, config)
    for row, n in enumerate(lengths):
        alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], config)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in together[row]]
        same(together[row], slow_beam(model, src[row, :n], n + 3, config), config)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_bound_never_changes_the_result(alpha: float) -> None:
    model = wild_model(8, 5, eos_bias=2.0)
    config = SearchConfig(beam=3, alpha=alpha, max_ratio=1, max_extra=4, stop="bound")
    for seed in range(10):
        src = one(3, 8, seed)
        found = search(Scorer([model]), src[None], torch.ones(1, 3, dtype=torch.bool), config)[0]
        same(found, slow_beam(model, src, 7, config, stop_early=False), config)


@pytest.mark.parametrize("name", ["transformer", "transformer-pre"])
def test_beam_one_is_greedy(name: str) -> None:
    model = make(name, torch.float32)
    src, mask, _ = random_batch(model.vocab, [3, 8, 5, 1] * 8, 1)
    config = SearchConfig(beam=1, max_ratio=1.5, max_extra=5)
    greedy = search(Scorer([model]), src, mask, config)
    with torch.inference_mode():
        beam = Beam(Scorer([model]), batch_of(model, jobs_of(src, mask), config), config).run()
    assert [h[0].tokens for h in greedy] == [h[0].tokens for h in beam]


@pytest.mark.parametrize("beam", [1, 4])
def test_batch_of_64_equals_batches_of_one(beam: int) -> None:
    model = make("transformer", torch.float32, seed=2)
    with torch.no_grad():
        model.projection.weight[EOS] *= 2
    lengths = [1 + i % 12 for i in range(64)]
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    config = SearchConfig(beam=beam, max_ratio=1.0)
    together = search(Scorer([model]), src, mask, config)
    for row, n in enumerate(lengths):
        alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], config)[0][0]
        assert alone.tokens == together[row][0].tokens
        assert alone.score(config) == pytest.approx(together[row][0].score(config), abs=1e-5)


def test_printed_scores_are_the_models_scores() -> None:
    model = make("transformer", torch.float32, seed=4)
    lengths = [5, 2, 9]
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    config = SearchConfig(beam=4, n_best=4)
    for row, found in enumerate(search(Scorer([model]), src, mask, config)):
        scores = [hypothesis.score(config) for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.tokens for hypothesis in found}) == len(found) == 4
        for hypothesis in found:
            again = token_scores_of(model, src[row, : lengths[row]])(hypothesis.tokens)
            assert hypothesis.token_scores == pytest.approx(again, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_length_limits_are_per_sentence_and_end_with_eos(beam: int) -> None:
    model = wild_model(30, 1, dtype=torch.float32, eos_bias=-100.0)
    src, mask, _ = random_batch(model.vocab, [2, 5, 3], 1)
    found = search(Scorer([model]), src, mask, SearchConfig(beam=beam, max_ratio=2, max_extra=1))
    assert [len(h[0].tokens) for h in found] == [5, 11, 7]
    assert all(h[0].tokens[-1] == EOS and h[0].reason == "length" for h in found)


@pytest.mark.parametrize("beam", [1, 3])
def test_least_length(beam: int) -> None:
    model = wild_model(30, 1, dtype=torch.float32, eos_bias=100.0)
    src, mask, _ = random_batch(model.vocab, [2, 5], 1)
    found = search(Scorer([model]), src, mask, SearchConfig(beam=beam, min_length=4))
    assert [len(h[0].tokens) for h in found] == [5, 5]
    assert all(h[0].reason == "stop" for h in found)


@pytest.mark.parametrize("beam", [1, 3])
def test_lengths_in_proportion_and_absolute(beam: int) -> None:
    src, mask, _ = random_batch(make("transformer").vocab, [2, 8, 4], 1)
    ending = wild_model(30, 1, dtype=torch.float32, eos_bias=100.0)
    found = search(Scorer([ending]), src, mask, SearchConfig(beam=beam, min_ratio=0.5, min_length=2))
    assert [len(h[0].tokens) for h in found] == [3, 5, 3]
    endless = wild_model(30, 1, dtype=torch.float32, eos_bias=-100.0)
    found = search(Scorer([endless]), src, mask, SearchConfig(beam=beam, max_ratio=1, max_length=10))
    assert [len(h[0].tokens) for h in found] == [10, 10, 10]
    found = search(Scorer([endless]), src, mask, SearchConfig(beam=beam, max_ratio=1, max_extra=0))
    assert [len(h[0].tokens) for h in found] == [2, 8, 4]


@pytest.mark.parametrize("method", ["beam", "exhaustive"])
@pytest.mark.parametrize("beam", [1, 3])
def test_where_least_and_greatest_length_contradict_the_greatest_wins(
    beam: int, method: SearchMethod
) -> None:
    model, src = wild_model(6, 1), one(3, 6, 1)
    config = SearchConfig(method=method, beam=beam, min_length=9, max_length=4)
    found = search(Scorer([model]), src[None], torch.ones(1, 3, dtype=torch.bool), config)[0][0]
    assert len(found.tokens) == 4
    assert found.token_scores == pytest.approx(token_scores_of(model, src)(found.tokens), abs=1e-5)


def test_running_to_the_limit_never_finds_worse() -> None:
    model = wild_model(12, 4)
    for seed in range(10):
        src = one(3, 12, seed)[None], torch.ones(1, 3, dtype=torch.bool)
        config = SearchConfig(beam=3, max_ratio=1, max_extra=4)
        early = search(Scorer([model]), *src, config)[0][0]
        late = search(Scorer([model]), *src, replace(config, stop="limit"))[0][0]
        exact = search(Scorer([model]), *src, replace(config, stop="bound"))[0][0]
        assert late == exact
        assert late.score(config) >= early.score(config)


@pytest.mark.parametrize("size", [40, 1000, 1061])
def test_best_pieces_by_blocks_are_the_best_pieces(size: int) -> None:
    scores = torch.randn(7, size, generator=torch.Generator().manual_seed(size))
    values, places = best_pieces(scores, 3)
    expected = scores.topk(3, dim=1)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)


def test_children_take_their_parents_places_where_they_can() -> None:
    for parents in itertools.product(range(4), repeat=4):
        places = beam_module._places(torch.tensor([parents]))[0].tolist()
        assert sorted(places) == [0, 1, 2, 3]
        for parent in set(parents):
            assert places[parents.index(parent)] == parent


def test_a_beam_wider_than_the_vocabulary_still_works() -> None:
    model = wild_model(5, 0)
    src = one(2, 5, 0)
    config = SearchConfig(beam=20, n_best=20, max_ratio=0, max_extra=4, alpha=0.0, stop="bound")
    found = search(Scorer([model]), src[None], torch.ones(1, 2, dtype=torch.bool), config)[0]
    same(found, brute_force(model, src, 4, 0.0)[:20], config)


@pytest.mark.parametrize("rest", [0, 13])
def test_the_best_extensions_of_a_large_vocabulary_are_the_best_of_all(rest: int) -> None:
    """Also those at its end, which fill no block; two sentences of three hypotheses, one of which is dead."""
    size, count = 64 * 20 + rest, 4
    torch.manual_seed(rest)
    scores = torch.randn(6, size, dtype=torch.float64)
    scores[4, -1] += 9.0
    sums = torch.tensor([[-1.0, -torch.inf, -1.2], [0.0, -0.1, -0.2]], dtype=torch.float64)
    nothing = torch.zeros(6, 0, dtype=torch.long)
    best, parents, pieces = best_extensions(scores, sums, nothing, torch.arange(2), count)
    expected, flat = (sums[:, :, None] + scores.view(2, 3, size)).flatten(1).sort(dim=1, descending=True)
    assert torch.equal(best, expected[:, :count])
    assert torch.equal(parents * size + pieces, flat[:, :count])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("beam", 0),
        ("n_best", 9),
        ("alpha", -1.0),
        ("max_ratio", -1.0),
        ("max_extra", -2),
        ("max_length", 0),
        ("min_ratio", float("nan")),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(UserError, match=field):
        replace(SearchConfig(), **{field: value})
