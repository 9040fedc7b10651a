"""Data of the *Read* view: attention and predictions of encoders, fillings of gaps, and probabilities of
language models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from dragoman.errors import UserError
from dragoman.probe.fill import GAP, Filler
from dragoman.probe.heads import head_counts
from dragoman.probe.inside import LikelyPieces
from dragoman.probe.reader import RunReader
from dragoman.probe.reading import Read
from dragoman.probe.words import sides_of
from dragoman.runs.directory import Run
from dragoman.studio.limits import check_text
from dragoman.studio.packing import attentions_of, number
from dragoman.studio.sentence import pieces_of
from dragoman.studio.subject import Subject
from dragoman.text.tokenizer import Tokenizer

_FILLINGS = 8


@dataclass(frozen=True)
class Reading:
    """An encoder at one checkpoint of its run."""

    run: Run
    reader: RunReader
    checkpoint: str

    @property
    def model(self) -> nn.Module:
        return self.reader.network


def read(of: Subject | Reading, text: str) -> dict[str, Any]:
    """Every piece with its probability, or the prediction of a fine-tuned network with attributions."""
    if isinstance(of, Subject):
        return _read_on(of, text)
    check_text(text, of.reader.tokenizer)
    found, task = of.reader.read(text), of.reader.task
    told: dict[str, Any] = {"mode": "guess" if task is None else "label", "pieces": _pieces(of.reader, found)}
    if found.said is None or task is None:
        return told
    return told | {
        "task": task.kind,
        "value": list(found.said.value) if isinstance(found.said.value, tuple) else found.said.value,
        "confidence": None if found.said.confidence is None else number(found.said.confidence),
        "labels": {name: number(share) for name, share in found.said.probabilities.items()},
        "units": [
            {"text": unit, "share": number(share)}
            for unit, share in zip(found.units, found.shares, strict=True)
        ],
        "words": [
            {"text": word, "label": label, "labels": {name: number(share) for name, share in labels.items()}}
            for word, label, labels in zip(
                found.text.split(), found.said.value, found.word_labels, strict=False
            )
        ]
        if isinstance(found.said.value, tuple)
        else [],
        "span": None if found.said.start is None else [found.said.start, found.said.end],
    }


def _read_on(of: Subject, text: str) -> dict[str, Any]:
    """A language model: the probability of every piece given those before it."""
    if of.generator is None:
        return {"mode": "fill", "pieces": []}
    target = of.tokenizers[1].encode(GAP.sub("", text))
    return {"mode": "left", "pieces": pieces_of(of, of.look(text, target))[:-1]}


def fill(of: Subject | Reading, text: str) -> dict[str, Any]:
    """Fillings for the gaps of a text, most probable first."""
    filler = _filler(of)
    check_text(text, filler.tokenizer)
    return {
        "fillings": [
            {"probability": each.probability, "gaps": list(each.gaps), "text": each.text}
            for each in filler.fill(text, _FILLINGS)
        ]
    }


def _filler(of: Subject | Reading) -> Filler:
    found = of.filler if isinstance(of, Subject) else of.reader.filler
    if found is None:
        raise UserError("fill: this run does not fill gaps")
    return found


def layers(of: Reading, text: str, place: int) -> dict[str, Any]:
    """Predictions at a position after each layer."""
    check_text(text, of.reader.tokenizer)
    tokenizer = of.reader.tokenizer
    return {"layers": [_options(tokenizer, best) for best in of.reader.layers(text, place)]}


def attention(
    of: Reading, text: str, masked: Mapping[str, Sequence[int]], kind: str | None
) -> dict[str, Any]:
    """Like `sentence.attention`: the weights, and what changes if heads are switched off."""
    reader = of.reader
    check_text(text, reader.tokenizer)
    found, effect = reader.read(text, steps=0), None
    if any(masked.values()):
        without = reader.without(text, masked, found)
        effect = {
            "before": number(reader.score(found)),
            "after": number(reader.score(without)),
            "scores": [number(score) for score in without.seen.token_scores],
            "anew": None if without.said is None else {"text": _said(without)},
            "changed": _said(without) != _said(found),
        }
        scores, seen = [number(score) for score in found.seen.token_scores], without.seen
    else:
        scores, seen = [number(score) for score in found.seen.token_scores], found.seen
    last = seen.attentions[-1] if seen.attentions else None
    return {
        "ids": [],
        "text": _said(found),
        "sides": sides_of(seen, (reader.tokenizer, reader.tokenizer)),
        "scores": scores,
        "attentions": attentions_of(seen, kind, head_counts(reader.network)),
        "start": None if last is None else {"module": last.module, "head": None, "when_read": False},
        "effect": effect,
    }


def weigh_heads(of: Reading, text: str) -> dict[str, Any]:
    check_text(text, of.reader.tokenizer)
    found = of.reader.importance(text)
    return {"falls": {name: [number(fall) for fall in falls] for name, falls in found.items()}}


def _said(read: Read) -> str:
    if read.said is None:
        return ""
    value = read.said.value
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _pieces(reader: RunReader, found: Read) -> list[dict[str, Any]]:
    blank = None if reader.filler is None else reader.guesser.blank
    seen = found.seen
    return [
        {
            "id": token,
            "piece": piece,
            "gap": token == blank,
            "score": None if token == blank else number(score),
            "others": _options(reader.tokenizer, best),
        }
        | ({"left": number(found.sides[at][0]), "right": number(found.sides[at][1])} if found.sides else {})
        for at, (token, piece, score, best) in enumerate(
            zip(seen.tgt_ids, seen.written, seen.token_scores, seen.alternatives, strict=True)
        )
    ]


def _options(tokenizer: Tokenizer, best: LikelyPieces) -> list[dict[str, Any]]:
    return [
        {"id": token, "piece": tokenizer.pieces([token])[0], "score": number(score)} for token, score in best
    ]
