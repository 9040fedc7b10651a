"""The token ids of a published model that become our `<pad>`, `<s>` and `</s>`, and the sizes of its
vocabularies. Where they are read depends on the family's `controls`:

    decoder   Marian, T5, BART   from config.json; the decoder may start with its `<pad>` or its `</s>`
    text      GPT-2              one token ends a text, begins it and pads
    pair      BERT               [PAD], [CLS] and [SEP], by their ids in tokenizer.json
    none      GPT                it has none: three rows are added, copies of its unknown token
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.checkpoint.huggingface.family import Family, Side
from dragoman.checkpoint.huggingface.files import (
    CONFIG,
    LIBRARY,
    OWN,
    TOKENIZER_CONFIG,
    is_there,
    no_tokenizer,
    one_of,
    read_json_fields,
    read_library,
)
from dragoman.checkpoint.huggingface.start import START
from dragoman.errors import UserError, shown
from dragoman.text.tokenizer_file import LARGEST_VOCABULARY
from dragoman.text.tokenizer_json_checks import check_library


@dataclass(frozen=True)
class ControlIds:
    """The published model's ids of `<pad>`, `<s>` and `</s>`, and the sizes of its vocabularies."""

    pad: int
    start: int
    eos: int
    src_size: int
    tgt_size: int
    silent_bos: bool
    """The logit of `<s>` is left out of the softmax."""
    silent_pad: bool = False
    """Whether the logit of `<pad>` is left out of the softmax."""
    opening: tuple[int, ...] = ()
    """The published ids that every text begins with."""
    languages: tuple[int, int] | None = None
    """The published ids of the languages, which the texts of each side begin with instead."""
    apart: bool = False
    """The three ids are copies of another piece, which keeps its own row too."""

    def before(self, side: Side) -> tuple[int, ...]:
        """The published ids that texts of a side begin with."""
        return self.opening if self.languages is None else (self.languages[side == "tgt"],)

    def order(self, side: Side) -> list[int]:
        """The published id for each of our ids, the three control pieces first. An id occurs twice if the
        decoder starts with `<pad>` or `</s>`."""
        first = [self.pad, self.start, self.eos]
        size = self.src_size if side == "src" else self.tgt_size
        return first + [number for number in range(size) if self.apart or number not in first]


def read_control_ids(family: Family, directory: Path, files: Sequence[dict[str, Any]]) -> ControlIds:
    """Read the control ids from config.json and generation_config.json, or else from the tokenizer."""
    if family.controls in ("pair", "none") and not is_there(directory / LIBRARY):
        raise no_tokenizer(directory, LIBRARY)
    told = CONFIG if OWN in files[0] or family.controls in ("decoder", "text") else LIBRARY
    try:
        return _read(family, directory, files)
    except KeyError as error:
        raise UserError(f"{directory / told}: the field {error} is missing") from None
    except (TypeError, AttributeError) as error:
        raise UserError(f"{directory / told}: it contradicts itself ({shown(str(error))})") from None
    except UserError as error:
        raise UserError(f"{directory / told}: {error}") from None


def _read(family: Family, directory: Path, files: Sequence[dict[str, Any]]) -> ControlIds:
    config = files[0]
    own = config.get(OWN)
    size, told = config["vocab_size"], one_of(files, "decoder_vocab_size")
    tgt_size = size if told is None else told
    for name, value in (("vocab_size", size), ("decoder_vocab_size", tgt_size)):
        if type(value) is not int or not 0 < value <= LARGEST_VOCABULARY:
            raise UserError(f"{name}: expected from 1 to {LARGEST_VOCABULARY:,} pieces, found {shown(value)}")
    controls = "decoder" if own is not None else family.controls  # our exports say everything
    if controls in ("pair", "none"):
        found = _from_tokenizer(directory, controls == "pair")
    else:
        found = _from_config(files, ends=controls == "text")
    opening = {"bos_token_id": config["bos_token_id"]} if family.opening and own is None else {}
    for name, value in (found | opening).items():
        if type(value) is not int or not 0 <= value < min(size, tgt_size):
            raise UserError(f"{name}: expected the id of a piece, found {shown(value)}")
    pad, start, eos = found.values()
    if pad == eos and controls in ("decoder", "pair"):
        raise UserError(f"pad_token_id: it is {pad}, as eos_token_id is; they have to be two pieces")
    said = own if isinstance(own, Mapping) else {}
    return ControlIds(
        pad,
        start,
        eos,
        size,
        tgt_size,
        silent_bos=start in (pad, eos) or bool(said.get("silent_bos")),
        silent_pad=pad == eos or bool(said.get("silent_pad")),
        opening=tuple(opening.values()),
        apart=controls == "none",
    )


def _from_config(files: Sequence[dict[str, Any]], ends: bool) -> dict[str, Any]:
    eos: Any
    pad, eos = one_of(files, "pad_token_id"), one_of(files, "eos_token_id")
    eos = eos[0] if isinstance(eos, list) and len(eos) == 1 else eos
    own = files[0].get(OWN)
    start = own.get(START) if isinstance(own, Mapping) else None
    start = one_of(files, "decoder_start_token_id") if start is None else start
    if start is None and not files[0].get("is_encoder_decoder", True):
        start = one_of(files, "bos_token_id")
    if ends:
        bos = one_of(files, "bos_token_id")
        pad, start = (eos if pad is None else pad), (eos if bos is None else bos)
    return {"pad_token_id": pad, "decoder_start_token_id": start, "eos_token_id": eos}


def _from_tokenizer(directory: Path, pair: bool) -> dict[str, Any]:
    library, about = read_library(directory), read_json_fields(directory, TOKENIZER_CONFIG, optional=True)
    check_library(library)
    vocab = library["model"].get("vocab")
    numbers = dict(vocab) if isinstance(vocab, Mapping) else {}
    numbers |= {token["content"]: token["id"] for token in library.get("added_tokens") or []}
    if pair:
        names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        return {field: numbers.get(_said(about, field) or usual) for field, usual in names.items()}
    unknown = numbers.get(library["model"].get("unk_token"))
    return dict.fromkeys(("pad_token", "bos_token", "eos_token"), unknown)


def _said(about: Mapping[str, Any], name: str) -> str | None:
    value = about.get(name)
    value = value.get("content") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else None
