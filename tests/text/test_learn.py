"""Vocabularies: layout, sizes, alphabets, mistakes, and the same file from the same text on any machine."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer, TokenizerConfig

FIRST = 3 + 256


def all_pieces(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.size))


def test_one_layout_for_every_kind(grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        pieces = all_pieces(tokenizer)
        specials = tokenizer.config.specials
        assert pieces[:3] == ["<pad>", "<s>", "</s>"]
        assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (PAD_ID, BOS_ID, EOS_ID) == (0, 1, 2)
        assert pieces[3 : 3 + len(specials)] == list(specials)
        start = 3 + len(specials)
        assert pieces[start : start + 256] == [f"<0x{byte:02X}>" for byte in range(256)]
        assert len(set(pieces)) == len(pieces) == tokenizer.size <= tokenizer.config.vocab_size
        if tokenizer.kind != "byte":
            assert pieces[start + 256] == "▁"


def test_vocab_size_is_the_whole_size(train, corpus):
    for size in (350, 400, 500):
        assert train(corpus, vocab_size=size).size == size
        assert train(corpus, vocab_size=size, kind="word", min_frequency=1).size <= size
    assert train(corpus, kind="byte").size == FIRST
    few = train(["ab ab"], vocab_size=5000)
    assert few.size == FIRST + 3 + 2  # ▁ a b, then two merges: there are no more


def test_the_smallest_vocabulary_has_the_mark_only(train):
    tokenizer = train(["some text"], vocab_size=FIRST + 1)
    assert all_pieces(tokenizer)[FIRST:] == ["▁"]
    assert tokenizer.decode(tokenizer.encode("some text")) == "some text"


def test_rare_characters_are_spelt_in_bytes(train):
    tokenizer = train(["aaa bbb é"], vocab_size=400)
    assert "é" not in all_pieces(tokenizer) and "a" in all_pieces(tokenizer)
    assert tokenizer.pieces(tokenizer.encode("é")) == ["▁", "<0xC3>", "<0xA9>"]
    assert "é" in all_pieces(train(["aaa bbb é"], vocab_size=400, min_frequency=1))


def test_no_merge_crosses_a_character_without_a_piece(train):
    texts = ["a\u4e00b a\u4e01b a\u4e02b a\u4e03b"]  # each of the four is seen once
    learnt = all_pieces(train(texts, vocab_size=400))[FIRST:]
    assert learnt == ["▁", "a", "b", "▁a"]


def test_a_huge_alphabet_leaves_half_of_the_room_to_merges(train):
    common, rare = range(0x4E00, 0x4E00 + 200), range(0x5E00, 0x5E00 + 2000)
    texts = ["".join(map(chr, common))] * 9 + ["".join(map(chr, rare))] * 2
    tokenizer = train(texts, vocab_size=FIRST + 1000)
    learnt = all_pieces(tokenizer)[FIRST:]
    alphabet = [piece for piece in learnt if len(piece) == 1]
    assert len(alphabet) == 500
    assert {chr(code) for code in common} < set(alphabet)
    assert FIRST + 950 < tokenizer.size <= FIRST + 1000


def test_words_by_frequency(train, corpus):
    tokenizer = train(corpus, kind="word", vocab_size=1000, split_punctuation=False, split_digits=False)
    counts = Counter(f"▁{word}" for line in corpus for word in line.split(" ") if not {"<", "\t"} & set(word))
    words = [piece for piece in all_pieces(tokenizer)[FIRST:] if len(piece) > 1 and piece in counts]
    assert words[:3] == ["▁the", "▁is", "▁and"] or counts[words[0]] == max(counts.values())
    assert [counts[word] for word in words] == sorted((counts[word] for word in words), reverse=True)
    assert tokenizer.pieces(tokenizer.encode("the newest bot")) == ["▁the", "▁newest", "▁", "b", "o", "t"]


def test_char_takes_the_most_frequent_characters(train):
    tokenizer = train(["aaaa bbb cc d"], kind="char", vocab_size=FIRST + 3, min_frequency=1)
    assert all_pieces(tokenizer)[FIRST:] == ["▁", "a", "b"]


def test_texts_may_be_an_iterator_of_any_length(train, corpus, monkeypatch):
    expected = train(corpus, vocab_size=500).sha256
    assert train(iter(corpus), vocab_size=500).sha256 == expected
    monkeypatch.setattr("dragoman.text.learn_vocabulary._CHUNK_CHARACTERS", 100)  # many chunks, on disk
    monkeypatch.setattr("dragoman.text.learn_vocabulary._SPOOL_BYTES", 10)
    assert train(iter(corpus), vocab_size=500).sha256 == expected
    for kind in ("word", "char"):
        many = train(iter(corpus), vocab_size=500, kind=kind)
        monkeypatch.setattr("dragoman.text.learn_vocabulary._CHUNK_CHARACTERS", 1 << 16)
        assert many.sha256 == train(corpus, vocab_size=500, kind=kind).sha256


TRAINING = """
import random
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
random.seed(1)
syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
words = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(400)]
texts = [" ".join(random.choices(words, k=12)) for _ in range(600)]
for kind in ("bpe", "word", "char"):
    for mark in ("start", "end"):
        print(Tokenizer.train(texts, TokenizerConfig(kind=kind, vocab_size=700, word_mark=mark)).sha256)
"""


def test_the_same_file_whatever_the_threads_and_hashes():
    outputs = []
    for threads, parallel, seed in (
        ("1", "true", "1"),
        ("2", "true", "2"),
        ("7", "true", "3"),
        ("1", "false", "4"),
    ):
        environment = os.environ | {
            "RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": parallel, "PYTHONHASHSEED": seed,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", TRAINING], env=environment, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
    assert len(outputs[0].split()) == 6
    assert len(set(outputs)) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocab_size": 259}, "vocab_size: 259 is too small .* use at least 260"),
        (
            {"vocab_size": 261, "specials": ("<a>", "<b>")},
            "vocab_size: 261 .* 5 control pieces, .* at least 262",
        ),
        ({"kind": "byte", "vocab_size": 258}, "use at least 259"),
        ({"vocab_size": 10**9}, "vocab_size: 1000000000 is more than the limit"),
        ({"kind": "sentence"}, "kind: expected one of bpe, word, char, byte, found 'sentence'"),
        ({"word_mark": "middle"}, "word_mark: expected start or end"),
        ({"min_frequency": 0}, "min_frequency: expected at least 1, and below 2.32, found 0"),
        ({"min_frequency": 10**20}, "min_frequency: expected at least 1, and below 2.32, found 1"),
        ({"dropout": 1.5}, "dropout: expected a rate from 0 to 1, found 1.5"),
        ({"dropout": float("nan")}, "dropout: expected a rate"),
        ({"dropout": 0.1, "kind": "char"}, "dropout: 0.1 needs kind bpe"),
        ({"specials": ("mask",)}, "specials: 'mask' must have the form <name>"),
        ({"specials": ("<a b>",)}, "specials: '<a b>' must have the form"),
        ({"specials": ("<>",)}, "specials: '<>' must have the form"),
        ({"specials": ("<a><b>",)}, "must have the form"),
        ({"specials": ("<\ud800>",)}, "must have the form"),
        ({"specials": ("</s>",)}, "specials: '</s>' is in the vocabulary already"),
        ({"specials": ("<0x41>",)}, "in the vocabulary already"),
        ({"specials": ("<a>", "<a>")}, "in the vocabulary already"),
    ],
)
def test_impossible_options_are_refused_by_field(fields: dict, message: str):
    with pytest.raises(UserError, match=message):
        TokenizerConfig(**fields)


def test_no_text_is_a_mistake(train):
    for kind in ("bpe", "word", "char"):
        for texts in ([], ["", ""]):
            with pytest.raises(UserError, match="no text to learn from"):
                train(texts, kind=kind)
    assert train([" "], vocab_size=300).encode("  ") == [FIRST] * 3


def test_a_full_temporary_folder_is_told(train, monkeypatch):
    class Full:
        def __init__(self, max_size: int) -> None: ...
        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None: ...
        def write(self, _: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.text.learn_vocabulary.tempfile.SpooledTemporaryFile", Full)
    with pytest.raises(UserError, match=r"No space left on device.*set TMPDIR"):
        train(["some text"])
