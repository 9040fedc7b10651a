"""The tokenizers of a Hugging Face directory, with our numbers."""

from pathlib import Path
from typing import Any

from dragoman.checkpoint.huggingface.control_ids import ControlIds
from dragoman.checkpoint.huggingface.files import (
    LIBRARY,
    OWN,
    is_there,
    no_tokenizer,
    read_fields,
    read_library,
)
from dragoman.checkpoint.model import load_tokenizers
from dragoman.errors import UserError
from dragoman.text.published_tokenizer import Published, PublishedTokenizer
from dragoman.text.sentencepiece import marian_library, sentencepiece_json
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_json import renumbered

_T5 = "spiece.model"
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
    for library, order, text in ((src, numbers.order("src"), prefix), (tgt, numbers.order("tgt"), "")):
        before = tuple(order.index(number) for number in numbers.opening)
        try:
            own = renumbered(library, order, before)
            made.append(PublishedTokenizer(Published(own, len(order), shared, before, text)))
        except UserError as error:
            raise UserError(f"{directory}: its tokenizer cannot be used: {error}") from None
    return made[0], made[1]


def _libraries(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """As tokenizer.json has them: of the source and of the target."""
    if is_there(directory / LIBRARY):
        both = read_library(directory)
        return both, both
    if all(is_there(directory / name) for name in _MARIAN):
        vocabulary = read_fields(directory, _MARIAN[2])
        src, tgt = (marian_library(directory / name, vocabulary) for name in _MARIAN[:2])
        return src, tgt
    if is_there(directory / _T5):
        both = sentencepiece_json(directory / _T5)
        return both, both
    raise no_tokenizer(directory, f"{LIBRARY}, {_T5}, or {', '.join(_MARIAN)}")
