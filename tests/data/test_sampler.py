from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.sampler import BucketSampler, CorpusRange, Window, tempered
from dragoman.errors import UserError


def realistic_lengths(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal lengths with a median of 18 tokens; targets follow their sources."""
    rng = np.random.default_rng(seed)
    src = np.clip(np.exp(rng.normal(2.9, 0.6, count)), 1, 200).astype(np.int32)
    tgt = np.clip(src * np.exp(rng.normal(0.05, 0.2, count)), 1, 200).astype(np.int32)
    return src, tgt


def listed(sampler: BucketSampler, epoch: int, start: int = 0) -> list[list[int]]:
    return [batch.tolist() for batch in sampler.batches(epoch, start)]


@pytest.mark.parametrize("window", [64, 1000, 1 << 20])
def test_an_epoch_uses_each_pair_once_within_the_budget(window: int) -> None:
    src, tgt = realistic_lengths(5000)
    sampler = BucketSampler(src, tgt, batch_tokens=512, seed=3, window=window, max_sentences=40)
    for epoch in (0, 1):
        batches = listed(sampler, epoch)
        assert sorted(chain.from_iterable(batches)) == list(range(5000))
        assert sampler.num_batches(epoch) == len(batches)
        for batch in batches:
            assert 0 < len(batch) <= 40
            assert len(batch) * max(src[batch].max() + 1, tgt[batch].max() + 1) <= 512


def test_order_is_a_pure_function_of_seed_and_epoch() -> None:
    src, tgt = realistic_lengths(3000)

    def make(seed: int) -> BucketSampler:
        return BucketSampler(src, tgt, batch_tokens=300, seed=seed, window=500)

    sampler = make(1)
    first, second = listed(sampler, 0), listed(sampler, 1)
    assert first == listed(sampler, 0) == listed(make(1), 0)  # also after other epochs were drawn
    assert second == listed(make(1), 1)
    assert first != second
    assert first != listed(make(2), 0)


def test_the_order_never_changes_between_versions() -> None:
    """A resumed run must go on with the same pairs: this holds the order itself fixed."""
    lengths = np.arange(14) * 7 % 40 + 1
    sampler = BucketSampler(lengths, lengths[::-1], batch_tokens=130, seed=7, window=8)
    assert listed(sampler, 2) == [[4, 10, 3], [5], [7, 6, 13, 9], [1, 12, 0], [8, 2, 11]]


@pytest.mark.parametrize("window", [100, 1 << 20])
def test_resuming_goes_on_where_it_stopped(window: int) -> None:
    src, tgt = realistic_lengths(1500)
    corpora = [CorpusRange(0, 1000, 1.5), CorpusRange(1000, 1500, 0.3)]
    sampler = BucketSampler(src, tgt, batch_tokens=400, seed=1, window=window, corpora=corpora)
    whole = listed(sampler, 4)
    for start in range(0, len(whole) + 2, 3):
        assert listed(sampler, 4, start) == whole[start:]


def test_windows_before_the_place_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = realistic_lengths(1500)
    sampler = BucketSampler(src, tgt, batch_tokens=400, seed=1, window=100)
    whole = list(sampler.placed(2))
    assert [batch.tolist() for batch, _ in whole] == listed(sampler, 2)
    assert whole[0][1] == Window(0, 0)
    assert len({window.number for _, window in whole}) >= 14
    cut, looked_at = sampler._cut, []
    monkeypatch.setattr(sampler, "_cut", lambda *window: looked_at.append(1) or cut(*window))
    for done in range(0, len(whole), 5):
        window = whole[done][1]
        rest = list(sampler.placed(2, done + 1, window))
        assert [(batch.tolist(), place) for batch, place in rest] == [
            (batch.tolist(), place) for batch, place in whole[done + 1 :]
        ]
    looked_at.clear()
    last = whole[-1][1]
    assert list(sampler.placed(2, len(whole), last)) == []
    assert len(looked_at) == 1
    assert abs(sampler.num_batches(2, windows=4) / len(whole) - 1) < 0.1


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 60), st.floats(0, 3.5)), min_size=1, max_size=4),
    window=st.sampled_from([1, 7, 64, 4096]),
    seed=st.integers(-5, 2**70),
)
def test_weights_give_whole_passes_and_a_random_part(
    sizes: list[tuple[int, float]], window: int, seed: int
) -> None:
    starts = np.cumsum([0, *(size for size, _ in sizes)]).tolist()
    corpora = [
        CorpusRange(start, start + size, weight) for start, (size, weight) in zip(starts, sizes, strict=False)
    ]
    lengths = np.full(starts[-1], 3, dtype=np.int32)
    if sum(round(size * weight) for size, weight in sizes) == 0:
        with pytest.raises(UserError, match="no pair to draw"):
            BucketSampler(lengths, lengths, batch_tokens=64, seed=seed, corpora=corpora, window=window)
        return
    sampler = BucketSampler(lengths, lengths, batch_tokens=64, seed=seed, corpora=corpora, window=window)
    draws = Counter(chain.from_iterable(listed(sampler, 0)))
    for corpus, (size, weight) in zip(corpora, sizes, strict=True):
        own = [draws[i] for i in range(corpus.start, corpus.end)]
        wanted = round(weight * size)
        assert sum(own) == wanted
        if size:
            assert set(own) <= {wanted // size, -(-wanted // size)}  # nobody is favoured


@pytest.mark.parametrize(
    ("temperature", "draws"),
    [(1, [9000, 100, 0]), (2, [8232, 868, 0]), (1e9, [4550, 4550, 0])],  # √9000 : √100 is 94.87 : 10
)
def test_a_temperature_deals_the_same_draws_otherwise(temperature: float, draws: list[int]) -> None:
    corpora = (CorpusRange(0, 9000), CorpusRange(9000, 9050, weight=2), CorpusRange(9050, 9060, weight=0))
    found = tempered(corpora, temperature)
    assert [(corpus.start, corpus.end) for corpus in found] == [(c.start, c.end) for c in corpora]
    assert [corpus.draws for corpus in found] == draws


def test_the_random_part_is_fair_over_the_epochs() -> None:
    """A tenth of 2,000 pairs in 200 epochs: each pair about 20 times, in whatever block it lies."""
    lengths = np.ones(2000, dtype=np.int32)
    corpora = [CorpusRange(0, 2000, 0.1)]
    sampler = BucketSampler(lengths, lengths, batch_tokens=100, seed=5, corpora=corpora, window=640)
    counts = np.zeros(2000)
    for epoch in range(200):
        for batch in sampler.batches(epoch):
            counts[batch] += 1
    assert counts.sum() == 200 * 200
    assert counts.min() >= 3
    assert counts.max() <= 45
    assert counts.std() < 5.5  # binomial: 4.24


def test_padding_is_small_on_realistic_lengths() -> None:
    src, tgt = realistic_lengths(30_000)
    for batch_tokens, most in ((2048, 0.08), (4096, 0.10), (25_000, 0.20)):
        sampler = BucketSampler(src, tgt, batch_tokens=batch_tokens, seed=1)
        padded = 0
        for batch in sampler.batches(0):
            padded += len(batch) * int(src[batch].max() + tgt[batch].max() + 2)
        real = int(src.sum() + tgt.sum()) + 2 * len(src)
        assert 1 - real / padded < most


def test_batches_are_not_in_order_of_length_and_differ_between_epochs() -> None:
    src, tgt = realistic_lengths(5000)
    sampler = BucketSampler(src, tgt, batch_tokens=1024, seed=1)
    longest = np.array([src[batch].max() for batch in sampler.batches(0)])
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.3
    first, second = ({frozenset(batch) for batch in listed(sampler, epoch)} for epoch in (0, 1))
    assert len(first & second) <= len(first) // 20


def test_a_pair_that_fits_alone_is_its_own_batch() -> None:
    src, tgt = np.array([99, 3, 3]), np.array([2, 3, 3])
    batches = listed(BucketSampler(src, tgt, batch_tokens=100, seed=0), 0)
    assert [0] in batches


def test_a_pair_beyond_the_budget_is_named() -> None:
    src, tgt = np.array([3, 3, 3]), np.array([3, 100, 3])
    with pytest.raises(UserError, match=r"^a\.en:18: the target has 101 tokens .* batch_tokens = 100"):
        BucketSampler(src, tgt, batch_tokens=100, seed=0, origin=lambda index: f"a.en:{index + 17}")
    with pytest.raises(UserError, match=r"^pair 1: "):
        BucketSampler(tgt, src, batch_tokens=100, seed=0)


@pytest.mark.parametrize(("batch_tokens", "max_sentences"), [(0, None), (10, 0)])
def test_impossible_options(batch_tokens: int, max_sentences: int | None) -> None:
    lengths = np.ones(3, dtype=np.int32)
    with pytest.raises(UserError, match="expected at least 1"):
        BucketSampler(lengths, lengths, batch_tokens=batch_tokens, seed=0, max_sentences=max_sentences)


def test_no_pairs() -> None:
    nothing = np.empty(0, dtype=np.int32)
    with pytest.raises(UserError, match="no pair to draw"):
        BucketSampler(nothing, nothing, batch_tokens=10, seed=0)


def test_memory_is_bounded_by_the_window() -> None:
    import tracemalloc

    lengths = np.ones(2_000_000, dtype=np.int32)
    sampler = BucketSampler(lengths, lengths, batch_tokens=4096, seed=0, window=1 << 14)
    tracemalloc.start()
    total = sum(len(batch) for batch in sampler.batches(0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == len(lengths)
    assert peak < 8_000_000  # the pair numbers alone are 16 MB


def test_the_smallest_batch_has_one_token() -> None:
    lengths = np.zeros(3, dtype=np.int64)
    with pytest.raises(UserError, match="batch_tokens"):
        BucketSampler(lengths, lengths, batch_tokens=0, seed=1)
    assert BucketSampler(lengths, lengths, batch_tokens=1, seed=1) is not None
