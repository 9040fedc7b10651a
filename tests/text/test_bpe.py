"""The library's merges, and ours step by step, against byte-pair encoding in its plainest form."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.segment import segmenter
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

CLASSIC = " ".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)

TEXT = st.text(st.sampled_from(" .,<1abdelnorstwié船▁\t"), max_size=40)


def plain_bpe(text: str, tokenizer: Tokenizer, path: Path) -> list[str]:
    """Pieces of `text`: of the pairs that can be merged, merge the leftmost of the best rank; repeat."""
    content = json.loads(path.read_text(encoding="utf-8"))
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(content["merges"])}
    alphabet = {piece for piece in content["pieces"] if len(piece) == 1}
    marked = text and (f" {text}" if content["config"]["word_mark"] == "start" else f"{text} ")
    result = []
    for segment in segmenter(tokenizer.config).findall(marked):
        pieces = []
        for c in segment:
            if c != "▁" and c.replace(" ", "▁") in alphabet:
                pieces.append(c.replace(" ", "▁"))
            else:
                pieces += [f"<0x{byte:02X}>" for byte in c.encode()]
        while True:
            found = [(ranks[pair], i) for i, pair in enumerate(itertools.pairwise(pieces)) if pair in ranks]
            if not found:
                break
            i = min(found)[1]
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        result += pieces
    return result


def plain_training(texts: list[str], tokenizer: Tokenizer, count: int) -> list[tuple[str, str]]:
    """Merges by counting all pairs anew each time; of equals, that of the oldest first symbol.

    With the mark at the end, the oldest second symbol decides first.
    """
    config = tokenizer.config
    words: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        marked = f" {text}" if config.word_mark == "start" else f"{text} "
        words.update(tuple(segment.replace(" ", "▁")) for segment in segmenter(config).findall(marked))
    age = {c: i for i, c in enumerate(sorted({c for word in words for c in word}))}
    merges: list[tuple[str, str]] = []
    while len(merges) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += times

        def order(pair: tuple[str, str], pairs: Counter = pairs) -> tuple[int, int, int]:
            first, second = (age[pair[0]], age[pair[1]])
            return (
                (-pairs[pair], first, second)
                if config.word_mark == "start"
                else (-pairs[pair], second, first)
            )

        if not pairs or max(pairs.values()) < config.min_frequency:
            break
        best = min(pairs, key=order)
        merges.append(best)
        age[best[0] + best[1]] = len(age)
        merged: Counter[tuple[str, ...]] = Counter()
        for word, times in words.items():
            symbols, i = [], 0
            while i < len(word):
                step = 2 if word[i : i + 2] == best else 1
                symbols.append("".join(word[i : i + step]))
                i += step
            merged[tuple(symbols)] += times
        words = merged
    return merges


def merges_of(tokenizer: Tokenizer, path: Path) -> list[tuple[str, ...]]:
    tokenizer.save(path)
    return [tuple(merge.split(" ")) for merge in json.loads(path.read_text(encoding="utf-8"))["merges"]]


def test_the_worked_example(train: Callable[..., Tokenizer], tmp_path: Path):
    """Sennrich et al. 2016: low 5, lower 2, newest 6, widest 3."""
    tokenizer = train(
        [CLASSIC], vocab_size=3 + 256 + 11 + 5, word_mark="end", split_punctuation=False, split_digits=False
    )
    assert tokenizer.size == 3 + 256 + 11 + 5
    assert merges_of(tokenizer, tmp_path / "t.json") == [
        ("e", "s"), ("es", "t"), ("est", "▁"), ("l", "o"), ("lo", "w"),
    ]  # fmt: skip
    assert tokenizer.pieces(tokenizer.encode("lowest")) == ["low", "est▁"]


def test_the_worked_example_step_by_step(train: Callable[..., Tokenizer]):
    tokenizer = train([CLASSIC], vocab_size=275, word_mark="end")
    assert tokenizer.merge_steps("lowest low") == [
        ["l", "o", "w", "e", "s", "t", "▁", "l", "o", "w", "▁"],
        ["l", "o", "w", "es", "t", "▁", "l", "o", "w", "▁"],
        ["l", "o", "w", "est", "▁", "l", "o", "w", "▁"],
        ["l", "o", "w", "est▁", "l", "o", "w", "▁"],
        ["lo", "w", "est▁", "lo", "w", "▁"],
        ["low", "est▁", "low", "▁"],
    ]


@pytest.mark.parametrize("mark", ["start", "end"])
def test_training_is_plain_byte_pair_encoding(mark: str, train, corpus: list[str], tmp_path: Path):
    texts = [text.replace("  ", " ") for text in corpus]
    tokenizer = train(texts, vocab_size=500, word_mark=mark)
    merges = merges_of(tokenizer, tmp_path / "t.json")
    assert len(merges) > 100
    assert merges == plain_training(texts, tokenizer, len(merges))


def test_all_merges_there_are(train, corpus: list[str], tmp_path: Path):
    tokenizer = train(corpus, vocab_size=100_000)
    merges = merges_of(tokenizer, tmp_path / "t.json")
    assert merges == plain_training(corpus, tokenizer, 100_000)
    assert tokenizer.size < 2000


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(text=TEXT)
def test_encode_and_merge_steps_are_plain_bpe(text: str, grid: dict[str, Tokenizer], tmp_path_factory):
    for name in ("bpe-start-punctuation-digits", "bpe-end", "bpe-end-punctuation"):
        tokenizer = grid[name]
        path = tmp_path_factory.getbasetemp() / f"{name}.json"
        if not path.exists():
            tokenizer.save(path)
        pieces = plain_bpe(text, tokenizer, path)
        assert tokenizer.pieces(tokenizer.encode(text)) == pieces
        steps = tokenizer.merge_steps(text)
        assert steps[-1] == pieces
        assert all("".join(step) == "".join(pieces) for step in steps)
        assert all(len(after) < len(before) for before, after in itertools.pairwise(steps))


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(
    texts=st.lists(st.text("ab ", min_size=1, max_size=60), min_size=1, max_size=5),
    mark=st.sampled_from(["start", "end"]),
)
def test_runs_of_the_same_letters(texts: list[str], mark: str, tmp_path_factory):
    """Few letters make the same piece in several ways; the file still loads and the segmentations agree."""
    config = TokenizerConfig(vocab_size=400, min_frequency=1, word_mark=mark)  # type: ignore[arg-type]
    tokenizer = Tokenizer.train(texts, config)
    path = tmp_path_factory.getbasetemp() / "runs.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    for text in texts:
        pieces = plain_bpe(text, tokenizer, path)
        assert loaded.pieces(loaded.encode(text)) == loaded.merge_steps(text)[-1] == pieces


def test_kinds_without_merges_have_one_step(grid: dict[str, Tokenizer]):
    for name in ("word-start", "char", "byte"):
        tokenizer = grid[name]
        assert tokenizer.merge_steps("the boat") == [tokenizer.pieces(tokenizer.encode("the boat"))]
    assert grid["byte"].merge_steps("é") == [["<0xC3>", "<0xA9>"]]
    assert grid["bpe-start"].merge_steps("") == [[]]
