"""Sampling: the right frequencies, the same samples in any batch, and its limits, which are greedy search."""

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from battery.models import make, random_batch
from dragoman.decode.search import sample as sample_module
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.sample import _pick, truncated, uniforms
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from searching import search

SAMPLE = SearchConfig(method="sample", max_ratio=1.5, max_extra=5)
SHAPES = [
    {},
    {"temperature": 0.6},
    {"top_k": 4},
    {"top_p": 0.7},
    {"min_p": 0.3},
    {"temperature": 1.5, "top_k": 9, "top_p": 0.9, "min_p": 0.05},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_truncated_distribution_is_that_of_hugging_face(shape: dict[str, float]) -> None:
    scores = torch.randn(50, 31, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) * 2
    scores[:, 7] = -torch.inf
    config = replace(SAMPLE, **shape)
    ids = torch.zeros(50, 1, dtype=torch.long)
    expected = TemperatureLogitsWarper(config.temperature)(ids, scores.log_softmax(-1))
    if config.top_k:
        expected = TopKLogitsWarper(config.top_k)(ids, expected)
    expected = TopPLogitsWarper(config.top_p)(ids, expected)
    expected = MinPLogitsWarper(config.min_p)(ids, expected)
    torch.testing.assert_close(truncated(scores, config), expected.softmax(-1), atol=1e-12, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_frequencies_are_those_of_the_distribution(shape: dict[str, float]) -> None:
    """Of first pieces. χ² has about its degrees of freedom as its mean; 5 standard deviations are allowed."""
    model = make("transformer", torch.float32, seed=3)
    src, mask, _ = random_batch(model.vocab, [4], 1)
    count, scorer = 4000, Scorer([model])
    config = replace(SAMPLE, **shape, n_best=count, max_length=2)
    found = search(scorer, src, mask, config)[0]
    with torch.inference_mode():
        first, _ = scorer.step(torch.tensor([1]), scorer.start(src, mask))
        first[:, :2] = -torch.inf
        expected = truncated(first, config)[0].numpy() * count
    observed = np.bincount([ended.tokens[0] for ended in found], minlength=model.vocab.tgt_size)
    possible = expected > 0
    assert observed[~possible].sum() == 0
    chi = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - 1
    assert chi < freedom + 5 * np.sqrt(2 * freedom)


def test_whole_sentences_come_as_often_as_they_are_probable() -> None:
    model = make("transformer", torch.float64, seed=5)
    with torch.no_grad():
        model.projection.weight[2] *= 3
    src, mask, _ = random_batch(model.vocab, [3], 1)
    count = 3000
    found = search(Scorer([model]), src, mask, replace(SAMPLE, n_best=count, max_length=3, top_k=4))[0]
    own = search(Scorer([model]), src, mask, replace(SAMPLE, n_best=count, max_length=3))[0]
    # A forced `</s>` at the limit is not drawn: what is probable is the text before it.
    texts = [ended for ended in own if ended.reason == "stop"]
    for tokens in {ended.tokens for ended in texts}:
        p = np.exp(sum(next(e for e in texts if e.tokens == tokens).token_scores))
        seen = sum(ended.tokens == tokens for ended in texts) / count
        assert abs(seen - p) < 5 * np.sqrt(p * (1 - p) / count) + 1e-3
    assert len({ended.tokens for ended in found}) <= 16


@pytest.mark.parametrize("name", ["transformer", "lstm-bahdanau"])
def test_a_sentence_gets_its_samples_in_any_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(name)
    lengths = [3, 8, 5, 1, 8, 3]
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    src[5] = src[0]
    config = replace(SAMPLE, n_best=3)
    together = search(Scorer([model]), src, mask, config)
    assert together[5] == together[0]
    assert len({ended.tokens for own in together for ended in own}) > 10
    for row, n in enumerate(lengths):
        alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], config)[0]
        assert [ended.tokens for ended in alone] == [ended.tokens for ended in together[row]]
        for ended in alone:
            assert len(ended.tokens) <= n * 1.5 + 5
    fewer = search(Scorer([model]), src, mask, replace(config, n_best=2))
    assert [[e.tokens for e in own] for own in fewer] == [[e.tokens for e in own[:2]] for own in together]
    monkeypatch.setattr(sample_module, "_SCORES_AT_ONCE", 1)  # one sample after the other
    apart = search(Scorer([model]), src, mask, config)
    assert [[e.tokens for e in own] for own in apart] == [[e.tokens for e in own] for own in together]
    other = search(Scorer([model]), src, mask, replace(config, seed=2))
    assert [own[0].tokens for own in other] != [own[0].tokens for own in together]


@pytest.mark.parametrize("shape", [{"top_k": 1}, {"temperature": 1e-6}, {"temperature": 0.0}], ids=str)
def test_the_limits_of_sampling_are_greedy_search(shape: dict[str, float]) -> None:
    model = make("transformer", torch.float32, seed=1)
    src, mask, _ = random_batch(model.vocab, [3, 8, 5, 1] * 4, 1)
    greedy = search(Scorer([model]), src, mask, SearchConfig(beam=1, max_ratio=1.5, max_extra=5))
    for own, (best,) in zip(
        search(Scorer([model]), src, mask, replace(SAMPLE, **shape, n_best=2)), greedy, strict=True
    ):
        assert [ended.tokens for ended in own] == [best.tokens] * 2
        assert own[0].token_scores == pytest.approx(best.token_scores, abs=1e-5)


def test_scores_are_the_models_not_those_of_the_truncated_distribution() -> None:
    model = make("transformer")
    src, mask, _ = random_batch(model.vocab, [4], 1)
    config = replace(SAMPLE, top_k=3, temperature=0.5, n_best=4)
    for ended in search(Scorer([model]), src, mask, config)[0]:
        tgt_in = torch.tensor([[1, *ended.tokens[:-1]]])
        with torch.no_grad():
            scores = model.project(model(src, mask, tgt_in))[0].log_softmax(-1)
        own = scores.gather(1, torch.tensor(ended.tokens)[:, None])[:, 0]
        assert ended.token_scores == pytest.approx(own.tolist(), abs=1e-5)


def test_uniform_numbers() -> None:
    """Mean, spread and independence of neighbours; and these very numbers on every machine."""
    drawn = uniforms(1, [[5, 6, 2], [6, 5, 2]], range(0, 100), 200)
    assert drawn.shape == (2, 100, 200)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(12 * drawn.size)
    for one, other in (
        (drawn[:, :, 1:], drawn[:, :, :-1]),
        (drawn[:, 1:], drawn[:, :-1]),
        (drawn[:1], drawn[1:]),
    ):
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(one.size)
    assert np.array_equal(uniforms(1, [[6, 5, 2]], range(30, 40), 50), drawn[1:, 30:40, :50])
    assert drawn[1, 7, 30] == by_hand(1, [6, 5, 2], 7, 30)


def by_hand(seed: int, ids: list[int], number: int, position: int) -> float:
    """The same number with Python's own integers."""

    def mix(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % (1 << 64)
        return x ^ (x >> 31)

    packed = struct.pack(f"<{len(ids) + 1}Q", seed, *ids)
    key = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")
    per_sample = mix((key + (number + 1) * 0x9E3779B97F4A7C15) % (1 << 64))
    return (mix((per_sample + (position + 1) * 0x9E3779B97F4A7C15) % (1 << 64)) >> 12) / (1 << 52)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"method": "beam", "top_p": 0.9}, "top_p: the method beam has no such field; it belongs to sample"),
        ({"coverage": 0.2}, "coverage: the method sample has no such field; it belongs to beam"),
        ({"groups": 5}, "groups: the method sample has no such field"),
        ({"samples": 8}, "samples: the method sample has no such field; it belongs to mbr"),
    ],
)
def test_impossible_settings_are_refused_by_name(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SearchConfig(**{"method": "sample"} | fields)


def test_more_samples_than_beams_are_fine() -> None:
    assert replace(SAMPLE, n_best=100).n_best == 100


@pytest.mark.parametrize(("draw", "piece"), [(0.0, 1), (0.25, 1), (0.5, 3), (0.999, 3)])
def test_what_has_no_probability_is_never_drawn(draw: float, piece: int) -> None:
    """A draw on the border between two pieces is the second one's, and 0 is no piece that is cut."""
    scores = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).log()
    pick = _pick(torch.tensor([[draw]], dtype=torch.float64), SearchConfig(method="sample"))
    assert pick(scores, torch.tensor([0]), 0).tolist() == [piece]
