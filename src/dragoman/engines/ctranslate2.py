"""A translator that runs an exported model with CTranslate2, on a CPU and without torch.

It has the interface of `decode/translator/base.py`, with our tokenization, length limits and scores:

    text ─ ids ─▶ beam search by CTranslate2 ─▶ `beam` ended hypotheses ─ Σ log p / |y|^α ─▶ the n best
                                          └─ corrected by `engine.py`, guarded by `search/loop_guard.py`
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from dragoman.decode.alignment.aligner import Aligner, pieces_by_pieces
from dragoman.decode.rules.constraints import FREE, Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled, Ended, Job, never
from dragoman.decode.translator.base import BaseTranslator, SentenceProgress
from dragoman.decode.translator.hypothesis import EMPTY, Hypothesis, Partial, hypothesis_of, partials
from dragoman.engines.engine import Engine
from dragoman.engines.manifest import CTRANSLATE2, WEIGHTS, Export, read_export
from dragoman.engines.weights import read_shapes
from dragoman.errors import UserError
from dragoman.text.tokenizer import EOS_ID, Tokenizer

_INT8_TOKENS, _LISTED_TOKENS, _FLOAT_TOKENS = 1024, 1536, 3072
"""Tokens per batch, by measured speed: int8 products pay in small batches already, and small batches have
short shortlists."""
_PER_CALL = 2048
"""Sentences of similar length per call, with the largest of their length limits."""


class EngineAligner(Aligner):
    """The attention that was chosen at export; `when_read` as in `Look`."""

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


class CTranslate2Translator(BaseTranslator):
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
        super().__init__(tokenizers[0], tokenizers[-1], export.search)
        self.when_read = export.attention_when_read
        as_floats = _LISTED_TOKENS if use_shortlist else _FLOAT_TOKENS
        self.default_batch_tokens = _INT8_TOKENS if self.engine.runtime.quantized else as_floats
        self.export = export
        self.longest_source = None if export.positions is None else export.positions - 1
        self.context = export.context
        self.languages = export.src_lang, export.tgt_lang

    @cached_property
    def aligner(self) -> EngineAligner:
        return EngineAligner(self.engine, (self.src_tokenizer, self.tgt_tokenizer), self.when_read)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        workers: int | None = None,
        threads: int = 1,
        shortlist: bool = True,
    ) -> "CTranslate2Translator":
        """Verify every file of an export and load it. `shortlist=False` ignores its shortlist."""
        directory = Path(directory)
        export = read_export(directory)
        if export.engine != CTRANSLATE2:
            raise UserError(f"{directory}: this is an export for {export.engine}, not for CTranslate2")
        return cls(directory, export, workers, threads, shortlist)

    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """The greedy translation of one text, token by token. Without protected spans and loop guard, which
        need the whole output."""
        config, (job,) = search or self.search, self.jobs([text], [FREE], [never])
        if not job.source:
            return iter([Partial("", (), EMPTY)])
        return partials(self.engine.stream(job, config), self.tgt_tokenizer, config)

    def jobs(
        self, texts: Sequence[str], constraints: Sequence[Constraints], cancelled: Sequence[Cancelled]
    ) -> list[Job]:
        jobs = super().jobs(texts, constraints, cancelled)
        self.export.refuse_long((len(job.source) - 1 for job in jobs), "text")
        return jobs

    def _asks_about_blank(self, constraints: Constraints) -> bool:  # noqa: ARG002
        """CTranslate2 runs no model for an empty source."""
        return False

    def search_jobs(
        self,
        jobs: Sequence[Job],
        config: SearchConfig,
        batch_tokens: int | None = None,
        progress: SentenceProgress | None = None,
        scored: bool = True,
    ) -> list[list[Hypothesis]]:
        size = batch_tokens or self.default_batch_tokens
        results: list[list[Ended]] = [[] for _ in jobs]
        asked = [number for number, job in enumerate(jobs) if job.source]
        asked.sort(key=lambda number: len(jobs[number].source), reverse=True)
        done = len(jobs) - len(asked)
        for start in range(0, len(asked), _PER_CALL):
            numbers = asked[start : start + _PER_CALL]
            found = self.engine.search([jobs[number] for number in numbers], config, size)
            for number, hypotheses in zip(numbers, found, strict=True):
                results[number] = hypotheses if scored else hypotheses[:1]
            done += len(numbers)
            if progress:
                progress(done, len(jobs))
        if scored:
            results = self._scored(jobs, results, size)
        return [self._shown(job, own, config) for job, own in zip(jobs, results, strict=True)]

    def _scored(
        self, jobs: Sequence[Job], results: Sequence[Sequence[Ended]], batch_tokens: int
    ) -> list[list[Ended]]:
        """The results with the score of every token."""
        rows = list(zip(jobs, results, strict=True))
        pairs = [(job.source[:-1], one.tokens[:-1]) for job, own in rows for one in own]
        scores = iter(self.engine.runtime.token_scores(pairs, batch_tokens))
        return [[replace(one, token_scores=next(scores)) for one in own] for own in results]

    def _shown(self, job: Job, found: Sequence[Ended], config: SearchConfig) -> list[Hypothesis]:
        """The hypothesis as text. A blank source with a given prefix becomes that prefix, which is not
        scored."""
        own = job.constraints
        if not job.source and own.longest_prefix:
            rest = self.tgt_tokenizer.spell(own.tail.decode("utf-8"))
            found = [Ended((*own.head, *rest, EOS_ID), (), "stop")]
        return [hypothesis_of(ended, self.tgt_tokenizer, config) for ended in found] or [EMPTY]

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int | None = None,
    ) -> list[Hypothesis]:
        """Log-probabilities of given translations, token by token."""
        settings = self.search if alpha is None else replace(self.search, alpha=alpha)
        size = batch_tokens or self.default_batch_tokens
        ids = self.encoded_pairs(pairs)
        self.export.refuse_long((len(src) for src, _ in ids), "source")
        self.export.refuse_long((len(tgt) for _, tgt in ids), "target")
        scores = self.engine.runtime.token_scores(ids, size)
        ended = [Ended((*tgt, EOS_ID), own, "stop") for (_, tgt), own in zip(ids, scores, strict=True)]
        scored = [hypothesis_of(one, self.tgt_tokenizer, settings) for one in ended]
        return self.own_sentences(scored, settings)


def _refuse_other_rows(directory: Path, tokenizers: Sequence[Tokenizer]) -> None:
    """Check that every piece has a row: CTranslate2 would read past the end of the table otherwise."""
    path = directory / WEIGHTS
    shapes = read_shapes(path)
    tables = {"encoder/embeddings_0/weight": tokenizers[0], "decoder/embeddings/weight": tokenizers[-1]}
    for name, tokenizer in tables.items():
        shape = shapes.get(name, ())
        if len(shape) != 2 or shape[0] != tokenizer.size:
            found = f"'{name}' has the shape {list(shape)}"
            raise UserError(f"{path}: {found}, and the tokenizer {tokenizer.size} pieces")
