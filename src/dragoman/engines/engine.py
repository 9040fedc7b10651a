"""A loaded export in ids: search with rules and with the guard, token by token scores, streams."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.finished import Ended, FinishReason
from dragoman.decode.translator.cancel import Wanted, some_of
from dragoman.decode.translator.loops import without_loops
from dragoman.engines.manifest import Export
from dragoman.engines.runtime import Call, Ids, Runtime
from dragoman.engines.search import Job, refuse_unsupported, search
from dragoman.engines.steer import Steering, steered
from dragoman.errors import UserError
from dragoman.text.spelling import Spelling
from dragoman.text.tokenizer import EOS_ID


class Engine:
    """`workers` batches run at once, each on `threads` cores."""

    def __init__(
        self, directory: Path, export: Export, shortlist: bool, workers: int | None, threads: int
    ) -> None:
        self.positions, self.shortlist = export.positions, shortlist
        self.runtime = Runtime(directory, export.quantization, workers, threads)

    def search(
        self,
        sources: Sequence[Ids],
        settings: SearchConfig,
        batch_tokens: int,
        constraints: Sequence[Constraints] | None = None,
        spelling: Spelling | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Ended]]:
        """The n best of each source, without the scores of tokens. They should be of similar length. One that
        is not wanted any more has none."""

        def find(numbers: Sequence[int], config: SearchConfig) -> list[list[Ended]]:
            own = None if constraints is None else [constraints[number] for number in numbers]
            chosen, heard = [sources[number] for number in numbers], some_of(wanted, numbers)
            return self._search(chosen, config, batch_tokens, own, spelling, heard)

        found = find(range(len(sources)), settings)
        return without_loops(found, [(*source, EOS_ID) for source in sources], settings, find)

    def _search(
        self,
        sources: Sequence[Ids],
        settings: SearchConfig,
        batch_tokens: int,
        constraints: Sequence[Constraints] | None,
        spelling: Spelling | None,
        wanted: Sequence[Wanted] | None,
    ) -> list[list[Ended]]:
        def run(jobs: Sequence[Job], config: SearchConfig, numbers: Sequence[int]) -> list[list[Ended]]:
            heard = some_of(wanted, numbers)
            return search(self.runtime, jobs, config, self.shortlist, batch_tokens, heard)

        if constraints is None or spelling is None:
            return run([self._job(source, settings) for source in sources], settings, range(len(sources)))
        jobs = [self._job(source, settings, own) for source, own in zip(sources, constraints, strict=True)]
        rules = [
            Steering(own, spelling, job, settings.no_repeat_ngram)
            for own, job in zip(constraints, jobs, strict=True)
        ]
        return steered(
            jobs,
            rules,
            settings,
            run,
            lambda pairs: self.runtime.next_scores(pairs, len(spelling), batch_tokens),
        )

    def stream(self, source: Ids, settings: SearchConfig) -> Iterator[tuple[int, ...] | Ended]:
        """The tokens of a greedy translation one by one, without `</s>`; then all of it, scored."""
        if settings.beam > 1:
            raise UserError(
                f"search.beam: CTranslate2 shows what it writes with a beam of 1, not {settings.beam}; set "
                "it to 1, or stream with the run itself"
            )
        refuse_unsupported(settings)
        job = self._job(source, settings)
        tokens: list[int] = []
        reason: FinishReason = "length"
        call = Call(
            job.longest - 1,
            job.shortest,
            no_repeat_ngram=settings.no_repeat_ngram,
            shortlist=self.shortlist,
            forbid=True,
        )
        for piece in self.runtime.stream(source, call) if call.longest else ():
            if piece == EOS_ID:
                reason = "stop"
                break
            tokens.append(piece)
            yield (piece,)
        (scores,) = self.runtime.token_scores([(source, tokens)], batch_tokens=1)
        yield Ended((*tokens, EOS_ID), scores, reason)

    def _job(self, source: Ids, settings: SearchConfig, own: Constraints | None = None) -> Job:
        """Where a given beginning is longer than the limit allows, the limit moves, as in our own search."""
        tokens = len(source) + 1
        longest = settings.longest(tokens)
        if own is not None and own.longest_prefix:
            longest = max(longest, own.longest_prefix + 2)
            if self.positions is not None and own.longest_prefix + 2 > self.positions:
                raise UserError(
                    f"prefixes: one takes up to {own.longest_prefix} pieces, which leaves no room within the "
                    f"{self.positions:,} positions of this export; cut it, or export with more --positions"
                )
        longest = longest if self.positions is None else min(longest, self.positions)
        return Job(source, longest, min(settings.shortest(tokens), longest - 1))
