"""Fill the gaps of a text: by networks that predict single pieces (BERT, ELMo), or by models that write the
missing text (T5, BART).

    The <mask> sat on the mat.     one gap; <mask> or [MASK], any number of them
"""

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.checkpoint.model import load_network
from dragoman.data.noise import MASK
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Job
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.learning.text import special_id
from dragoman.models.base import EncoderDecoder
from dragoman.probe.guess import Guesser, guesser_of
from dragoman.runs.directory import Run
from dragoman.runs.opening import pick_device
from dragoman.text.tokenizer import EOS_ID, Tokenizer

GAP = re.compile(r"<mask>|\[MASK\]", re.IGNORECASE)
"""A gap in a text."""
_WORD = "a"
FILLS = ("masked", "bidirectional", "spans", "denoise")
"""Objectives whose models can fill gaps."""


@dataclass(frozen=True)
class Filling:
    probability: float
    """Joint probability of all gaps; for BART, of the whole text."""
    gaps: tuple[str, ...]
    """The text in each gap; empty if it cannot be determined (BART may also change the rest)."""
    text: str


class Filler:
    """The model of a run, ready to fill gaps."""

    def __init__(self, run: Run, which: str = "best", device: str = "auto") -> None:
        name = run.config.objective.name
        if run.config.purpose != "read" or name not in FILLS:
            raise UserError(
                f"{run.directory}: this run was trained with the objective «{name}» and does not fill gaps; "
                f"use a run that was pre-trained with {', '.join(FILLS[:-1])} or {FILLS[-1]}"
            )
        loaded = load_network(run.directory, chosen := pick_device(device), which)
        self.network = model = loaded.model.requires_grad_(False)
        self.name, self.run, self.tokenizer = name, run, loaded.tgt_tokenizer
        self.guesser: Guesser | None = None
        if isinstance(model, EncoderDecoder):
            self.translator = Translator(model, self.tokenizer, self.tokenizer, run.config.search, chosen)
        else:
            self.guesser = guesser_of(model, self.tokenizer)  # type: ignore[arg-type]

    def fill(self, text: str, count: int = 5) -> list[Filling]:
        """The most probable fillings, best first."""
        parts = GAP.split(text)
        if len(parts) == 1:
            raise UserError(f"{text!r:.60}: there is no gap; write <mask> where something is missing")
        if self.guesser is not None:
            return _guessed(self.guesser, parts, count)
        search = self.translator.search.converted(BeamSearch, beam=max(count, 2), n_best=count)
        found = self.translator.search_jobs([Job((*self.source(text), EOS_ID))], search)[0]
        read = _spans if self.name == "spans" else _whole
        return [Filling(math.exp(each.log_prob), *read(self.tokenizer, parts, each.tokens)) for each in found]

    def source(self, text: str) -> list[int]:
        """The ids of a text with gaps, in the form that the model was trained with: `<extra_id_0>`,
        `<extra_id_1>` … or `<mask>` in each gap."""
        between = _encoded(self.tokenizer, GAP.split(text))
        count = len(between) - 1
        if self.guesser is not None:
            return _joined(between, [[self.guesser.blank]] * count)
        if self.name != "spans":
            return _joined(between, [[special_id(self.tokenizer, MASK)]] * count)
        marks = _sentinels(self.tokenizer, count)
        if len(marks) < count:
            raise UserError(f"{text!r:.60}: this model has learnt with at most {len(marks)} gaps in a text")
        return _joined(between, [[mark] for mark in marks])


def _sentinels(tokenizer: Tokenizer, count: int) -> list[int]:
    """The ids of `<extra_id_0>`, `<extra_id_1>` …: as many as there are, and no more than `count`."""
    found: list[int] = []
    with contextlib.suppress(UserError, ValueError):  # there is no further one
        for number in range(count):
            found.append(special_id(tokenizer, f"<extra_id_{number}>"))
    return found


def _encoded(tokenizer: Tokenizer, parts: Sequence[str]) -> list[list[int]]:
    """The pieces between the gaps. The space before a word is part of the word, so the space before a gap is
    part of its filling. Text after a gap without a space, such as a full stop, continues the filling."""
    found = [tokenizer.encode(parts[0].rstrip())]
    for part in parts[1:]:
        text = part.rstrip() if part is not parts[-1] else part
        before = tokenizer.encode(_WORD)
        joined = tokenizer.encode(_WORD + text)
        goes_on = not text[:1].isspace() and joined[: len(before)] == before
        found.append(joined[len(before) :] if goes_on else tokenizer.encode(text.lstrip()))
    return found


def _joined(between: Sequence[Sequence[int]], gaps: Sequence[Sequence[int]]) -> list[int]:
    """The pieces of a text with its gaps filled."""
    ids = list(between[0])
    for gap, after in zip(gaps, between[1:], strict=True):
        ids += [*gap, *after]
    return ids


def _guessed(guesser: Guesser, parts: Sequence[str], count: int) -> list[Filling]:
    """Beam search over the gaps, from left to right."""
    tokenizer = guesser.tokenizer
    between = _encoded(tokenizer, parts)
    row = _joined(between, [[guesser.blank]] * (len(parts) - 1))
    places = [sum(map(len, between[: number + 1])) + number for number in range(len(parts) - 1)]
    best: list[tuple[float, list[int]]] = [(0.0, row)]
    for place in places:
        scores = guesser.guess([ids for _, ids in best], [place] * len(best))
        top = scores.topk(min(count, scores.size(1)), dim=1)
        grown = [
            (before + score, [*ids[:place], piece, *ids[place + 1 :]])
            for (before, ids), pieces, values in zip(
                best, top.indices.tolist(), top.values.tolist(), strict=True
            )
            for piece, score in zip(pieces, values, strict=True)
            if score > -math.inf
        ]
        best = sorted(grown, key=lambda each: -each[0])[:count]
    return [
        Filling(
            math.exp(score),
            tuple(tokenizer.decode([ids[at]]).strip() for at in places),
            tokenizer.decode(ids),
        )
        for score, ids in best
    ]


def _spans(tokenizer: Tokenizer, parts: Sequence[str], tokens: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """The text after each sentinel."""
    sentinels = {mark: number for number, mark in enumerate(_sentinels(tokenizer, len(parts)))}
    written: list[list[int]] = [[] for _ in parts]  # the last sentinel ends them
    now = len(parts) - 1
    for token in tokens:
        if token in sentinels:
            now = sentinels[token]
        else:
            written[now].append(token)
    written.pop()
    filled = _joined(_encoded(tokenizer, parts), written)
    return tuple(tokenizer.decode(ids).strip() for ids in written), tokenizer.decode(filled)


def _whole(tokenizer: Tokenizer, parts: Sequence[str], tokens: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """The whole text, and the text in its gaps if the rest is unchanged."""
    text = tokenizer.decode(tokens)
    kept = [re.escape(tokenizer.decode(tokenizer.encode(part)).strip()) for part in parts]
    found = re.fullmatch(r"\s*(.*?)\s*".join(kept), text.strip())
    return (tuple(found.groups()) if found else ()), text
