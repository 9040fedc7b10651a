"""The counting models: worked examples to the last digit, and dictionaries that count the same."""

import importlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import pytest
import torch

from dragoman.checkpoint.model import load_into, model_tensors
from dragoman.data.batch import collate
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.models.markov import Markov, MarkovConfig
from dragoman.nn import context_counts
from dragoman.nn.attention_kernels import open_tap
from dragoman.probe.record import record
from searching import search

Pairs = Sequence[tuple[list[int], list[int]]]
PAD, BOS, EOS = 0, 1, 2
SKIPS = {"order": 1, "skips": True, "smoothing": 0.0}
SELECTIVE = {**SKIPS, "mask": "selective", "mask_threshold": 0.5}


# --- worked examples ---------------------------------------------------------------------------------

SHOW = {"show me my directories please": 2, "show me my files please": 3, "show me my photos please": 5}
RAN = {"check whether the battery ran down please": 4, "check whether the program ran please": 6}
FAR = {
    "check the program log and find out whether it ran please": 1,
    "check the battery log and find out whether it ran down please": 1,
}


def fitted(sentences: dict[str, int], **options: object) -> Callable[[str], dict[str, float]]:
    """A function that tells the possible next words of a prefix. There is nothing on the source side."""
    words = sorted({word for sentence in sentences for word in sentence.split()})
    ids = {"</s>": EOS} | {word: number for number, word in enumerate(words, 3)}
    size = len(words) + 3
    model = Markov(MarkovConfig(**options), Vocab(size, size, shared=True)).double()  # type: ignore[arg-type]
    texts = itertools.chain.from_iterable([sentence] * times for sentence, times in sentences.items())
    model.count([collate([([], [ids[word] for word in text.split()]) for text in texts])])

    def following(prefix: str) -> dict[str, float]:
        batch = collate([([], [ids[word] for word in prefix.split()])])
        probs = model(batch.src_ids, batch.src_mask, batch.tgt_in)[0, -1].exp()
        return {word: round(float(probs[i]), 12) for word, i in ids.items() if probs[i] > 1e-30}

    return following


def test_after_my_come_three_things() -> None:
    following = fitted(SHOW, order=1, smoothing=0.0)
    assert following("show me my") == {"directories": 0.2, "files": 0.3, "photos": 0.5}
    for prefix, word in (("", "show"), ("show", "me"), ("show me", "my"), ("show me my files", "please")):
        assert following(prefix) == {word: 1.0}
    assert following("show me my files please") == {"</s>": 1.0}


def test_order_2_knows_what_ran() -> None:
    first, second = fitted(RAN, order=1, smoothing=0.0), fitted(RAN, order=2, smoothing=0.0)
    assert first("check whether the") == {"battery": 0.4, "program": 0.6}
    for subject, word in (("battery", "down"), ("program", "please")):
        prefix = f"check whether the {subject} ran"
        assert first(prefix) == {"down": 0.4, "please": 0.6}
        assert second(prefix) == {word: 1.0}


@pytest.mark.parametrize(
    ("subject", "word", "other"), [("program", "please", "down"), ("battery", "down", "please")]
)
def test_the_deciding_word_is_eight_back(subject: str, word: str, other: str) -> None:
    prefix = f"check the {subject} log and find out whether it ran"
    assert fitted(FAR, order=2, smoothing=0.0)(prefix) == {"please": 0.5, "down": 0.5}
    # votes: </s> of the empty source, <s>, and nine words; all but one are undecided
    leans = fitted(FAR, **SKIPS)(prefix)
    assert leans == pytest.approx({word: (10 * 0.5 + 1) / 11, other: 10 * 0.5 / 11}, abs=1e-12)
    assert fitted(FAR, **SELECTIVE)(prefix) == {word: 1.0}


def test_where_all_is_hidden_the_last_word_decides() -> None:
    assert fitted(FAR, **SELECTIVE)("check the") == {"battery": 0.5, "program": 0.5}


# --- dictionaries ------------------------------------------------------------------------------------


class Brute:
    """The same by loops over Counters, one context and one piece at a time."""

    def __init__(self, config: MarkovConfig, vocab: Vocab, pairs: Pairs) -> None:
        self.config, self.vocab = config, vocab
        self.rows: dict[object, Counter[int]] = defaultdict(Counter)
        for src, tgt in pairs:
            read = [BOS, *tgt]
            for t, piece in enumerate([*tgt, EOS]):
                for k in range(config.order + 1):
                    self.rows[self.context(read[: t + 1], k)][piece] += 1
                for feature in self.features([*src, EOS], read[: t + 1]) if config.skips else ():
                    self.rows[feature][piece] += 1
        for key, row in self.rows.items():
            if isinstance(key[0], str) or len(key) > 1:  # type: ignore[index,arg-type]
                for piece in [piece for piece, count in row.items() if count < config.min_count]:
                    del row[piece]

    def context(self, read: list[int], k: int) -> tuple[int, ...]:
        padded = [BOS] * self.config.order + read
        return tuple(padded[len(padded) - k :]) or (-1,)

    def features(self, src: list[int], read: list[int]) -> list[tuple[str, str, int, int]]:
        earlier = [("source", word) for word in src] + [("target", word) for word in read[:-1]]
        return [("skip", side, word, read[-1]) for side, word in earlier]

    def mixed(self, row: Counter[int], lower: list[float]) -> list[float]:
        if not row:
            return lower
        total = sum(row.values())
        trust = total / (total + self.config.smoothing * len(row))
        return [trust * row[y] / total + (1 - trust) * lower[y] for y in range(self.vocab.tgt_size)]

    def by_order(self, read: list[int], order: int) -> list[float]:
        size = self.vocab.tgt_size
        probs = [0.0 if y in (PAD, BOS) else 1 / (size - 2) for y in range(size)]
        for k in range(order + 1):
            probs = self.mixed(self.rows.get(self.context(read, k), Counter()), probs)
        return probs

    def informs(self, feature: tuple[str, str, int, int]) -> bool:
        row = self.rows.get(feature)
        if not row:
            return False
        q = self.by_order([feature[-1]], 1)
        p = self.mixed(row, q)
        bits = sum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a)
        return bits >= self.config.mask_threshold

    def next(self, src: list[int], read: list[int]) -> list[float]:
        lower = self.by_order(read, self.config.order)
        features = self.features(src, read) if self.config.skips else []
        if self.config.mask == "selective":
            features = [feature for feature in features if self.informs(feature)]
        if not features:
            return lower
        votes = [self.mixed(self.rows.get(feature, Counter()), lower) for feature in features]
        return [sum(column) / len(votes) for column in zip(*votes, strict=True)]


def random_pairs(vocab: Vocab, count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Few pieces and short sentences, so that contexts come again."""
    generator = torch.Generator().manual_seed(seed)

    def sentence(size: int, shortest: int) -> list[int]:
        length = int(torch.randint(shortest, 7, (1,), generator=generator))
        return torch.randint(3, size, (length,), generator=generator).tolist()

    return [(sentence(vocab.src_size, 0), sentence(vocab.tgt_size, 1)) for _ in range(count)]


OPTIONS = [
    {"order": order, "smoothing": smoothing, "min_count": min_count, **skips}
    for order, smoothing, min_count, skips in itertools.product(
        (1, 2, 4),
        (0.0, 0.7),
        (1, 2),
        ({}, {"skips": True}, {"skips": True, "mask": "selective", "mask_threshold": 0.4}),
    )
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(f"{value}" for value in options.values())
)
@pytest.mark.parametrize(
    "vocab", [Vocab(8, 8, shared=True), Vocab(6, 9, shared=False)], ids=["joint", "separate"]
)
def test_every_option_agrees_with_dictionaries(
    options: dict[str, object], vocab: Vocab, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = MarkovConfig(**options)  # type: ignore[arg-type]
    pairs, asked = random_pairs(vocab, 40, 1), random_pairs(vocab, 4, 2)
    model, brute = Markov(config, vocab).double(), Brute(config, vocab, pairs)
    model.count([collate(pairs[:7]), collate(pairs[7:30]), collate(pairs[30:])])
    batch = collate(asked)
    found = model(batch.src_ids, batch.src_mask, batch.tgt_in)
    for row, (src, tgt) in enumerate(asked):
        for t in range(len(tgt) + 1):
            expected = torch.tensor(brute.next([*src, EOS], [BOS, *tgt[:t]]), dtype=torch.float64)
            torch.testing.assert_close(found[row, t].exp(), expected, atol=1e-12, rtol=0)
            assert found[row, t].exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    hidden = torch.zeros(vocab.tgt_size, dtype=torch.bool)
    hidden[[PAD, BOS]] = True
    assert (found.isinf() == hidden).all()
    monkeypatch.setattr(importlib.import_module(Markov.__module__), "_ELEMENTS_AT_ONCE", 30)
    monkeypatch.setattr(context_counts, "_ENTRIES_AT_ONCE", 3)
    torch.testing.assert_close(model(batch.src_ids, batch.src_mask, batch.tgt_in), found, atol=1e-12, rtol=0)


def test_as_many_contexts_at_once_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of a batch is looked up once in every table, and what has no context once for all."""
    asked: list[int] = []
    find = context_counts.CountTable.find
    monkeypatch.setattr(
        context_counts.CountTable, "find", lambda self, keys: asked.append(keys.numel()) or find(self, keys)
    )
    vocab = Vocab(9, 9, shared=True)
    model = Markov(MarkovConfig(order=2), vocab)
    model.count([collate(random_pairs(vocab, 20, 1))])
    batch = collate([([], [3, 4, 5]), ([], [6, 7, 8])])  # 2 × 4 contexts
    for elements, expected in ((1 << 20, [1, 8, 8]), (9 * 5, [1, 5, 5, 3, 3])):
        monkeypatch.setattr(importlib.import_module(Markov.__module__), "_ELEMENTS_AT_ONCE", elements)
        asked.clear()
        model(batch.src_ids, batch.src_mask, batch.tgt_in)
        assert asked == expected


# --- attention ---------------------------------------------------------------------------------------


def votes_of(model: Markov, words: torch.Tensor, lower: torch.Tensor, last: int) -> torch.Tensor:
    """The vote of each earlier word, dense."""
    skips = model.decoder.skips
    assert skips is not None
    rows = skips.table.find(skips.key(torch.full_like(words, last), words))
    trust = skips.table.trust(rows, skips.smoothing, lower.dtype)
    votes = lower * (1 - trust[:, None])
    skips.table.add_rows(votes, torch.arange(len(words)), rows, trust)
    return votes


def test_the_mask_is_a_query_times_keys_and_the_votes_are_values() -> None:
    """One-hot vectors and dense matrices give what the look-up gives."""
    vocab = Vocab(7, 9, shared=False)
    config = MarkovConfig(order=2, skips=True, mask="selective", mask_threshold=0.3, smoothing=0.5)
    model = Markov(config, vocab).double()
    model.count([collate(random_pairs(vocab, 50, 3))])
    skips = model.decoder.skips
    assert skips is not None
    masks = torch.zeros(vocab.tgt_size * skips.words, dtype=torch.float64)
    masks[skips.table.keys] = skips.table.mask.double()
    masks = masks.view(vocab.tgt_size, skips.words)  # stacked: a mask over all words for each last word
    plain = Markov(MarkovConfig(order=2, smoothing=0.5), vocab).double()
    plain.count([collate(random_pairs(vocab, 50, 3))])
    alone = 0
    for src, tgt in random_pairs(vocab, 10, 4):
        batch = collate([(src, tgt)])
        found = model(batch.src_ids, batch.src_mask, batch.tgt_in)[0].exp()
        lower = plain(batch.src_ids, batch.src_mask, batch.tgt_in)[0].exp()
        for t, last in enumerate([BOS, *tgt]):
            words = torch.cat([batch.src_ids[0], vocab.src_size + batch.tgt_in[0, :t]])
            query = torch.nn.functional.one_hot(torch.tensor(last), vocab.tgt_size).double()
            keys = torch.nn.functional.one_hot(words, skips.words).double() @ masks.T  # M V
            scores = (keys @ query).log()  # 0 or −∞
            if not scores.isfinite().any():
                alone += 1
                torch.testing.assert_close(found[t], lower[t], atol=1e-12, rtol=0)
                continue
            values = votes_of(model, words, lower[t], last)
            torch.testing.assert_close(found[t], scores.softmax(0) @ values, atol=1e-12, rtol=0)
    assert 0 < alone < 30


@pytest.mark.parametrize("mask", ["none", "selective"])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_a_recording_shows_equal_weights_over_what_is_visible(mask: str, smoothing: float) -> None:
    vocab = Vocab(9, 9, shared=True)
    config = MarkovConfig(skips=True, mask=mask, mask_threshold=0.6, smoothing=smoothing)  # type: ignore[arg-type]
    model = Markov(config, vocab).double()
    model.count([collate(random_pairs(vocab, 40, 5))])
    batch = collate(random_pairs(vocab, 6, 6))
    plain = model(batch.src_ids, batch.src_mask, batch.tgt_in)
    with record(model) as seen:
        tapped = model(batch.src_ids, batch.src_mask, batch.tgt_in)
    torch.testing.assert_close(tapped, plain, atol=1e-10, rtol=0)
    weights = torch.cat(seen["decoder.skips"], dim=2)[:, 0]  # B T M
    sources, length = batch.src_ids.size(1), batch.tgt_in.size(1)
    assert weights.shape == (6, length, sources + length)
    torch.testing.assert_close(weights.sum(-1), torch.ones(6, length).double(), atol=1e-12, rtol=0)
    assert (weights[:, :, :sources].masked_select(~batch.src_mask[:, None].expand(-1, length, -1)) == 0).all()
    for t in range(length):
        assert (weights[:, t, sources + t + 1 :] == 0).all()
        for row in weights[:, t]:
            assert len(row[row > 0].unique()) == 1
            assert row[sources + t] in (0, 1)  # the last word is looked at where nothing else is


def test_the_worked_example_attends_to_the_deciding_word() -> None:
    words = sorted({word for sentence in FAR for word in sentence.split()})
    ids = {word: number for number, word in enumerate(words, 3)}
    vocab = Vocab(len(words) + 3, len(words) + 3, shared=True)
    model = Markov(MarkovConfig(**SELECTIVE), vocab).double()  # type: ignore[arg-type]
    model.count([collate([([], [ids[word] for word in sentence.split()]) for sentence in FAR])])
    prefix = next(iter(FAR)).split()[:-1]
    batch = collate([([], [ids[word] for word in prefix])])
    seen: list[torch.Tensor] = []
    with open_tap(lambda _module, weights: seen.append(weights)):
        model(batch.src_ids, batch.src_mask, batch.tgt_in)
    weights = seen[-1][0, 0, 0]  # </s> <s> check the program …
    assert weights.nonzero().flatten().tolist() == [2 + prefix.index("program")]


# --- use ---------------------------------------------------------------------------------------------


def test_without_skips_the_source_is_never_looked_at() -> None:
    vocab = Vocab(8, 8, shared=True)
    model = Markov(MarkovConfig(), vocab)
    model.count([collate(random_pairs(vocab, 30, 7))])
    one, other = collate([([3, 4], [5, 6])]), collate([([7, 5, 6], [5, 6])])
    found = [model(batch.src_ids, batch.src_mask, batch.tgt_in) for batch in (one, other)]
    assert torch.equal(*found)


@pytest.mark.parametrize("options", [{}, {"skips": True}, {**SELECTIVE}], ids=["order", "skips", "selective"])
@pytest.mark.parametrize("beam", [1, 4])
def test_search_finds_what_scoring_confirms(options: dict[str, object], beam: int) -> None:
    vocab = Vocab(12, 12, shared=True)
    model = Markov(MarkovConfig(**options), vocab).double()  # type: ignore[arg-type]
    model.count([collate(random_pairs(vocab, 60, 8))])
    batch = collate(random_pairs(vocab, 5, 9))
    config = SearchConfig(beam=beam, n_best=min(2, beam), min_length=2)
    for row, hypotheses in enumerate(search(Scorer([model]), batch.src_ids, batch.src_mask, config)):
        for hypothesis in hypotheses:
            tgt_in = torch.tensor([[BOS, *hypothesis.tokens[:-1]]])
            scores = model(batch.src_ids[row : row + 1], batch.src_mask[row : row + 1], tgt_in)[0]
            expected = scores[torch.arange(len(hypothesis.tokens)), list(hypothesis.tokens)]
            assert hypothesis.token_scores == pytest.approx(expected.tolist(), abs=1e-5)
            assert len(hypothesis.tokens) > 2


def test_a_model_that_has_counted_nothing_knows_nothing() -> None:
    model = Markov(MarkovConfig(skips=True, mask="selective"), Vocab(6, 6, shared=True)).double()
    batch = collate([([3], [4, 5])])
    probs = model(batch.src_ids, batch.src_mask, batch.tgt_in).exp()
    expected = torch.tensor([0, 0, 0.25, 0.25, 0.25, 0.25], dtype=torch.float64)
    torch.testing.assert_close(probs, expected.expand_as(probs))


def test_tables_are_saved_and_loaded_with_their_sizes() -> None:
    vocab = Vocab(8, 8, shared=True)
    config = MarkovConfig(skips=True, mask="selective", mask_threshold=0.4)
    model, other = Markov(config, vocab), Markov(config, vocab)
    model.count([collate(random_pairs(vocab, 30, 10))])
    saved = model_tensors(model)
    load_into(other, saved, "saved")
    assert all(torch.equal(tensor, saved[name]) for name, tensor in model_tensors(other).items())
    batch = collate(random_pairs(vocab, 3, 11))
    arguments = (batch.src_ids, batch.src_mask, batch.tgt_in)
    assert torch.equal(other(*arguments), model(*arguments))
    with pytest.raises(UserError, match=r"lacks tensor 'decoder\.skips\.table\.mask'"):
        load_into(other, {k: v for k, v in saved.items() if k != "decoder.skips.table.mask"}, "saved")
    with pytest.raises(UserError, match="has an unknown tensor"):
        load_into(Markov(MarkovConfig(order=1), vocab), saved, "saved")


def test_counting_does_not_depend_on_order_or_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    vocab = Vocab(8, 8, shared=True)
    config, pairs = MarkovConfig(skips=True, mask="selective"), random_pairs(vocab, 30, 12)
    model, other = Markov(config, vocab), Markov(config, vocab)
    model.count([collate(pairs)])
    monkeypatch.setattr(context_counts, "_WAITING", 5)
    other.count([collate([pair]) for pair in reversed(pairs)])
    for name, tensor in model_tensors(model).items():
        assert torch.equal(tensor, model_tensors(other)[name]), name


def test_contexts_that_cannot_be_numbered_are_refused() -> None:
    vocab = Vocab(1 << 24, 1 << 24, shared=True)
    model = Markov(MarkovConfig(order=2), vocab)
    model.decoder.tables[1].keys = torch.arange(1 << 20)
    with pytest.raises(UserError, match=r"model\.order: 2 is too much"):
        model.decoder._fill(
            model.decoder.tables[2],  # type: ignore[arg-type]
            [collate([([3], [4])])],
            lambda batch: (batch.tgt_in[0] + (1 << 43), batch.tgt_out[0]),
            1,
        )
    with pytest.raises(UserError, match="at most"):
        Markov(MarkovConfig(), Vocab((1 << 24) + 1, 9, shared=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 0}, "order: expected a whole number of at least 1, found 0"),
        ({"min_count": 0}, "min_count: expected"),
        ({"smoothing": -0.1}, "smoothing: expected a number of 0 or more, found -0.1"),
        ({"mask_threshold": math.inf}, "mask_threshold: expected"),
        ({"mask": "selective"}, "mask: selective chooses among skips"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MarkovConfig(**options)  # type: ignore[arg-type]
