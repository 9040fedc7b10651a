"""Checks of a tokenizer.json from any source: allowed parts, their fields, and sizes.

The library tokenizers runs whatever the file says: regular expressions that never end, normalisers that turn
a sentence into gigabytes, a compiled map that makes it panic. So every field has to be known here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.errors import UserError, shown
from dragoman.text.charsmap import check_charsmap
from dragoman.text.tokenizer_file import LARGEST_VOCABULARY

LONGEST_NAME = 512
_MOST_PARTS, _DEEPEST = 16, 4
_LARGEST_NAMES = 8 << 20
"""UTF-8 bytes of all pieces; the library takes some 330 bytes for each."""
_MOST_ADDED = 100_000
_LARGEST_GROWTH = 1000
_LONGEST_WORD = 1000
_HARMLESS = " {2,}"
"""The only pattern that a file may contain: others could take exponential time."""

FieldCheck = Callable[[Any], bool]
FieldChecks = Mapping[str, FieldCheck]


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_NAME


def _letter(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LONGEST_WORD


def _pattern(value: Any) -> bool:
    """A literal text, or the harmless expression."""
    if not isinstance(value, dict) or set(value) != {"String"}:
        return value == {"Regex": _HARMLESS}
    return _text(value["String"]) and value["String"] != ""


def _or_none(check: FieldCheck) -> FieldCheck:
    return lambda value: value is None or check(value)


def _one_of(*allowed: object) -> FieldCheck:
    return lambda value: value in allowed and not isinstance(value, bool)


def _anything(value: Any) -> bool:  # noqa: ARG001 (it is looked at by another check)
    return True


_METASPACE = {
    "replacement": _letter,
    "prepend_scheme": _one_of("always", "first", "never"),
    "split": _flag,
    "add_prefix_space": _flag,
    "str_rep": _text,
}
_BYTE_LEVEL = {"add_prefix_space": _flag, "trim_offsets": _flag, "use_regex": _flag}
_REPLACE = {"pattern": _pattern, "content": _text}
SECTIONS: dict[str, dict[str, FieldChecks]] = {
    "normalizer": {
        "Sequence": {"normalizers": _anything},
        "Precompiled": {"precompiled_charsmap": lambda value: isinstance(value, str)},
        **{kind: {} for kind in ("NFC", "NFKC", "NFD", "NFKD", "Lowercase")},
        "Strip": {"strip_left": _flag, "strip_right": _flag},
        "Replace": _REPLACE,
        "BertNormalizer": {
            "clean_text": _flag,
            "handle_chinese_chars": _flag,
            "strip_accents": _or_none(_flag),
            "lowercase": _flag,
        },
    },
    "pre_tokenizer": {
        "Sequence": {"pretokenizers": _anything},
        "Metaspace": _METASPACE,
        "ByteLevel": _BYTE_LEVEL,
        "WhitespaceSplit": {},
        "BertPreTokenizer": {},
    },
    "decoder": {
        "Sequence": {"decoders": _anything},
        "Metaspace": _METASPACE,
        "ByteLevel": _BYTE_LEVEL,
        "WordPiece": {"prefix": _text, "cleanup": _flag},
        "BPEDecoder": {"suffix": _text},
        "Replace": _REPLACE,
        "Strip": {"content": _letter, "start": _count, "stop": _count},
        "Fuse": {},
        "ByteFallback": {},
    },
    "model": {
        "Unigram": {"unk_id": _anything, "vocab": _anything, "byte_fallback": _flag},
        "BPE": {
            "dropout": _or_none(_one_of(0)),
            "unk_token": _or_none(_text),
            "continuing_subword_prefix": _or_none(_one_of("")),
            "end_of_word_suffix": _or_none(_text),
            "fuse_unk": _flag,
            "byte_fallback": _flag,
            "ignore_merges": _flag,
            "vocab": _anything,
            "merges": _anything,
        },
        "WordPiece": {
            "unk_token": _text,
            "continuing_subword_prefix": _text,
            "max_input_chars_per_word": _count,
            "vocab": _anything,
        },
    },
}
_NOT_RUN = ("version", "truncation", "padding", "post_processor", "role_to_token")
"""Fields without effect: they are replaced or removed before anything is run."""
_ADDED: FieldChecks = {
    "id": lambda value: type(value) is int and 0 <= value <= LARGEST_VOCABULARY,
    "content": lambda value: _text(value) and value != "",
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), _flag),
}
_GROWTH = {
    **{"NFC": 3.0, "NFD": 3.0, "NFKC": 11.0, "NFKD": 11.0, "Lowercase": 1.5, "BertNormalizer": 5.0},
    **{"ByteLevel": 2.0, "Metaspace": 3.0},
}
"""How many times longer the UTF-8 of a text can become."""


def check_library(library: Any) -> None:
    """Refuse anything unknown. What passes takes time and memory linear in the text."""
    if not isinstance(library, dict) or not isinstance(library.get("model"), dict):
        raise UserError("this is not what the library tokenizers writes")
    for name in library:
        if name not in (*SECTIONS, *_NOT_RUN, "added_tokens"):
            raise UserError(f"{shown(name)} is not a field that is known")
    growth = 1.0
    for section in SECTIONS:
        for part in section_parts(library, section):
            growth *= _growth(section, part)
    if growth > _LARGEST_GROWTH:
        raise UserError(f"its normalizers and pre-tokenizers could make a text {growth:,.0f} times longer")
    _check_added(library.get("added_tokens"))
    _check_model(library["model"])


def section_parts(library: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    """All parts of a section, also those inside sequences, checked."""
    found = library.get(section)
    parts = [] if found is None else list(_inside(section, found, 1))
    if len(parts) > _MOST_PARTS:
        raise UserError(f"{section}: more than {_MOST_PARTS} parts")
    return parts


def _inside(section: str, part: Any, depth: int) -> Iterator[dict[str, Any]]:
    allowed = SECTIONS[section]
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(part, dict) or not isinstance(kind, str) or kind not in allowed:
        raise UserError(f"{section}: expected one of {', '.join(sorted(allowed))}, found {shown(kind)}")
    for name, value in part.items():
        if name != "type" and name not in allowed[kind]:
            raise UserError(f"{section}: {kind} has no field {shown(name)}")
        if name == "pattern" and isinstance(value, dict) and value.get("Regex", _HARMLESS) != _HARMLESS:
            raise UserError(
                f"{section}: it has the pattern {shown(value['Regex'])}, and none is run from a file"
            )
        if name != "type" and not allowed[kind][name](value):
            raise UserError(f"{section}: {kind}: {name}: found {shown(value)}, which is not allowed there")
    yield part
    if kind == "Sequence":
        (name,) = allowed[kind]
        inner = part.get(name)
        if not isinstance(inner, list) or len(inner) > _MOST_PARTS or depth > _DEEPEST:
            raise UserError(f"{section}: Sequence: expected a list of at most {_MOST_PARTS} parts")
        for each in inner:
            yield from _inside(section, each, depth + 1)


def _growth(section: str, part: Mapping[str, Any]) -> float:
    if section == "decoder":
        return 1.0  # they are not run
    if part["type"] == "Precompiled":
        return max(1.0, check_charsmap(part.get("precompiled_charsmap", "")))
    if part["type"] == "Replace":
        pattern = part.get("pattern", {}).get("String", "  ")
        return max(1.0, len(_utf8(part.get("content", ""))) / len(_utf8(pattern)))
    return _GROWTH.get(part["type"], 1.0)


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("a text holds half of a pair of surrogates") from None


def _check_added(tokens: Any) -> None:
    if tokens is None:
        return
    if not isinstance(tokens, list) or len(tokens) > _MOST_ADDED:
        raise UserError(f"added_tokens: expected a list of at most {_MOST_ADDED:,} tokens")
    for place, token in enumerate(tokens):
        if not isinstance(token, dict) or set(token) != set(_ADDED):
            raise UserError(f"added_tokens[{place}]: expected the fields {', '.join(_ADDED)}")
        for name, check in _ADDED.items():
            if not check(token[name]):
                raise UserError(f"added_tokens[{place}]: {name}: found {shown(token[name])}")
    _check_names([token["content"] for token in tokens])
    if len({token["id"] for token in tokens}) < len(tokens):
        raise UserError("added_tokens: two of them have one id")


def _check_model(model: Mapping[str, Any]) -> None:
    vocab = model.get("vocab")
    names = _unigram_names(model) if model["type"] == "Unigram" else _numbered_names(vocab)
    if len(names) > LARGEST_VOCABULARY:
        raise UserError(f"model: more than {LARGEST_VOCABULARY:,} pieces")
    _check_names(names)
    unknown = model.get("unk_token")
    if model["type"] == "WordPiece" and unknown is None:
        raise UserError("model: WordPiece has no unk_token")
    if isinstance(vocab, dict) and unknown is not None and unknown not in vocab:
        raise UserError(f"model: its unk_token {shown(unknown)} is not in its vocabulary")
    if model["type"] == "BPE":
        _check_merges(model.get("merges"))


def _unigram_names(model: Mapping[str, Any]) -> list[Any]:
    vocab, unknown = model.get("vocab"), model.get("unk_id")
    if not isinstance(vocab, list) or not all(isinstance(e, list) and len(e) == 2 for e in vocab):
        raise UserError("model: expected a vocab of pairs of piece and score")
    if not all(type(score) in (int, float) and abs(score) < 1e6 for _, score in vocab):
        raise UserError("model: a score of its vocab is no number, or beyond a million")
    if type(unknown) is not int or not 0 <= unknown < len(vocab):
        raise UserError(f"model: unk_id: expected the number of a piece, found {shown(unknown)}")
    return [piece for piece, _ in vocab]


def _numbered_names(vocab: Any) -> list[Any]:
    if not isinstance(vocab, dict):
        raise UserError("model: expected a vocab of pieces and their numbers")
    numbers = set(vocab.values()) if all(type(n) is int for n in vocab.values()) else set()
    if len(numbers) < len(vocab) or not all(0 <= n <= LARGEST_VOCABULARY for n in numbers):
        raise UserError("model: its vocab has numbers that are none, twice there, or too large")
    return list(vocab)


def _check_names(names: list[Any]) -> None:
    if not all(isinstance(name, str) and 0 < len(name) <= LONGEST_NAME for name in names):
        raise UserError(f"a piece is not a text of 1 to {LONGEST_NAME} characters")
    if len(_utf8("".join(names))) > _LARGEST_NAMES:
        raise UserError(f"its pieces take more than {_LARGEST_NAMES:,} bytes")


def _check_merges(merges: Any) -> None:
    if not isinstance(merges, list) or len(merges) > LARGEST_VOCABULARY:
        raise UserError(f"model: expected a list of at most {LARGEST_VOCABULARY:,} merges")
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            raise UserError(f"model: {shown(merge)} is not a merge of two pieces")
