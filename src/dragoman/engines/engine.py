"""A loaded export in ids: search with constraints and with the loop guard, and streams."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, FinishReason, Job
from dragoman.decode.search.loops import without_loops
from dragoman.engines.manifest import Export
from dragoman.engines.runtime import Call, Runtime, TokenIds
from dragoman.engines.search import search, supported
from dragoman.engines.steer import steered
from dragoman.errors import UserError
from dragoman.text.tokenizer import EOS_ID


class Engine:
    """`workers` batches run at once, each on `threads` cores."""

    def __init__(
        self, directory: Path, export: Export, shortlist: bool, workers: int | None, threads: int
    ) -> None:
        self.positions, self.shortlist = export.positions, shortlist
        self.runtime = Runtime(directory, export.quantization, workers, threads)

    def search(self, jobs: Sequence[Job], config: SearchConfig, batch_tokens: int) -> list[list[Ended]]:
        """The n best of each job, without the scores of tokens. They should be of similar length. One that is
        cancelled has none."""
        beam = supported(config, self.positions)
        for job in jobs:
            self._refuse(job)

        def run(chosen: Sequence[Job], settings: BeamSearch) -> list[list[Ended]]:
            return search(self.runtime, chosen, settings, self.shortlist, batch_tokens)

        def next_scores(pairs: Sequence[tuple[TokenIds, TokenIds]]) -> list[np.ndarray]:
            return self.runtime.next_scores(pairs, len(spelling or ()), batch_tokens)

        spelling = next((job.constraints.spelling for job in jobs if job.constrained), None)
        found = run(jobs, beam) if spelling is None else steered(jobs, spelling, beam, run, next_scores)
        return without_loops(found, jobs, beam, lambda again, calm: self.search(again, calm, batch_tokens))

    def stream(self, job: Job, config: SearchConfig) -> Iterator[tuple[int, ...] | Ended]:
        """The tokens of a greedy translation one by one, without `</s>`; then all of it, scored."""
        if isinstance(config, BeamSearch) and config.beam > 1:
            raise UserError(
                f"search.beam: CTranslate2 shows what it writes with a beam of 1, not {config.beam}; set "
                "it to 1, or stream with the run itself"
            )
        settings = supported(config, self.positions)
        tokens: list[int] = []
        reason: FinishReason = "length"
        call = Call(
            job.longest(settings) - 1,
            job.shortest(settings),
            no_repeat_ngram=settings.no_repeat_ngram,
            shortlist=self.shortlist,
            forbid=True,
        )
        for piece in self.runtime.stream(job.source, call) if call.longest else ():
            if piece == EOS_ID:
                reason = "stop"
                break
            tokens.append(piece)
            yield (piece,)
        (scores,) = self.runtime.token_scores([(job.source[:-1], tokens)], batch_tokens=1)
        yield Ended((*tokens, EOS_ID), scores, reason)

    def _refuse(self, job: Job) -> None:
        own = job.constraints
        if own.required:
            raise UserError(
                "required: phrases that have to come, given or from a glossary, need a search of our own; "
                "translate with the run itself"
            )
        if own.longest_prefix and self.positions is not None and own.room > self.positions:
            raise UserError(
                f"prefixes: one takes up to {own.longest_prefix} pieces, which leaves no room within the "
                f"{self.positions:,} positions of this export; cut it, or export with more --positions"
            )
