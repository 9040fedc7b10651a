"""A translator that runs an exported model with CTranslate2, on a CPU and without torch.

It has the surface of `decode/translate.Translator`, our tokenization, our length limits and our scores:

    text ─ ids ─▶ beam search by CTranslate2 ─▶ `beam` ended hypotheses ─ Σ log p / |y|^α ─▶ the n best
                                          └─ put right by `steer.py`, guarded by `decode/translator/loops.py`
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman.decode.alignment.aligner import Aligner, pieces_by_pieces
from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.finished import Ended
from dragoman.decode.translator.base import Progress, Surface
from dragoman.decode.translator.cancel import Wanted, some_of
from dragoman.decode.translator.hypothesis import (
    EMPTY,
    Hypothesis,
    Partial,
    hypothesis_of,
    partials,
    refuse_string,
)
from dragoman.decode.translator.protected import keep_spans
from dragoman.engines.engine import Engine
from dragoman.engines.manifest import WEIGHTS, Export, read_export
from dragoman.engines.runtime import Ids
from dragoman.engines.search import refuse_unsupported
from dragoman.engines.weights import read_shapes
from dragoman.errors import UserError
from dragoman.text.spans import SpanKind
from dragoman.text.tokenizer import EOS_ID, Tokenizer

_INT8_TOKENS, _LISTED_TOKENS, _FLOAT_TOKENS = 1024, 1536, 3072
"""Of a batch, what is quickest: products of small numbers pay in small batches already, small batches have
short shortlists."""
_PER_CALL = 2048
"""Sentences of similar length that are searched at once, with the greatest of their length limits."""


class EngineAligner(Aligner):
    """The attention that was chosen when the model was exported; `when_read` is what `Look` says of it."""

    def __init__(self, engine: Engine, tokenizers: Sequence[Tokenizer], when_read: bool | None) -> None:
        super().__init__(tokenizers[0], tokenizers[-1])
        self.engine, self.when_read = engine, when_read

    def attention(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int
    ) -> Iterator[tuple[int, np.ndarray]] | None:
        when_read = self.when_read
        if when_read is None:
            return None
        found = self.engine.runtime.attention(pairs, batch_tokens)
        return ((number, pieces_by_pieces(weights, when_read)) for number, weights in found)


class Translator(Surface):
    """An exported model with its tokenizers. `workers` batches run at once, each on `threads` cores."""

    def __init__(
        self,
        directory: Path,
        export: Export,
        workers: int | None = None,
        threads: int = 1,
        shortlist: bool = True,
    ) -> None:
        tokenizers = [Tokenizer.load(directory / name) for name in export.tokenizers]
        use_shortlist = export.shortlist and shortlist
        _refuse_other_rows(directory, tokenizers)
        self.engine = Engine(directory, export, use_shortlist, workers, threads)
        super().__init__(EngineAligner(self.engine, tokenizers, export.attention_when_read), export.search)
        as_floats = _LISTED_TOKENS if use_shortlist else _FLOAT_TOKENS
        self.default_batch_tokens = _INT8_TOKENS if self.engine.runtime.quantized else as_floats
        self.positions = export.positions
        self.languages = export.src_lang, export.tgt_lang

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        workers: int | None = None,
        threads: int = 1,
        shortlist: bool = True,
    ) -> "Translator":
        """Check every file of an export and load it. `shortlist=False` leaves its shortlist aside."""
        directory = Path(directory)
        return cls(directory, read_export(directory), workers, threads, shortlist)

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int | None = None,
        protect: Collection[SpanKind] = (),
        wanted: Sequence[Wanted] | None = None,
    ) -> list[str]:
        """The best translation of each text. Quicker than `hypotheses`: no token is scored on its own."""
        refuse_string(texts)
        settings, size = search or self.search, batch_tokens or self.default_batch_tokens

        def again(numbers: Sequence[int], cut: Sequence[str]) -> list[list[Hypothesis]]:
            heard = some_of(wanted, numbers)
            found = self._found(self._encode(cut), [Constraints()] * len(cut), settings, size, wanted=heard)
            return [
                [hypothesis_of(ended, self.tgt_tokenizer, settings) for ended in best[:1]] or [EMPTY]
                for best in found
            ]

        if protect:
            found = keep_spans(again(range(len(texts)), texts), texts, protect, again, self.aligner, size)
            return [best.text for best, *_ in found]
        free = [Constraints()] * len(texts)
        best = self._found(self._encode(texts), free, settings, size, wanted=wanted)
        return [self.tgt_tokenizer.decode(own[0].tokens[:-1]) if own else "" for own in best]

    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """The greedy translation of one text, token by token. Nothing is protected or guarded against loops:
        that needs the whole of it."""
        settings, (source,) = search or self.search, self._encode([text])
        if source is None:
            return iter([Partial("", (), EMPTY)])
        return partials(self.engine.stream(source, settings), self.tgt_tokenizer, settings)

    def _hypotheses(
        self,
        texts: Sequence[str],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        batch_tokens: int,
        progress: Progress | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Hypothesis]]:
        sources = self._encode(texts)
        found = self._found(sources, constraints, settings, batch_tokens, progress, wanted)
        rows = list(zip(sources, constraints, found, strict=True))
        pairs = [(src, one.tokens[:-1]) for src, _, best in rows if src is not None for one in best]
        scores = iter(self.engine.runtime.token_scores(pairs, batch_tokens))
        return [
            [self._unasked(own, settings)]
            if src is None
            else [
                hypothesis_of(replace(one, token_scores=next(scores)), self.tgt_tokenizer, settings)
                for one in best
            ]
            or [EMPTY]
            for src, own, best in rows
        ]

    def _unasked(self, own: Constraints, settings: SearchConfig) -> Hypothesis:
        """Of a blank text. CTranslate2 runs no model for one, so a given beginning is all that it has."""
        if not own.longest_prefix:
            return EMPTY
        rest = self.tgt_tokenizer.spell(own.tail.decode("utf-8"))
        return hypothesis_of(Ended((*own.head, *rest, EOS_ID), (), "stop"), self.tgt_tokenizer, settings)

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int | None = None,
    ) -> list[Hypothesis]:
        """How probable the model finds the given translations, token by token."""
        settings = self.search if alpha is None else replace(self.search, alpha=alpha)
        size = batch_tokens or self.default_batch_tokens
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        self._refuse_long(map(len, sources), "source")
        self._refuse_long(map(len, targets), "target")
        ids = list(zip(sources, targets, strict=True))
        scored = zip(targets, self.engine.runtime.token_scores(ids, size), strict=True)
        ended = [Ended((*tgt, EOS_ID), own, "stop") for tgt, own in scored]
        return [hypothesis_of(one, self.tgt_tokenizer, settings) for one in ended]

    def _encode(self, texts: Sequence[str]) -> list[Ids | None]:
        """The ids of each text; None where it is blank."""
        sources = self.src_tokenizer.encode_batch(texts)
        self._refuse_long(map(len, sources), "text")
        return [ids if text.strip() else None for text, ids in zip(texts, sources, strict=True)]

    def _found(
        self,
        sources: Sequence[Ids | None],
        constraints: Sequence[Constraints],
        settings: SearchConfig,
        batch_tokens: int,
        progress: Progress | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Ended]]:
        """The n best of each source; nothing for one that is blank, or not wanted any more."""
        refuse_unsupported(settings)
        if any(own.required for own in constraints):
            raise UserError(
                "required: phrases that have to come, given or from a glossary, need a search of our own; "
                "translate with the run itself"
            )
        results: list[list[Ended]] = [[] for _ in sources]
        rows = enumerate(zip(sources, constraints, strict=True))
        asked = [(index, ids, own) for index, (ids, own) in rows if ids is not None]
        asked.sort(key=lambda one: len(one[1]), reverse=True)
        done = len(sources) - len(asked)
        for start in range(0, len(asked), _PER_CALL):
            numbers, chosen, own = zip(*asked[start : start + _PER_CALL], strict=True)
            free = all(each == Constraints() for each in own)
            steer = (None, None) if free else (own, self.tgt_tokenizer.spelling)
            found = self.engine.search(chosen, settings, batch_tokens, *steer, some_of(wanted, numbers))
            for index, hypotheses in zip(numbers, found, strict=True):
                results[index] = hypotheses
            done += len(chosen)
            if progress:
                progress(done, len(sources))
        return results

    def _refuse_long(self, lengths: Iterable[int], what: str) -> None:
        if self.positions is None:
            return
        for number, length in enumerate(lengths, 1):
            if length >= self.positions:
                raise UserError(
                    f"{what} {number}: {length + 1:,} tokens with </s> are more than the {self.positions:,} "
                    "positions of this export; split it, or export with more --positions"
                )


def _refuse_other_rows(directory: Path, tokenizers: Sequence[Tokenizer]) -> None:
    """Every piece has a row: CTranslate2 would read past the end of the table for one that has none."""
    path = directory / WEIGHTS
    shapes = read_shapes(path)
    tables = {"encoder/embeddings_0/weight": tokenizers[0], "decoder/embeddings/weight": tokenizers[-1]}
    for name, tokenizer in tables.items():
        shape = shapes.get(name, ())
        if len(shape) != 2 or shape[0] != tokenizer.size:
            found = f"'{name}' has the shape {list(shape)}"
            raise UserError(f"{path}: {found}, and the tokenizer {tokenizer.size} pieces")


def open_export(directory: Path, which: str = "best", device: str = "auto") -> Translator:
    """An export as if it were a run. It holds one checkpoint, and it runs on the CPU."""
    if which != "best":
        raise UserError(f"{directory}: this is an export, which holds one checkpoint; there is no '{which}'")
    if device not in ("auto", "cpu"):
        raise UserError(f"{directory}: this is an export, which runs on the CPU, not on '{device}'")
    return Translator.open(directory)
