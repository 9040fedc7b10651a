"""The content of tokenizer.json, the file format of Hugging Face's library `tokenizers`.

`renumbered` maps the ids of a published tokenizer to ours. `exported_json` turns one of our own tokenizers
into this format, for programs that use only that library.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from dragoman.errors import UserError, shown
from dragoman.text.published_tokenizer import UNUSED, PublishedTokenizer
from dragoman.text.segment import segment_pattern
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID
from dragoman.text.tokenizer_json_checks import SECTIONS, check_library

_NEW_NAMES = {
    PAD_ID: ("<pad>", "<padding>", "<dragoman-pad>"),
    BOS_ID: ("<s>", "<start>", "<dragoman-start>"),
    EOS_ID: ("</s>", "<end>", "<dragoman-end>"),
}


def renumbered(library: Any, order: Sequence[int], before: Sequence[int] = ()) -> dict[str, Any]:
    """tokenizer.json with our ids: id n is what was id `order[n]`.

    An old id may occur in `order` several times. The last of these places keeps the piece, the others become
    new pieces; `<s>` keeps it only if it is the only place. Every row of the model gets a name: a row
    without a piece gets one that no text can spell. `before` are our ids that go before every text.
    """
    check_library(library)
    model, added = library["model"], library.get("added_tokens") or []
    scores = dict(enumerate(model["vocab"])) if model["type"] == "Unigram" else {}
    names = {old: entry[0] for old, entry in scores.items()}
    if not scores:
        names = {old: piece for piece, old in model["vocab"].items()}
    names |= {token["id"]: token["content"] for token in added}
    rows = set(order)
    lost = [name for old, name in names.items() if old not in rows and old not in scores]
    if lost:
        raise UserError(f"for its piece {shown(lost[0])} the model has no row")
    ours = [names.get(old, f"{UNUSED}{new}>") for new, old in enumerate(order)]
    alone = order.count(order[BOS_ID]) == 1
    new_ids = {old: new for new, old in enumerate(order) if new != BOS_ID or alone}
    for number, candidates in _NEW_NAMES.items():
        if new_ids[order[number]] != number:
            free = [name for name in candidates if name not in names.values()]
            if not free:
                raise UserError(f"it has pieces of all the names {', '.join(candidates)}")
            ours[number] = free[0]
    if len(set(ours)) < len(ours):
        raise UserError("two of its pieces have one name")
    if scores:
        vocab: Any = [
            [name, scores[old][1] if old in scores else 0.0] for name, old in zip(ours, order, strict=True)
        ]
        rest = [entry for old, entry in scores.items() if old not in new_ids]
        if model["unk_id"] not in new_ids:
            raise UserError("for its unknown piece the model has no row")
        unknown = new_ids[model["unk_id"]]
        model = {**model, "vocab": vocab + rest, "unk_id": unknown}
    else:
        model = {**model, "vocab": {name: new for new, name in enumerate(ours)}}
    tokens = [{**token, "id": new_ids[token["id"]]} for token in added if token["id"] in new_ids]
    known = {token["id"] for token in tokens}
    tokens += [
        added_token(number, ours[number]) for number in (PAD_ID, BOS_ID, EOS_ID) if number not in known
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        **{name: library.get(name) for name in SECTIONS},
        "added_tokens": sorted(tokens, key=lambda token: token["id"]),
        "model": model,
        "post_processor": template([*(ours[n] for n in before), None, ours[EOS_ID]], ours),
    }


def added_token(number: int, name: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": name, **flags, "special": True}


def template(parts: Sequence[str | None], names: Sequence[str], one_row: bool = False) -> dict[str, Any]:
    """The library's way of saying: these pieces around the text, which stands for None. `one_row`: a second
    text has no beginning of its own and is segment 1, as with BERT."""

    def of(kind: str, parts: Sequence[str | None], segment: int = 0) -> list[dict[str, Any]]:
        text = {"Sequence": {"id": kind, "type_id": segment}}
        return [
            text if name is None else {"SpecialToken": {"id": name, "type_id": segment}} for name in parts
        ]

    special = {name: {"id": name, "ids": [names.index(name)], "tokens": [name]} for name in parts if name}
    return {
        "type": "TemplateProcessing",
        "single": of("A", parts),
        "pair": [*of("A", parts), *(of("B", parts[1:], 1) if one_row else of("B", parts))],
        "special_tokens": special,
    }


def exported_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """tokenizer.json: the same ids for every text, and `</s>` after them."""
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.exported()
    config = tokenizer.config
    if config.kind == "byte" or config.word_mark == "end":
        raise UserError(
            f"tokenizer: kind {config.kind} with word_mark {config.word_mark} has no counterpart in "
            "tokenizer.json; kinds bpe, word and char with word_mark start have"
        )
    marked = config.kind != "char"
    pipeline = tokenizers.Tokenizer(tokenizer.library_model())
    pipeline.normalizer = normalizers.Sequence(
        [normalizers.NFC(), *([normalizers.Prepend(" ")] if marked else [])]
    )
    pipeline.pre_tokenizer = pre_tokenizers.Split(Regex(segment_pattern(config)), "isolated")
    plain = [decoders.ByteFallback(), decoders.Fuse()]
    pipeline.decoder = decoders.Sequence([*plain, *([decoders.Strip(" ", 1, 0)] if marked else [])])
    library = json.loads(pipeline.to_str())
    names = tokenizer.pieces(range(tokenizer.size))
    controls = range(len(CONTROL_PIECES) + len(config.specials))
    library["model"]["vocab"] = {names[n]: n for n in controls} | library["model"]["vocab"]
    library["added_tokens"] = [added_token(n, names[n]) for n in controls]
    library["post_processor"] = template([None, names[EOS_ID]], names)
    return library


def reordered_json(
    library: dict[str, Any], order: Sequence[int], renamed: Mapping[int, str]
) -> dict[str, Any]:
    """tokenizer.json with other numbers: `order` has the old one of each. `renamed` has new names of pieces
    by their old numbers."""
    new = {old: number for number, old in enumerate(order)}
    model, names = library["model"], dict(renamed)
    if model["type"] == "Unigram":
        vocab: Any = [[names.get(old, model["vocab"][old][0]), model["vocab"][old][1]] for old in order]
        unknown = {"unk_id": new[model["unk_id"]]} if model.get("unk_id") is not None else {}
        model = {**model, "vocab": vocab, **unknown}
    else:
        pieces = {old: name for name, old in model["vocab"].items()}
        model = {**model, "vocab": {names.get(old, pieces[old]): new[old] for old in order if old in pieces}}
    tokens = [
        {**token, "id": new[token["id"]], "content": names.get(token["id"], token["content"])}
        for token in library["added_tokens"]
    ]
    processor = library["post_processor"]
    special = {
        name: {**one, "ids": [new[old] for old in one["ids"]]}
        for name, one in processor["special_tokens"].items()
    }
    return {
        **library,
        "added_tokens": sorted(tokens, key=lambda token: token["id"]),
        "model": model,
        "post_processor": {**processor, "special_tokens": special},
    }
