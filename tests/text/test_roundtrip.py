"""decode(encode(x)) == NFC(x), nothing becomes a control piece, and decode takes anything."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer, TokenizerConfig

HARD = [
    "", " ", "  ", "   a", "a   ", " a  b ", "\t", "\n", "\r\n", "\u2028", "\u2029", "\x85", "\x0b\x0c\x1c",
    "\x00", "\ufeff", "\u00a0", "▁", "▁▁ ▁", " ▁", "▁ ", "<", "<<", "< <", "<s>", "</s>", "<pad>", "<2de>",
    "<0x41>", "<0xE2><0x96><0x81>", "a</s>b", " <s> ", "é", "e\u0301", "\u0301", " \u0301",
    "\u1112\u1161\u11ab", "👩\u200d👩\u200d👧", "🇩🇪", "नमस्\u200cते", "\ufffd", "\U0010ffff", "\ue000",
    "\u212b", "ﬁ", "ǅ", "½²", "٣٤", "𝟎", "newest", "Lowest 1999.", "x" * 300,
    "<" * 40, " " * 200, "ab" * 100 + " ", "最新的船",
]  # fmt: skip


WORDS = ["newest", "Boot", "größten", "1999", "лодка,", "船是", "<b>tags</b>", "e\u0301t\u0301"]

ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TEXT = st.lists(st.one_of(ANYTHING, st.sampled_from(HARD), st.sampled_from(WORDS)), max_size=8).flatmap(
    lambda parts: st.sampled_from(["".join(parts), " ".join(parts)])
)


def check(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
    first_byte = 3 + len(tokenizer.config.specials)
    assert all(first_byte <= i < tokenizer.size for i in ids)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(text=TEXT)
def test_decode_gives_back_what_encode_took(text: str, grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        check(tokenizer, text)


def test_the_hard_strings_alone_and_in_pairs(grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        for first in HARD:
            for second in ("", " ", "a", first, "</s>"):
                check(tokenizer, first + second)
                check(tokenizer, second + first)


def test_every_character_comes_back(grid: dict[str, Tokenizer]):
    codes = [code for code in range(0, 0x110000, 67) if not 0xD800 <= code <= 0xDFFF]
    text = "".join(map(chr, codes))
    for tokenizer in grid.values():
        check(tokenizer, text)


@pytest.mark.parametrize(
    "text", ["<pad>", "<s>", "</s>", "<2de>", "<mask>", "<0x41>", "▁", "a</s>b", " </s> "]
)
def test_text_that_looks_like_a_control_piece_stays_text(text: str, grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        controls = 3 + len(tokenizer.config.specials)
        ids = tokenizer.encode(text)
        assert min(ids) >= controls
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == text  # real control ids are skipped


def test_control_look_alikes_in_the_training_text_are_not_learnt_whole(train):
    text = ["</s> <s> <pad> <0x41> <2de> ▁ </s> <s> <pad> <0x41> <2de> ▁"] * 50
    for fields in ({}, {"word_mark": "end"}, {"kind": "word"}):
        fields |= {"split_punctuation": False, "split_digits": False, "specials": ("<2de>",)}
        tokenizer = train(text, vocab_size=500, **fields)
        check(tokenizer, text[0])
        learnt = tokenizer.pieces(range(4 + 256, tokenizer.size))
        assert "<" in learnt and not any("<" in piece for piece in learnt if piece != "<")
        assert "<0xE2> <0x96> <0x81>" in " ".join(tokenizer.pieces(tokenizer.encode("▁")))


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(shares=st.lists(st.floats(0, 1), max_size=30))
def test_decode_takes_any_ids(shares: list[float], grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        ids = [min(int(share * tokenizer.size), tokenizer.size - 1) for share in shares]
        assert isinstance(tokenizer.decode(ids), str)
        assert len(tokenizer.pieces(ids)) == len(ids)
        tokenizer.decode(ids).encode("utf-8")


def test_broken_bytes_and_ids_that_do_not_exist_become_the_replacement_character(grid: dict[str, Tokenizer]):
    tokenizer = grid["char"]
    byte = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.size)))}
    a = tokenizer.encode("a")
    assert tokenizer.decode([byte["<0xE2>"], byte["<0x82>"], *a]) == "\ufffda"
    assert tokenizer.decode([byte["<0xE2>"], byte["<0x82>"], byte["<0xAC>"], *a]) == "€a"
    assert tokenizer.decode([*a, tokenizer.size, -1, *a]) == "a\ufffd\ufffda"
    assert tokenizer.pieces([-1, tokenizer.size]) == ["\ufffd", "\ufffd"]


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(texts=st.lists(TEXT, max_size=12))
def test_a_batch_gives_the_same_ids_as_one_by_one(texts: list[str], grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_a_batch_of_more_than_one_chunk_keeps_its_order(grid: dict[str, Tokenizer]):
    texts = [f"boat {number}" for number in range(10_000)]
    tokenizer = grid["bpe-start-punctuation-digits"]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(texts)] == texts


def test_the_table_of_known_segments_stays_bounded(grid, train, corpus, monkeypatch):
    monkeypatch.setattr("dragoman.text.tokenizer._KNOWN_SEGMENTS", 10)
    tokenizer = train(corpus, vocab_size=600, specials=("<2de>",))
    for _ in range(2):
        for text in corpus:
            assert tokenizer.encode(text) == grid["bpe-start-punctuation-digits"].encode(text)
            assert len(tokenizer._known) < 50


def test_empty_text_has_no_ids(grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""
        assert tokenizer.encode_batch([]) == []


def test_a_lone_surrogate_is_a_mistake_of_the_caller(grid: dict[str, Tokenizer]):
    for tokenizer in grid.values():
        with pytest.raises(UserError, match="lone surrogate"):
            tokenizer.encode("ab\ud800")
        with pytest.raises(UserError, match="lone surrogate"):
            tokenizer.encode_dropout("ab\ud800", 0.5, (1,))
        with pytest.raises(UserError, match="lone surrogate"):
            tokenizer.encode_batch(["fine", "ab\ud800"])
    with pytest.raises(UserError, match="lone surrogate"):
        Tokenizer.train(["ab\ud800"], TokenizerConfig())


def test_a_line_of_a_million_characters(grid: dict[str, Tokenizer]):
    for text in ("x" * 1_000_000, " " * 1_000_000, "船" * 500_000):
        check(grid["bpe-start-punctuation-digits"], text)


def test_a_text_asks_for_its_own_segments_alone(train, corpus):
    """However many segments are known: each text of a run is looked up by itself."""

    class Counted(dict):
        def __iter__(self):
            raise AssertionError("all known segments were looked at")

        keys = __iter__

    tokenizer = train(corpus, vocab_size=400)
    tokenizer._known = Counted()
    assert tokenizer.encode(corpus[0]) == tokenizer.spell(f" {corpus[0]}")
    assert tokenizer.decode(tokenizer.encode(corpus[0])) == corpus[0]
