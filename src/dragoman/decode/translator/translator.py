"""Translator: text in, hypotheses out, in the order of the input. The result does not depend on the batch.

On a CPU several batches are searched in parallel. One batch on two cores waits at the end of every operation
for the slower core, and while Python runs, one core is idle. Two batches on one core each do not wait for
each other. PyTorch releases the GIL inside its operations, so a few threads are enough.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import torch

from dragoman.data.batch import collate
from dragoman.decode.alignment.attention import ModelAligner, SequencePair
from dragoman.decode.rules.constraints import FREE
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam, best_extensions
from dragoman.decode.search.beam_allocation import Banks
from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, MbrOfBeam, MbrOfSamples, SearchConfig
from dragoman.decode.search.exhaustive import Exhaustive
from dragoman.decode.search.job import Ended, Job, by_length, never
from dragoman.decode.search.loop_guard import without_loops
from dragoman.decode.search.one_path import most_probable, search_one_path
from dragoman.decode.search.sample import sample
from dragoman.decode.search.scorer import ListedScorer, Scorer
from dragoman.decode.search.trace import TraceRecorder
from dragoman.decode.translator.base import BaseTranslator, SentenceProgress
from dragoman.decode.translator.hypothesis import EMPTY, Hypothesis, Partial, hypothesis_of, partials
from dragoman.decode.translator.mbr import by_expected_utility
from dragoman.decode.translator.stream import stream_tokens
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention_kernels import tap_is_open
from dragoman.text.tokenizer import Tokenizer

_WIDEST_RAISE = 24
"""A beam is widened up to this size if required phrases need banks."""


def search(scorer: Scorer, jobs: Sequence[Job], config: SearchConfig) -> list[list[Ended]]:
    """The n best hypotheses of every job, best first; samples in the order of drawing. For minimum Bayes risk
    these are the candidates; they are ranked later by their texts. A cancelled job has fewer hypotheses, or
    none.

    Jobs that need another beam size or vocabulary are searched separately: required phrases widen the beam,
    and a job with constraints may need any token, so it cannot use a shortlist.
    """
    if isinstance(config, MbrOfSamples | MbrOfBeam):
        config = config.for_candidates()
    groups: dict[tuple[int, bool, bool], list[int]] = {}
    for row, job in enumerate(jobs):
        _refuse(job, config, scorer)
        listed = config.shortlist and not (job.constrained or config.brackets)
        groups.setdefault((_width(config, job), bool(job.constraints.required), listed), []).append(row)
    results: list[list[Ended]] = [[] for _ in jobs]
    for (width, _, listed), rows in groups.items():
        group_jobs = [jobs[row] for row in rows]
        with torch.inference_mode():
            group_scorer = scorer.among(group_jobs) if listed else scorer
            group_config = replace(config.widened(width), shortlist=listed)
            batch = SearchBatch.of(
                group_jobs, group_config, group_scorer.vocab, group_scorer.device, group_scorer.texts
            )
            group_results = _METHODS[group_config.method](group_scorer, batch, group_config)
        if isinstance(group_scorer, ListedScorer):
            group_results = group_scorer.restore(group_results)
        for row, hypotheses in zip(rows, group_results, strict=True):
            results[row] = hypotheses
    return without_loops(results, jobs, config, lambda again, calm: search(scorer, again, calm))


def _by_beam(scorer: Scorer, batch: SearchBatch, config: BeamSearch) -> list[list[Ended]]:
    plain = scorer.device.type == "cuda" and not any(job.constrained for job in batch.jobs)
    if plain and scorer.rooms.take(scorer.models, config):
        return scorer.rooms.search(scorer.models[0], batch, config)
    if config.beam == 1 and not (config.record or config.watched or batch.required):
        return search_one_path(scorer, batch, most_probable)
    allocation = best_extensions if batch.required is None else Banks(batch.required, scorer.vocab.eos_id)
    if not config.record:
        return Beam(scorer, batch, config, allocation).run()
    recorder = TraceRecorder(len(batch.jobs), config.beam, scorer.vocab.eos_id)
    stop = "complete" if config.beam == 1 else config.stop  # greedy search stops at the first `</s>`
    best_of_jobs = Beam(scorer, batch, replace(config, stop=stop), allocation, recorder).run()
    recorded = zip(best_of_jobs, recorder.traces, strict=True)
    return [[replace(hypothesis, trace=trace) for hypothesis in best] for best, trace in recorded]


def _exhaustively(scorer: Scorer, batch: SearchBatch, config: ExhaustiveSearch) -> list[list[Ended]]:
    beam_results = _by_beam(scorer, batch, config.first())
    return [
        Exhaustive(scorer, batch, row, config, candidates).run()
        for row, candidates in enumerate(beam_results)
    ]


_METHODS: dict[str, Callable[[Scorer, SearchBatch, Any], list[list[Ended]]]] = {
    "beam": _by_beam,
    "exhaustive": _exhaustively,
    "sample": sample,
}


def _refuse(job: Job, config: SearchConfig, scorer: Scorer) -> None:
    spelling = job.constraints.spelling
    if job.constrained and (spelling is None or len(spelling) != scorer.vocab.tgt_size):
        raise UserError("spelling: constraints need the text of every piece of the target vocabulary")
    if job.constraints.required and isinstance(config, BeamSearch) and config.groups > 1:
        raise UserError(f"groups: phrases that are required need the whole beam, not {config.groups} groups")


def _width(config: SearchConfig, job: Job) -> int:
    """Room for every bank, so that a narrow beam is not forced to produce the phrases at once."""
    beam = config.beam if isinstance(config, BeamSearch | ExhaustiveSearch) else 1
    if not job.constraints.required:
        return beam
    banks = job.constraints.required_pieces + 1
    return max(beam, min(_WIDEST_RAISE, -(-banks // 4) * 4))


T = TypeVar("T")
R = TypeVar("R")

DEFAULT_BATCH_TOKENS = 2048
_ON_A_GPU = 16384
_MOST_WORKERS = 4  # a search spends about a fifth of its time in Python, which one thread runs at a time
_LEAST_TOKENS = 512  # tokens per batch of a worker: below this, matrix products of few rows are too slow
_ROUNDS = 2  # batches per worker, so that all workers end at about the same time


class Translator(BaseTranslator):
    """A model or an ensemble, with tokenizers and search settings."""

    default_batch_tokens = DEFAULT_BATCH_TOKENS

    def __init__(
        self,
        model: EncoderDecoder | Sequence[EncoderDecoder],
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        search: SearchConfig | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        models = [model] if isinstance(model, EncoderDecoder) else model
        self.scorer = Scorer([each.to(device).eval() for each in models])
        self.model = self.scorer.models[0]
        self.device = torch.device(device)
        super().__init__(src_tokenizer, tgt_tokenizer, search or BeamSearch())
        self.scorer.texts = lambda: tgt_tokenizer.spelling
        if self.device.type == "cuda":
            self.default_batch_tokens = _ON_A_GPU
        self.alignment_examples: Callable[[], Sequence[SequencePair]] = tuple
        """Pairs of ids for choosing the attention that aligns best. Called once, when needed."""

    @cached_property
    def aligner(self) -> ModelAligner:
        return ModelAligner(
            self.model, self.src_tokenizer, self.tgt_tokenizer, self.device, self.alignment_examples
        )

    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """Stream the best translation of one text: each part as soon as it is final. Spans are not protected,
        since that needs the whole translation."""
        config = search or self.search
        (job,) = self.jobs([text], [FREE], [never])
        if not job.source:
            yield Partial("", (), EMPTY)
            return
        yield from partials(stream_tokens(self.scorer, job, config), self.tgt_tokenizer, config)

    def search_jobs(
        self,
        jobs: Sequence[Job],
        config: SearchConfig,
        batch_tokens: int | None = None,
        progress: SentenceProgress | None = None,
        scored: bool = True,  # noqa: ARG002  the scores cost nothing here
    ) -> list[list[Hypothesis]]:
        to_search = [number for number, job in enumerate(jobs) if len(job.source) and not job.cancelled()]
        lengths = [len(jobs[number].source) for number in to_search]
        workers = 1 if config.watched else workers_for(self.device, sum(lengths))
        size = share_of(batch_tokens or self.default_batch_tokens, sum(lengths), workers)
        batches = [[to_search[place] for place in places] for places in by_length(lengths, size)]
        results: dict[int, list[Hypothesis]] = {}
        done = len(jobs) - len(to_search)

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            hypotheses = search(self.scorer, [jobs[number] for number in batch], config)
            return [self._ranked(ended, config) if ended else [EMPTY] for ended in hypotheses]

        for batch, hypotheses in side_by_side(search_batch, batches, workers):
            results |= dict(zip(batch, hypotheses, strict=True))
            done += len(batch)
            if progress:
                progress(done, len(jobs))
        return [results.get(number, [EMPTY]) for number in range(len(jobs))]

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        """Score given translations, token by token. Both sides may have the sentences before in front."""
        ranking = self.search if alpha is None else replace(self.search, alpha=alpha)
        scored = self.score_ids(self.encoded_pairs(pairs), search=ranking, batch_tokens=batch_tokens)
        return self.own_sentences(scored, ranking)

    def score_ids(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        *,
        search: SearchConfig,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        """The same for pairs of ids: a search may segment a text differently from the tokenizer. `search`
        sets the normalisation of the scores."""
        results: dict[int, Hypothesis] = {}
        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in pairs]
        for batch in by_length(lengths, batch_tokens):
            scored = self._forced([pairs[index] for index in batch], search.watched)
            for index, ended in zip(batch, scored, strict=True):
                results[index] = hypothesis_of(ended, self.tgt_tokenizer, search)
        return [results[index] for index in range(len(pairs))]

    def _forced(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], watched: bool) -> list[Ended]:
        with torch.inference_mode():
            scores, covered = self.scorer.forced(collate(pairs, self.device), watched)
        eos, covers = self.scorer.vocab.eos_id, [0.0] * len(pairs) if covered is None else covered.tolist()
        return [
            Ended((*tgt, eos), tuple(row[: len(tgt) + 1]), "stop", covered=cover)
            for (_, tgt), row, cover in zip(pairs, scores.tolist(), covers, strict=True)
        ]

    def _ranked(self, all_ended: Sequence[Ended], config: SearchConfig) -> list[Hypothesis]:
        hypotheses = [hypothesis_of(ended, self.tgt_tokenizer, config) for ended in all_ended]
        trace = hypotheses[0].trace
        if trace is not None:  # one for all hypotheses of a sentence, with its tokens as text
            with_text = trace.with_pieces(self.tgt_tokenizer.pieces)
            hypotheses = [replace(hypothesis, trace=with_text) for hypothesis in hypotheses]
        if isinstance(config, MbrOfSamples | MbrOfBeam):
            return by_expected_utility(hypotheses, config)
        return hypotheses


def workers_for(device: torch.device, tokens: int) -> int:
    """How many batches to search in parallel for this many tokens. Thread-local settings, such as taps and
    autocast, do not reach other threads: then it is one."""
    if device.type != "cpu" or tap_is_open() or torch.is_autocast_enabled("cpu"):
        return 1
    return max(1, min(torch.get_num_threads(), _MOST_WORKERS, tokens // _LEAST_TOKENS))


def share_of(batch_tokens: int, tokens: int, workers: int) -> int:
    """Tokens per batch, so that all workers have enough work."""
    if workers == 1:
        return batch_tokens
    return min(batch_tokens, max(_LEAST_TOKENS, -(-tokens // (_ROUNDS * workers))))


def side_by_side(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[tuple[T, R]]:
    """Every item with its result, in order of completion."""
    workers = min(workers, len(items))
    if workers <= 1:
        yield from ((item, work(item)) for item in items)
        return
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        workers, "dragoman-search", initializer=torch.set_num_threads, initargs=(threads // workers,)
    )
    try:
        jobs = {pool.submit(work, item): item for item in items}
        yield from ((jobs[job], job.result()) for job in as_completed(jobs))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # threads that start later would inherit the setting of the workers
