"""Search errors and model errors.

A *search error* is a sentence for which the beam returns a lower-scoring translation than the optimum. A
*model error* is one whose optimum is worse than what the beam returns: a better search would make it worse
(Stahlberg & Byrne 2019). Both need the true optimum, so each sentence is searched exhaustively; sentences
without a proof within the budget are counted separately.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, SearchConfig
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, SentenceProgress, Translator
from dragoman.errors import UserError
from dragoman.evaluate.lengths import Bucket, make_buckets
from dragoman.evaluate.metrics import sentence_chrf

TOLERANCE = 1e-6
"""Scores that differ by less are equal: rounding depends on the batch."""
MIN_SENTENCES = 20
"""Smallest number of sentences in a length bucket."""


@dataclass(frozen=True)
class Judged:
    """The result of one beam for one sentence, compared with the optimum."""

    missed: bool
    gap: float
    """How much higher the score of the optimum is; 0 if the beam found it."""
    chrf: float


@dataclass(frozen=True)
class SearchedSentence:
    source_pieces: int
    proven: bool
    optimum: Hypothesis
    optimum_chrf: float
    beams: tuple[Judged, ...]


@dataclass(frozen=True)
class ErrorSummary:
    """Summary for one beam and one length bucket. Shares are of the proven sentences, from 0 to 1."""

    bucket: str
    beam: int
    sentences: int
    unproven: int
    missed: float
    gap: float
    """Mean over the sentences that miss the optimum."""
    empty: float
    worse: float
    """Share of sentences whose optimum has a lower chrF than the beam's result."""
    better: float
    chrf: float
    optimum_chrf: float


@dataclass(frozen=True)
class SearchErrors:
    beams: tuple[int, ...]
    search: ExhaustiveSearch
    """The exhaustive search."""
    sentences: list[SearchedSentence]
    buckets: list[Bucket]
    """Buckets by source length in tokens."""

    @property
    def unproven(self) -> int:
        return sum(not sentence.proven for sentence in self.sentences)

    @property
    def ranked_by(self) -> str:
        alpha = self.search.alpha
        return f"ranked by log p / length^{alpha:g}" if alpha else "ranked by log p, not normalised"

    def overall(self) -> list[ErrorSummary]:
        """One row per beam."""
        everything = Bucket(None, None, tuple(range(len(self.sentences))))
        return self.of(everything)

    def by_length(self) -> list[list[ErrorSummary]]:
        """The rows of each length bucket, if there is more than one bucket."""
        return [rows for bucket in self.buckets if (rows := self.of(bucket))] if len(self.buckets) > 1 else []

    def of(self, bucket: Bucket) -> list[ErrorSummary]:
        """One row per beam; none if nothing is proven."""
        chosen = [self.sentences[place] for place in bucket.places]
        proven = [sentence for sentence in chosen if sentence.proven]
        if not proven:
            return []
        optima = [sentence.optimum_chrf for sentence in proven]
        empty = fmean(not sentence.optimum.tokens for sentence in proven)
        rows: list[ErrorSummary] = []
        for place, beam in enumerate(self.beams):
            judged = [sentence.beams[place] for sentence in proven]
            gaps = [each.gap for each in judged if each.missed]
            changes = [best - each.chrf for best, each in zip(optima, judged, strict=True) if each.missed]
            rows.append(
                ErrorSummary(
                    bucket.label,
                    beam,
                    len(proven),
                    len(chosen) - len(proven),
                    missed=len(gaps) / len(proven),
                    gap=fmean(gaps) if gaps else 0.0,
                    empty=empty,
                    worse=sum(change < 0 for change in changes) / len(proven),
                    better=sum(change > 0 for change in changes) / len(proven),
                    chrf=fmean(each.chrf for each in judged),
                    optimum_chrf=fmean(optima),
                )
            )
        return rows

    def table(self) -> list[list[str]]:
        """A header and one row for each beam and bucket: the data of the plot, at full precision."""
        header = ["source_pieces", "beam", "sentences", "unproven", "missed", "mean_gap", "optimum_empty"]
        rows = [[*header, "optimum_worse", "optimum_better", "chrf", "optimum_chrf"]]
        for row in chain(self.overall(), *self.by_length()):
            numbers = (row.missed, row.gap, row.empty, row.worse, row.better, row.chrf, row.optimum_chrf)
            counts = (row.beam, row.sentences, row.unproven)
            rows.append([row.bucket, *map(str, counts), *(f"{number:.6f}" for number in numbers)])
        return rows


def evenly(count: int, wanted: int) -> list[int]:
    """Indices of `wanted` of `count` items, evenly spaced and always the same."""
    return list(range(count)) if wanted >= count else [place * count // wanted for place in range(wanted)]


def search_errors(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beams: Sequence[int],
    search: SearchConfig | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: SentenceProgress | None = None,
) -> SearchErrors:
    """Search every sentence with every beam and exhaustively. `search` has the settings, with `max_nodes` as
    the budget."""
    if not sources or not all(source.strip() for source in sources):
        raise UserError("there is no sentence to search" if not sources else "a blank source has no search")
    widths = tuple(sorted(set(beams)))
    exact = (search or translator.search).converted(ExhaustiveSearch, beam=widths[-1], n_best=1)
    plain = exact.converted(BeamSearch, loop_guard=False)  # the beam itself
    total = len(sources) * (len(widths) + 1)

    def best(settings: SearchConfig, part: int, tokens: int) -> list[Hypothesis]:
        def tell(done: int, count: int) -> None:
            if progress:
                progress(part * count + done, total)

        found = translator.hypotheses(sources, search=settings, batch_tokens=tokens, progress=tell)
        return [hypotheses[0] for hypotheses in found]

    by_beam = [best(replace(plain, beam=beam), part, batch_tokens) for part, beam in enumerate(widths)]
    optima = best(exact, len(widths), 1)  # one by one, for progress
    lengths = [len(ids) for ids in translator.src_tokenizer.encode_batch(sources)]
    sentences = [
        _judge(*each) for each in zip(lengths, references, optima, zip(*by_beam, strict=True), strict=True)
    ]
    return SearchErrors(widths, exact, sentences, make_buckets(lengths, min_sentences=MIN_SENTENCES))


def _judge(length: int, reference: str, optimum: Hypothesis, found: Sequence[Hypothesis]) -> SearchedSentence:
    judged: list[Judged] = []
    for hypothesis in found:
        gap = optimum.score - hypothesis.score
        missed = hypothesis.tokens != optimum.tokens and gap > TOLERANCE
        chrf = sentence_chrf(hypothesis.text, reference)
        judged.append(Judged(missed, gap if missed else 0.0, chrf))
    chrf = sentence_chrf(optimum.text, reference)
    return SearchedSentence(length, optimum.exact is True, optimum, chrf, tuple(judged))
