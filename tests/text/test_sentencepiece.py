"""SentencePiece files, written here field by field, cut text as the best path through their pieces does."""

import math
import random
import struct
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.text.published_tokenizer import Published, PublishedTokenizer
from dragoman.text.sentencepiece import m2m_library, marian_library, read_pieces, sentencepiece_json
from dragoman.text.tokenizer_json import renumbered
from limited import within
from mutations import damaged, never_waiting, not_files
from text.charsmaps import charsmap

SCORES = {"▁": -2.0, "a": -3.0, "b": -3.1, "c": -3.2, "ab": -3.5, "▁a": -3.3, "bc": -4.0, "▁abc": -9.9}
NORMAL, UNKNOWN, CONTROL = 1, 2, 3


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, value: bytes | int | float) -> bytes:
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def spm(controls: list[str], scores: dict[str, float], model_type: int = 1) -> bytes:
    kinds = {name: UNKNOWN if name == "<unk>" else CONTROL for name in controls}
    rows = [(name, 0.0, kinds[name]) for name in controls] + [(p, s, NORMAL) for p, s in scores.items()]
    pieces = [field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in rows]
    return b"".join(pieces) + field(2, field(3, model_type) + field(4, 8000)) + field(3, field(1, b"nmt"))


def best_path(text: str) -> list[str]:
    """Viterbi over all ways to write a word; no character here is unknown."""
    words = [f"▁{word}" for word in text.split()]
    found: list[str] = []
    for word in words:
        best: list[tuple[float, list[str]]] = [(0.0, [])] + [(-math.inf, [])] * len(word)
        for end in range(1, len(word) + 1):
            for start in range(end):
                if word[start:end] in SCORES and best[start][0] + SCORES[word[start:end]] > best[end][0]:
                    best[end] = best[start][0] + SCORES[word[start:end]], [*best[start][1], word[start:end]]
        found += best[-1][1]
    return found


def test_t5(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(spm(["<pad>", "</s>", "<unk>"], SCORES))
    rows = 3 + len(SCORES) + 100 + 5
    order = [0, 0, 1, *range(2, rows)]
    tokenizer = PublishedTokenizer(Published(renumbered(sentencepiece_json(path), order), len(order)))
    for text in ("abc ab", "c  cab bcbc", "a"):
        assert tokenizer.pieces(tokenizer.encode(text)) == best_path(text)
        assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())
    (sentinel,) = tokenizer.encode("<extra_id_7>")
    assert sentinel == 1 + 3 + len(SCORES) + 92
    assert tokenizer.pieces([rows]) == [f"<unused {rows}>"]
    assert tokenizer.encode("az") == [tokenizer.encode("a")[0], 3]


def test_marian(tmp_path: Path) -> None:
    """«bc» is not in the vocabulary, and «x» only the target can write."""
    path = tmp_path / "source.spm"
    path.write_bytes(spm(["<unk>", "<s>", "</s>"], SCORES))
    names = ["</s>", "<unk>", "▁", "a", "b", "c", "x", ">>fra<<", "ab", "▁a", "▁abc", "<pad>"]
    pad = names.index("<pad>")
    order = [pad, pad, 0, *range(1, pad)]
    library = marian_library(path, {name: number for number, name in enumerate(names)})
    tokenizer = PublishedTokenizer(Published(renumbered(library, order), len(order), prefix=">>fra<< "))
    unknown = 3
    for text in ("abc ab", "c cab bcbc", "a"):
        expected = [order.index(names.index(p)) if p in names else unknown for p in best_path(text)]
        assert tokenizer.encode(text) == [order.index(names.index(">>fra<<")), *expected]
    assert tokenizer.decode([order.index(names.index("x"))]) == "x"
    assert order.index(names.index("x")) not in tokenizer.encode("x")
    tokenizer.save(tmp_path / "tokenizer.json")
    again = PublishedTokenizer.load(tmp_path / "tokenizer.json")
    assert again.sha256 == tokenizer.sha256
    assert again.encode("ab c") == tokenizer.encode("ab c")


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xff\xff", b"hello world", spm(["<unk>"], SCORES)[:-30] + b"\x0a\xff"]
)
def test_what_is_no_such_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(data)
    with pytest.raises(UserError, match="not a SentencePiece file"):
        read_pieces(path)


def test_only_unigram_models(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(spm(["<unk>"], SCORES, model_type=2))
    with pytest.raises(UserError, match="only unigram models"):
        read_pieces(path)


MAP = charsmap({"ﬁ": "fi", "\t": " "})
WHOLE = spm(["<pad>", "</s>", "<unk>"], SCORES) + field(3, field(2, MAP))


def outcome(path: Path) -> list[int] | None:
    """The ids of a text; None where the file is refused in one sentence."""
    try:
        made = renumbered(sentencepiece_json(path), [0, 0, 1, *range(2, 3 + len(SCORES) + 100)])
        tokenizer = PublishedTokenizer(Published(made, 3 + len(SCORES) + 101))
        return tokenizer.encode("abc ﬁ\tca")
    except UserError as error:
        assert len(str(error)) < 500 and "\n" not in str(error)
        return None


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    """No panic, no traceback: cut at every byte, and changed in every way."""
    path, chance = tmp_path / "spiece.model", random.Random(4)
    path.write_bytes(WHOLE)
    assert outcome(path) is not None
    for size in range(0, len(WHOLE), 23):
        path.write_bytes(WHOLE[:size])
        outcome(path)
    refused = 0
    for _ in range(500):
        path.write_bytes(damaged(WHOLE, chance))
        refused += outcome(path) is None
    assert refused > 100


@pytest.mark.parametrize(
    "data",
    [
        varint(1 << 3 | 2) + varint(2**62) + b"abc",  # a length beyond the file
        varint(1 << 3 | 2) + varint(5) + b"abc",
        varint(1 << 3) + varint(7),  # a piece that is a number
        field(1, field(1, 7)),
        field(1, field(1, b"a") + field(2, b"score")),
        field(1, field(1, b"a") + field(3, b"kind")),
        field(1, field(1, b"a") + field(2, math.nan)),
        field(1, field(1, b"a") + field(2, math.inf)),
        field(1, field(1, b"\xff")),
        field(1, field(1, b"\0a")),
        field(1, field(1, b"")),
        field(1, field(1, b"a")) + field(2, field(3, b"x")),
        field(1, field(1, b"a")) + field(3, field(2, 7)),
        field(1, field(1, b"a")) + field(3, 7),
        field(1, field(1, b"a") * 2000),
        b"\xff" * 20,
    ],
)
def test_fields_of_other_types_and_lengths(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(data)
    with pytest.raises(UserError, match="not a SentencePiece file"):
        read_pieces(path)


def test_many_pieces_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(field(1, field(1, b"a")) * 1_001_001)

    def read() -> str:
        with pytest.raises(UserError) as caught:
            read_pieces(path)
        return str(caught.value)

    assert "not a SentencePiece file" in within(400, read)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(WHOLE)
    with never_waiting():
        for kind in not_files(path):
            with pytest.raises(UserError, match="cannot be read" if kind == "nothing" else kind):
                read_pieces(path)


def test_m2m(tmp_path: Path) -> None:
    """Pieces are merged by their scores; the languages come after the vocabulary."""
    path = tmp_path / "sentencepiece.bpe.model"
    merged = {"▁": -9.0, "a": -9.1, "b": -9.2, "c": -9.3, "ab": 0.0, "▁ab": -1.0, "bc": -2.0}
    path.write_bytes(spm(["<unk>", "<s>", "</s>"], merged, model_type=2))
    names = ["<s>", "<pad>", "</s>", "<unk>", *merged]
    library = m2m_library(path, {name: n for n, name in enumerate(names)}, ["__en__", {"content": "__de__"}])
    size = len(names) + 2
    order = [1, 0, 2, *range(3, size)]
    tokenizer = PublishedTokenizer(
        Published(renumbered(library, order, (size - 2,)), size, before=(size - 2,))
    )
    assert tokenizer.pieces(tokenizer.encode("abc cab")) == ["__en__", "▁ab", "c", "▁", "c", "ab"]
    assert tokenizer.pieces(tokenizer.encode("bc z")) == ["__en__", "▁", "bc", "▁", "<unk>"]
