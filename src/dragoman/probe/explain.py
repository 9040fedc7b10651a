"""A sentence explained: translated or given, looked into, and drawn in every way there is a figure for."""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from dragoman.decode.alignment.attention import Look
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.probe.attribution import AttributionMethod, attribute, mean_by_place
from dragoman.probe.figures.beam import draw_beam
from dragoman.probe.figures.curves import draw_curves
from dragoman.probe.figures.positions import draw_positions
from dragoman.probe.figures.weights import UNITS, WEIGHT, draw_heads, draw_heatmap
from dragoman.probe.fill import Filler
from dragoman.probe.heads import importance, weighted_norms
from dragoman.probe.inside import Inside, Seen, inside_hypothesis, inside_texts, look_inside
from dragoman.probe.page import make_page
from dragoman.probe.positions import positions_of
from dragoman.probe.rollout import rollout
from dragoman.probe.vectors import vectors_of
from dragoman.probe.words import View, view
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import EOS_ID, Tokenizer

_SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
    "joint": ("target", "source, then target"),
    "copy": ("target", "source"),
}
"""Sides of the rows and columns of each kind of attention."""
_HARDLY = math.log(0.0005)
"""Less is printed as 0.0%, and is no alternative."""


@dataclass(frozen=True)
class Explained:
    translator: Translator
    source: str
    found: tuple[Hypothesis, ...]
    """Hypotheses of the search, best first; empty for a given translation."""
    seen: Inside
    chosen: Seen | None
    """The attention that is shown; None where the model has none."""
    head: int | None
    look: Look | None
    """The cross-attention that aligns best, if the model has any."""
    search: SearchConfig

    @property
    def translation(self) -> str:
        return self.translator.tgt_tokenizer.decode(self.seen.tgt_ids[:-1])

    @property
    def pair(self) -> tuple[list[int], list[int]]:
        return list(self.seen.src_ids[:-1]), list(self.seen.tgt_ids[:-1])

    def looking_at(self, kind: str | None, layer: int | None, head: int | None) -> "Explained":
        """Another attention; None leaves what aligns best. Layers and heads are counted from 1."""
        chosen = self.chosen
        if kind is not None or layer is not None:
            usual = "cross" if chosen is None or self.seen.of("cross") else chosen.kind
            own = [each for each in self.seen.attentions if each.kind == (kind or usual)]
            if not own:
                raise UserError(f"--attention {kind or usual}: this model has none of this kind")
            if layer is not None and layer > len(own):
                raise UserError(f"--layer {layer}: there are {len(own)}, numbered from 1")
            chosen = own[(layer or len(own)) - 1]
        there = 0 if chosen is None else len(chosen.weights)
        if head is not None and not 1 <= head <= there:
            raise UserError(f"--head {head}: this attention has {there}, numbered from 1")
        if head is None and chosen is self.chosen:
            return self
        return replace(self, chosen=chosen, head=None if head is None else head - 1)

    @property
    def when_read(self) -> bool | None:
        """Whether the chosen attention aligns the piece that is read or, if False, the one that is written;
        None where it was not chosen for aligning."""
        if self.look is None or self.chosen is None or self.chosen.module != self.look.module:
            return None
        return self.look.when_read

    def shown(self, words: bool = False) -> View:
        """The chosen weights."""
        return view(self.seen, self.attention(), self.head, self.when_read, self.tokenizers(words))

    def attention(self) -> Seen:
        if self.chosen is None:
            raise UserError("explain: this model has no attention; choose --figure integrated or beam")
        return self.chosen

    def tokenizers(self, words: bool) -> tuple[Tokenizer, Tokenizer] | None:
        return (self.translator.src_tokenizer, self.translator.tgt_tokenizer) if words else None

    def table(self, alternatives: int = 0) -> list[str]:
        """One line per target piece: its probability, and the source piece with the most attention, or the
        most probable alternatives."""
        names = [f"{piece}" for piece in self.seen.written]
        width = max(map(len, names))
        lines = [
            f"{name.ljust(width)}  {100 * math.exp(score):6.2f}%"
            for name, score in zip(names, self.seen.token_scores, strict=True)
        ]
        if alternatives:
            pieces = self.translator.tgt_tokenizer.pieces
            for number, options in enumerate(self.seen.alternatives):
                best = (
                    f"{pieces([token])[0]} {100 * math.exp(own):.1f}%"
                    for place, (token, own) in enumerate(options[:alternatives])
                    if not place or own > _HARDLY
                )
                lines[number] += f"  best: {', '.join(best)}"
            return lines
        if self.chosen is None or self.chosen.kind == "encoder":
            return lines
        shown = self.shown()
        first = len(lines) - len(shown.rows) if not self.when_read else 0
        for number, row in enumerate(shown.weights):
            best = int(row.argmax())
            lines[first + number] += f"  ← {shown.columns[best]} {row[best]:.2f}"
        return lines

    def page(self, name: str) -> str:
        """A self-contained HTML page."""
        given = "given translation" if self.source else "given text"
        kind = self.search.summary if self.found else given
        log_prob = f"{self.seen.log_prob:.3f}".replace("-", "−")
        about = f"{name}: {kind}, log p {log_prob}, {len(self.seen.tgt_ids)} pieces with </s>"
        vectors = vectors_of(self.translator.model, *self.pair, self.translator.device)
        return make_page(
            self.source,
            self.seen,
            vectors,
            (self.translator.src_tokenizer, self.translator.tgt_tokenizer),
            self.found,
            self.chosen,
            self.head,
            about,
            bool(self.when_read),
        )


def explain_sentence(
    translator: Translator, source: str, target: str | None = None, search: SearchConfig | None = None
) -> Explained:
    """Translate a text, or take the translation that is given, and look inside."""
    found: tuple[Hypothesis, ...] = ()
    settings = search or translator.search
    if target is None:
        found = tuple(translator.hypotheses([source], search=settings)[0])
        seen = inside_hypothesis(translator, source, found[0])
    else:
        seen = inside_texts(translator, source, target)
    look = translator.aligner.look if seen.of("cross") else None
    if look is not None:
        chosen = seen.named(look.module)
        return Explained(translator, source, found, seen, chosen, look.guided_head, look, settings)
    first = next(iter(seen.attentions), None)
    return Explained(translator, source, found, seen, first, None, None, settings)


def explain_gaps(filler: Filler, text: str) -> Explained:
    """Explain a model that fills gaps (T5), or rewrites a damaged text (BART)."""
    translator, source = filler.translator, filler.source(text)
    if filler.name == "spans" and source == translator.src_tokenizer.encode(text):
        raise UserError("explain: this model fills gaps; write <mask> where something is missing")
    settings = translator.search.converted(BeamSearch, shortlist=False)
    settings = replace(settings, record=settings.groups == 1)
    found = tuple(translator.search_jobs([Job((*source, EOS_ID))], settings)[0])
    tokenizers = (translator.src_tokenizer, translator.tgt_tokenizer)
    seen = look_inside(translator.model, source, found[0].tokens, tokenizers, translator.device)
    chosen = next(iter(reversed(seen.of("cross"))), next(iter(seen.attentions), None))
    return Explained(translator, text, found, seen, chosen, None, None, settings)


def draw_figure(
    figure: str,
    ending: str,
    explained: Explained | None,
    model: EncoderDecoder | None,
    metrics: Sequence[Mapping[str, Any]],
    words: bool = False,
) -> bytes:
    """One figure, as the bytes of a file with this suffix."""
    endings = (ending,)
    if figure == "curves":
        return draw_curves(metrics, endings)[ending]
    if figure == "positions":
        assert model is not None
        return draw_positions(positions_of(model), endings)[ending]
    assert explained is not None
    if figure == "beam":
        return _beam(explained, endings)[ending]
    if figure == "heads":
        return _heads(explained, endings, words)[ending]
    if figure == "importance":
        return _importance(explained, endings)[ending]
    signed = figure == "integrated"
    shown, note = _map(figure, explained, words)
    kind = explained.attention().kind if figure in ("alignment", "norms") else "cross"
    return draw_heatmap(shown, endings, *_SIDES[kind], signed, note, UNITS.get(figure, WEIGHT))[ending]


def draw_mean_gradient(
    model: EncoderDecoder, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], ending: str, device: Any
) -> bytes:
    """Figure of the gradient of a target piece over the source, averaged over pairs of ids."""
    found = mean_by_place(model, pairs, device=device)
    names = tuple(f"{10 * part}–{10 * part + 10}%" for part in range(len(found)))
    hidden = np.zeros(found.shape, dtype=bool)
    shown = View(found, names, names, hidden, f"gradient over {len(pairs)} pairs")
    note = "share of the gradient norm of log p, mean over target pieces"
    return draw_heatmap(
        shown, (ending,), "part of the target", "part of the source", note=note, unit="share"
    )[ending]


def _map(figure: str, explained: Explained, words: bool) -> tuple[View, str]:
    seen = explained.seen
    if figure == "alignment":
        return explained.shown(words), _note(explained)
    if figure == "norms":
        chosen = explained.attention()
        model, device = explained.translator.model, explained.translator.device
        norms = weighted_norms(model, *explained.pair, device)
        own = next((each for each in norms.attentions if each.module == chosen.module), None)
        if own is None:
            raise UserError("--figure norms: this attention has no values whose size could be taken")
        tokenizers = explained.tokenizers(words)
        shown = view(seen, own, explained.head, explained.when_read, tokenizers)
        return replace(shown, title=f"{shown.title}: norm of the weighted values"), ""
    if figure == "rollout":
        through = rollout(seen).source
        cross = replace(seen.of("cross")[-1], weights=_one_head(through))
        shown = view(seen, cross, 0, False, explained.tokenizers(words))
        return replace(
            shown, title="attention rollout to the source"
        ), "the rest of each row stays in the target"
    method: AttributionMethod = "gradient" if figure == "gradient" else "integrated_gradients"
    model, device = explained.translator.model, explained.translator.device
    found = attribute(model, *explained.pair, method, device=device)
    own = Seen("", "cross", 1, _one_head(found.source))
    shown = view(seen, own, 0, False, explained.tokenizers(words))
    title = {"gradient": "gradient norm", "integrated_gradients": "integrated gradients"}[method]
    return replace(
        shown, title=title
    ), "of log p of each target piece, with respect to the embeddings of the source"


def _one_head(matrix: np.ndarray) -> Float[Tensor, "1 Q M"]:
    return torch.from_numpy(matrix)[None]


def _heads(explained: Explained, endings: Sequence[str], words: bool) -> dict[str, bytes]:
    kind = explained.attention().kind
    seen, tokenizers = explained.seen, explained.tokenizers(words)
    views = [
        [view(seen, each, head, explained.when_read, tokenizers) for head in range(len(each.weights))]
        for each in seen.of(kind)
    ]
    return draw_heads(views, endings, "" if kind == "encoder" else _ROWS)


_ROWS = "rows: piece read › piece written"


def _note(explained: Explained) -> str:
    """Caption: what the row labels mean, and which of the two pieces this attention aligns."""
    if explained.attention().kind == "encoder":
        return ""
    best = {None: "", True: "; it aligns the piece read", False: "; it aligns the piece written"}
    return f"{_ROWS}{best[explained.when_read]}"


def _importance(explained: Explained, endings: Sequence[str]) -> dict[str, bytes]:
    found = importance(explained.translator.model, *explained.pair, explained.translator.device)
    if not found:
        raise UserError("--figure importance: this model has no attention whose heads could be switched off")
    most = max(map(len, found.values()))
    falls = np.array([falls + [0.0] * (most - len(falls)) for falls in found.values()])
    there = np.array([[head < len(falls) for head in range(most)] for falls in found.values()])
    names = tuple(f"{each.kind} {each.layer}" for name in found for each in [explained.seen.named(name)])
    shown = View(falls, names, tuple(map(str, range(1, most + 1))), ~there, "importance of heads")
    unit = "drop of log p without the head"
    return draw_heatmap(shown, endings, "attention and layer", "head", signed=True, unit=unit)


def _beam(explained: Explained, endings: Sequence[str]) -> dict[str, bytes]:
    trace = explained.found[0].trace if explained.found else None
    if trace is None:
        raise UserError("--figure beam: this search was not recorded; only a beam search in one group is")
    title = f"{explained.source} → {explained.translation}"
    return draw_beam(trace, explained.seen.tgt_ids, endings, title)


@contextmanager
def with_readable_fonts() -> Iterator[set[str]]:
    """Collects the characters that no font on this machine has, in the place of a warning for each."""
    missing: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield missing
    for each in caught:
        found = re.match(r"Glyph (\d+) ", str(each.message))
        if found:
            missing.add(chr(int(found[1])))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
