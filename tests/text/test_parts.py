"""Published tokenizers from strangers: known parts alone, of limited growth and size, and never a panic."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizers import normalizers

from dragoman.errors import UserError
from dragoman.text.charsmap import check_charsmap
from dragoman.text.published_tokenizer import Published, PublishedTokenizer, published_bytes
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import sealed
from dragoman.text.tokenizer_json import renumbered
from dragoman.text.tokenizer_json_checks import check_library
from limited import within
from mutations import HOSTILE, damaged, doubled, never_waiting, nodes, not_files, removed, replaced
from text.charsmaps import charsmap

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
REPLACED = {"ﬁ": "fi", "\t": " ", "１": "1", "é": "e", "ab": "x", "㎏": "kg"}
TEXTS = ["abc  ab", "ﬁne ▁ é\t１㎏", "日本語 \U0001f600", "", " ", "a" * 300, "<unk> </s> <pad>", "a\u0301"]


def compiled(data: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def added(*names: str) -> list[dict[str, Any]]:
    return [{"id": number, "content": name, **FLAGS} for number, name in enumerate(names)]


def library(model: dict[str, Any], normalizer: Any, pre_tokenizer: Any, tokens: list[Any]) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": model,
    }


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
BERT = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
MERGES = {"dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": "", "end_of_word_suffix": ""}
LIBRARIES: dict[str, dict[str, Any]] = {
    "unigram": library(
        {
            "type": "Unigram",
            "unk_id": 2,
            "vocab": [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["▁", -2.0], ["a", -3.5], ["▁ab", -4.0]],
            "byte_fallback": False,
        },
        {"type": "Sequence", "normalizers": [compiled(charsmap(REPLACED)), SPACES]},
        {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]},
        added("<pad>", "</s>", "<unk>"),
    ),
    "bpe": library(
        {
            "type": "BPE",
            **MERGES,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {name: number for number, name in enumerate(["<pad>", "</s>", "<unk>", "a", "b", "ab"])},
            "merges": [["a", "b"]],
        },
        {"type": "NFKC"},
        BYTES,
        added("<pad>", "</s>", "<unk>"),
    ),
    "wordpiece": library(
        {
            "type": "WordPiece",
            "unk_token": "<unk>",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {name: number for number, name in enumerate(["<pad>", "</s>", "<unk>", "a", "##b"])},
        },
        {"type": "BertNormalizer", **BERT},
        {"type": "BertPreTokenizer"},
        added("<pad>", "</s>", "<unk>"),
    ),
}


def tokenizer(of: dict[str, Any]) -> PublishedTokenizer:
    model = of.get("model") if isinstance(of, dict) else None
    vocab = model.get("vocab") if isinstance(model, dict) else None
    order = [0, 0, 1, *range(2, len(vocab) if isinstance(vocab, dict | list) else 6)]
    return PublishedTokenizer(Published(renumbered(of, order), len(order)))


def outcome(of: Any) -> list[list[int]] | None:
    """The ids of some texts; None where it is refused in one sentence. Anything else is an error."""
    try:
        made = tokenizer(of)
        return made.encode_batch(TEXTS)
    except UserError as error:
        assert len(str(error)) < 1000 and "\n" not in str(error)
        return None


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_value_replaced_removed_or_doubled(name: str) -> None:
    """Refused, or a tokenizer that works: no panic, no traceback, and no part that is not known."""
    good = LIBRARIES[name]
    assert outcome(good) is not None
    refused = accepted = 0
    for place in nodes(good):
        others = [replaced(good, place, value) for value in HOSTILE]
        for other in (*others, removed(good, place), doubled(good, place)):
            if outcome(other) is None:
                refused += 1
            else:
                accepted += 1
    assert refused > 10 * accepted / 2, (refused, accepted)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_stored_file_that_was_sealed_again(name: str, tmp_path: Path) -> None:
    """The same with our own file around it: what `Tokenizer.load` reads."""
    path = tmp_path / "tokenizer.json"
    good = json.loads(published_bytes(tokenizer(LIBRARIES[name]).published))
    good.pop("checksum")
    refused = 0
    for place in nodes(good):
        if len(place) > 3 and place[1] == "post_processor":
            continue  # it is not run
        for other in (*(replaced(good, place, value) for value in HOSTILE[:8]), removed(good, place)):
            path.write_bytes(sealed(other))
            try:
                Tokenizer.load(path).encode_batch(TEXTS)
            except UserError as error:
                assert str(path) in str(error) or "cut into pieces" in str(error)
                refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("section", "part", "message"),
    [
        (
            "pre_tokenizer",
            {
                "type": "Sequence",
                "normalizers": [{"type": "NFC"}],
                "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}],
            },
            "Sequence has no field 'normalizers'",
        ),
        (
            "pre_tokenizer",
            {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a+)+$"}}]},
            "found 'Split'",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""},
            "none is run from a file",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"String": "a", "Regex": "(a+)+$"}, "content": ""},
            "none is run from a file",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"String": ""}, "content": "a"},
            "which is not allowed there",
        ),
        (
            "normalizer",
            {
                "type": "Sequence",
                "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 20}] * 6,
            },
            "could make a text .* times longer",
        ),
        ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [BYTES] * 12}, "times longer"),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Strip"}] * 17}, "at most 16 parts"),
        ("normalizer", compiled(charsmap({"a": "b" * 200})), "precompiled_charsmap: damaged"),
        ("normalizer", compiled(b""), "precompiled_charsmap: damaged"),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "*"}, "expected base64"),
        ("decoder", {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}, "none is run"),
        ("further", {}, "'further' is not a field that is known"),
    ],
)
def test_what_would_run_is_refused(section: str, part: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_library({**LIBRARIES["bpe"], section: part})


def test_sequences_in_sequences() -> None:
    part: dict[str, Any] = {"type": "NFC"}
    for _ in range(10):
        part = {"type": "Sequence", "normalizers": [part]}
    with pytest.raises(UserError, match="normalizer: Sequence"):
        check_library({**LIBRARIES["bpe"], "normalizer": part})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"type": "Unigram", "unk_id": 9**9, "vocab": [["a", 0]]}, "unk_id: expected the number of a piece"),
        ({"type": "Unigram", "unk_id": None, "vocab": [["a", 0]]}, "unk_id: expected the number of a piece"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["a", 1e9]]}, "a score of its vocab"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["a", "0"]]}, "a score of its vocab"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["a" * 513, 0]]}, "a text of 1 to 512 characters"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["\ud800", 0]]}, "surrogates"),
        ({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}, "twice there"),
        ({"type": "BPE", "vocab": {"a": 10**9}, "merges": []}, "too large"),
        ({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b", "c"]]}, "is not a merge of two pieces"),
        ({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.5}, "dropout: found 0.5"),
        ({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "x"}, "'x' is not in its vocabulary"),
        ({"type": "BPE", "vocab": {"a": 0}, "merges": [], "continuing_subword_prefix": "é"}, "prefix: found"),
        ({"type": "WordPiece", "vocab": {"a": 0}, "max_input_chars_per_word": 10**9}, "per_word: found"),
        ({"type": "WordPiece", "vocab": {"a": 0}}, "has no unk_token"),
    ],
)
def test_models(model: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_library({**LIBRARIES["bpe"], "added_tokens": [], "model": model})


def test_many_pieces_take_no_memory() -> None:
    """Each names a limit before the library takes gigabytes for them."""
    chance = random.Random(2)
    long = [["".join(chance.choices("abcdefgh", k=512)), 0.0] for _ in range(20_000)]
    models = [
        {"type": "Unigram", "unk_id": 0, "vocab": long},
        {"type": "BPE", "vocab": {str(n): n for n in range(1_000_001)}, "merges": []},
        {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"] * 1_000_001},
    ]

    def refused() -> list[str]:
        found = []
        for model in models:
            with pytest.raises(UserError) as caught:
                check_library({**LIBRARIES["bpe"], "added_tokens": [], "model": model})
            found.append(str(caught.value))
        return found

    bytes_, pieces, merges = within(300, refused)
    assert "8,388,608 bytes" in bytes_ and "1,000,000 pieces" in pieces and "1,000,000 merges" in merges


@pytest.mark.parametrize("size", [10**9, 2, -1, True, 6.0, "6", None])
def test_the_size_of_a_stored_file(size: Any, tmp_path: Path) -> None:
    good = json.loads(published_bytes(tokenizer(LIBRARIES["bpe"]).published))
    good.pop("checksum")
    (tmp_path / "tokenizer.json").write_bytes(sealed({**good, "size": size}))
    with pytest.raises(UserError, match=r"tokenizer\.json: not a sound tokenizer file: size: expected"):
        Tokenizer.load(tmp_path / "tokenizer.json")


# --- compiled maps of characters ---------------------------------------------------------------------


def test_a_sound_map_is_run_as_it_is() -> None:
    data = charsmap(REPLACED)
    assert check_charsmap(base64.b64encode(data).decode()) == 2
    assert normalizers.Precompiled(data).normalize_str("ﬁ é") == "fi e"


def test_damaged_maps_never_panic() -> None:
    """What is accepted runs on any text; the rest would make the library panic on some."""
    chance, data = random.Random(7), charsmap(REPLACED)
    texts = [*TEXTS, "".join(map(chr, range(1, 0x300))), "".join(map(chr, range(0xFF00, 0xFFEF)))]
    accepted = 0
    for _ in range(1500):
        other = damaged(data, chance)
        try:
            check_charsmap(base64.b64encode(other).decode())
        except UserError:
            continue
        accepted += 1
        run = normalizers.Precompiled(other)
        for text in texts:
            run.normalize_str(text)
    assert accepted > 100


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00abc\0",
        b"\x04\x00\x00\x00" + b"\xff\xff\xff\x7f" + b"a\0",
        charsmap({"é": "e"})[:-2] + b"\xff\0",
        charsmap({"a": "b"}).replace(b"b\0", b"\x80\0"),
    ],
)
def test_maps_that_lie(data: bytes) -> None:
    with pytest.raises(UserError, match="precompiled_charsmap: damaged"):
        check_charsmap(base64.b64encode(data).decode())


def test_keys_that_end_within_a_character() -> None:
    whole, half = charsmap({"é": "e", "è": "e"}), charsmap({"é": "e"})
    check_charsmap(base64.b64encode(whole).decode())
    units = bytearray(half)
    first = next(at for at in range(4, len(half), 4) if half[at] == 0xC3)  # the first byte of é
    units[first + 1] |= 1  # and a key ends with it
    with pytest.raises(UserError, match="damaged"):
        check_charsmap(base64.b64encode(bytes(units)).decode())


def test_panics_are_told_in_a_sentence_and_interrupts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tokenizer(LIBRARIES["bpe"])

    class PanicException(BaseException):
        """As the library has it: no Exception."""

    class Library:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> list[Any]:  # noqa: ARG002
            raise self.error

    monkeypatch.setattr(made, "_library", Library(PanicException("index out of bounds")))
    with pytest.raises(UserError, match=r"cannot be cut into pieces .*index out of bounds"):
        made.encode("a")
    monkeypatch.setattr(made, "_library", Library(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        made.encode("a")


def test_things_that_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer(LIBRARIES["bpe"]).save(path)
    with never_waiting():
        for kind in not_files(path):
            with pytest.raises(UserError, match="there is no such file" if kind == "nothing" else kind):
                Tokenizer.load(path)
