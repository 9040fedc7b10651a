"""The tokenizers of a Hugging Face directory, with our numbers."""

import re
from pathlib import Path
from typing import Any

from dragoman.checkpoint.huggingface.archive import is_archive, read_vocabulary
from dragoman.checkpoint.huggingface.control_ids import ControlIds
from dragoman.checkpoint.huggingface.family import Side
from dragoman.checkpoint.huggingface.files import (
    LIBRARY,
    OWN,
    is_there,
    no_tokenizer,
    read_json_fields,
    read_library,
)
from dragoman.checkpoint.model import load_tokenizers
from dragoman.errors import UserError, shown
from dragoman.text.published_tokenizer import Published, PublishedTokenizer
from dragoman.text.sentencepiece import m2m_library, marian_library, sentencepiece_json
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_json import renumbered
from dragoman.text.tokenizer_json_checks import check_library

_T5 = "spiece.model"
_M2M = ("sentencepiece.bpe.model", "vocab.json", "special_tokens_map.json")
_LANGUAGE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}|__[a-z]{2,3}__")
"""How NLLB and M2M-100 write a language."""
_MARIAN = ("source.spm", "target.spm", "vocab.json")


def read_tokenizers(
    directory: Path, numbers: ControlIds, shared: bool, prefix: str
) -> tuple[Tokenizer, Tokenizer]:
    if is_there(directory / OWN):
        if prefix:
            raise UserError("--prefix: this is an export of dragoman, which has its own tokenizer")
        return load_tokenizers(directory / OWN)
    src, tgt = _libraries(directory)
    made = []
    sides: tuple[tuple[Side, dict[str, Any], str], ...] = (("src", src, prefix), ("tgt", tgt, ""))
    forced = numbers.languages is not None
    for side, library, text in sides:
        order = numbers.order(side)
        before = tuple(order.index(number) for number in numbers.before(side))
        try:
            own = renumbered(library, order, before)
            made.append(PublishedTokenizer(Published(own, len(order), shared, before, text, forced)))
        except UserError as error:
            raise UserError(f"{directory}: its tokenizer cannot be used: {error}") from None
    return made[0], made[1]


def read_languages(directory: Path, codes: tuple[str, str]) -> tuple[int, int]:
    """The published ids of two languages, by the names that the tokenizer has for them."""
    library, _ = _libraries(directory)
    check_library(library)
    numbers = {token["content"]: token["id"] for token in library.get("added_tokens") or []}
    known = [name for name in numbers if _LANGUAGE.fullmatch(name)]
    found: list[int] = []
    for code, option in zip(codes, ("--src-lang", "--tgt-lang"), strict=True):
        name = next((name for name in (code, f"__{code}__") if name in known), None)
        if name is None:
            some = ", ".join(known[:8])
            raise UserError(
                f"{option}: expected one of the {len(known)} languages of this model ({some} …), found "
                f"{shown(code)}"
            )
        found.append(numbers[name])
    return found[0], found[1]


def _libraries(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tokenizers of source and target, from tokenizer.json."""
    if is_archive(directory):
        vocabulary = read_vocabulary(directory)
        src, tgt = (marian_library(directory / name, vocabulary) for name in _MARIAN[:2])
        return src, tgt
    if is_there(directory / LIBRARY):
        both = read_library(directory)
        return both, both
    if all(is_there(directory / name) for name in _MARIAN):
        vocabulary = read_json_fields(directory, _MARIAN[2])
        src, tgt = (marian_library(directory / name, vocabulary) for name in _MARIAN[:2])
        return src, tgt
    if all(is_there(directory / name) for name in _M2M):
        vocabulary, about = (read_json_fields(directory, name) for name in _M2M[1:])
        both = m2m_library(directory / _M2M[0], vocabulary, about.get("additional_special_tokens"))
        return both, both
    if is_there(directory / _T5):
        both = sentencepiece_json(directory / _T5)
        return both, both
    raise no_tokenizer(directory, f"{LIBRARY}, {_T5}, or {', '.join(_MARIAN)}")
