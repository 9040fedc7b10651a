"""Report on a corpus: its contents, what training would leave out, and its overlap with a test set."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from dragoman.data.config import SUSPECTS, CleanConfig, DataConfig, SourceConfig
from dragoman.data.drop_reasons import (
    CHECK_ORDER,
    DUPLICATE,
    EMPTY,
    RATIO,
    REASONS,
    TOO_LONG,
    code_of,
    is_copy,
    length_codes,
    reason_of,
)
from dragoman.data.encode import Encoders, with_lengths
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.mark_suspects import judge_of, near_duplicates
from dragoman.data.overlap import Leaks, OverlapReport
from dragoman.data.scan import Scan, StageProgress, Watch, sample_of, scan
from dragoman.data.suspects import Judge
from dragoman.data.workers import open_workers
from dragoman.errors import UserError
from dragoman.files import scratch_directory
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

OVERLAP = "overlap"
"""Pairs that also occur in the test set. `--lines` accepts it besides the reasons."""

_CHUNK = 4096
_EXAMPLES = 3
"""Number of examples that the report shows per kind of suspicious pair."""
_SHOWN_CHARACTERS = 200
_SAMPLE_CHARACTERS = 4_000_000
_LONGEST_COUNTED = 1 << 16

ShowLine = Callable[[str, Pair], None]
"""Called with the origin of a pair (`a.en:17`) and the pair."""


@dataclass(frozen=True)
class SideReport:
    """One side of the corpus. Lengths are in tokens."""

    language: str
    words: int
    characters: int
    tokens: int
    mean: float
    median: int
    percentile_99: int
    longest: int
    histogram: tuple[tuple[int, int | None, int], ...]
    """Bins as (shortest, longest or None for the last one, sentences)."""


@dataclass(frozen=True)
class CorpusReport:
    """All contents of the report of `dragoman corpus`."""

    corpora: tuple[tuple[str, int], ...]
    """File names and number of pairs of each corpus."""
    pairs: int
    src: SideReport
    tgt: SideReport
    found: dict[str, int]
    """Number of pairs that each reason applies to."""
    dropped: dict[str, int]
    """Number of pairs that training leaves out. Each is counted once, for the first reason that applies."""
    kept: int
    overlap: OverlapReport | None
    rules: tuple[str, ...]
    """The kinds of suspicious pairs that were checked. The others do not apply to this corpus."""
    examples: dict[str, tuple[tuple[str, str, str], ...]]
    """The first examples of each kind of suspicious pair: origin, source, target."""


class _SideCounts:
    def __init__(self) -> None:
        self.words = self.characters = self.longest = 0
        self.lengths = np.zeros(_LONGEST_COUNTED + 1, dtype=np.int64)

    def add(self, texts: Sequence[str], lengths: np.ndarray) -> None:
        self.words += sum(len(text.split()) for text in texts)
        self.characters += sum(map(len, texts))
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        clipped = np.minimum(lengths, _LONGEST_COUNTED)
        self.lengths += np.bincount(clipped, minlength=len(self.lengths))

    def percentile(self, share: float) -> int:
        """The length that this share of the sentences does not exceed."""
        below = np.cumsum(self.lengths)
        return int(np.searchsorted(below, share * below[-1]))

    def report(self, language: str, high: int) -> SideReport:
        """The counts as a report. `high` is the length that the equal bins of the histogram should reach."""
        tokens = int((self.lengths * np.arange(len(self.lengths))).sum())
        return SideReport(
            language=language,
            words=self.words,
            characters=self.characters,
            tokens=tokens,
            mean=tokens / max(1, int(self.lengths.sum())),
            median=self.percentile(0.5),
            percentile_99=self.percentile(0.99),
            longest=self.longest,
            histogram=histogram(self.lengths, high),
        )


def histogram(counts: np.ndarray, high: int, bins: int = 12) -> tuple[tuple[int, int | None, int], ...]:
    """Bins of one round width up to `high`, then one bin for all longer sentences. Empty sentences have their
    own bin."""
    widths = (scale * step for scale in (10**n for n in range(9)) for step in (1, 2, 5))
    width = next(width for width in widths if width * bins >= high)
    lows = range(1, max(high, 1) + 1, width)
    rows: list[tuple[int, int | None, int]] = [
        (low, low + width - 1, int(counts[low : low + width].sum())) for low in lows
    ]
    if counts[0]:
        rows.insert(0, (0, 0, int(counts[0])))
    above = lows[-1] + width
    if counts[above:].any():
        rows.append((above, None, int(counts[above:].sum())))
    return tuple(rows)


def analyse(
    sources: Sequence[SourceConfig],
    *,
    test: Sequence[SourceConfig] = (),
    src_lang: str = "src",
    tgt_lang: str = "tgt",
    clean: CleanConfig | None = None,
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
    lines: str | None = None,
    show_line: ShowLine | None = None,
    progress: StageProgress | None = None,
    watch: Watch | None = None,
    suspects: bool = True,
) -> CorpusReport:
    """Read a corpus and report on it, in bounded memory. Looking for `suspects` takes the most time.

    Without `tokenizers`, tokens are counted with a vocabulary trained on a sample. With `lines`, the pairs to
    which that reason applies are passed to `show_line`. `watch` sees every pair.
    """
    clean = clean or CleanConfig()
    report = progress or (lambda *_: None)
    # Find duplicates among all pairs, even if they would not be dropped.
    data = DataConfig(tuple(sources), src_lang=src_lang, tgt_lang=tgt_lang)
    if data.text:
        raise UserError(f"{sources[0].files[0]}: this is text, and the report is about pairs; give pairs")
    leaks = Leaks(test, src_lang, tgt_lang) if test else None
    with scratch_directory() as directory:
        scanned = scan(data, directory, report, watch=watch)
        judge = (
            judge_of(scanned, report, (src_lang, tgt_lang)) if suspects else Judge((), (src_lang, tgt_lang))
        )
        near = near_duplicates(scanned, directory)
        src_tokenizer, tgt_tokenizer = tokenizers or _quick_tokenizer(scanned, report)
        corpora = []
        paths = [directory / name for name in ("src.json", "tgt.json")]
        for tokenizer, path in zip((src_tokenizer, tgt_tokenizer), paths, strict=True):
            tokenizer.save(path)
        with open_workers(paths, scanned.pairs) as workers:
            encoders = Encoders.of(src_tokenizer, tgt_tokenizer, clean, workers)
            analysis = _Analysis(clean, leaks, lines, show_line, judge, near)
            for source in sources:
                before = analysis.pairs
                chunks = _chunks(read_pairs(source, src_lang, tgt_lang))
                for chunk, lengths in with_lengths(chunks, encoders):
                    analysis.add(source.files[0], chunk, lengths, scanned)
                    report("count", analysis.pairs, scanned.pairs)
                corpora.append((" ".join(source.files), analysis.pairs - before))
    high = max(analysis.src.percentile(0.99), analysis.tgt.percentile(0.99))
    return CorpusReport(
        corpora=tuple(corpora),
        pairs=analysis.pairs,
        src=analysis.src.report(src_lang, high),
        tgt=analysis.tgt.report(tgt_lang, high),
        found=analysis.found,
        dropped=analysis.dropped,
        kept=analysis.pairs - sum(analysis.dropped.values()),
        overlap=leaks.report() if leaks is not None else None,
        rules=(*judge.kinds, "near_duplicate"),
        examples={kind: tuple(rows) for kind, rows in analysis.examples.items() if rows},
    )


class _Analysis:
    """Counts collected while the corpus is read."""

    def __init__(
        self,
        clean: CleanConfig,
        leaks: Leaks | None,
        lines: str | None,
        show_line: ShowLine | None,
        judge: Judge,
        near: np.ndarray,
    ) -> None:
        self._clean, self._leaks, self._judge, self._near = clean, leaks, judge, near
        self.examples: dict[str, list[tuple[str, str, str]]] = {kind: [] for kind in SUSPECTS}
        self._lines, self._show_line = lines, show_line
        self.pairs = 0
        self.src, self.tgt = _SideCounts(), _SideCounts()
        self.found: dict[str, int] = dict.fromkeys(REASONS, 0)
        self.dropped: dict[str, int] = dict.fromkeys(REASONS, 0)

    def add(
        self, name: str, pairs: list[Pair], lengths: tuple[np.ndarray, np.ndarray], scanned: Scan
    ) -> None:
        """Count the next pairs, which belong to the file `name`. `lengths` are their token counts per
        side."""
        here = slice(self.pairs, self.pairs + len(pairs))
        src_lengths, tgt_lengths = lengths
        self.src.add([pair.src for pair in pairs], src_lengths)
        self.tgt.add([pair.tgt for pair in pairs], tgt_lengths)
        self.pairs += len(pairs)
        applies = self._conditions(pairs, scanned.codes[here], src_lengths, tgt_lengths)
        applies["near_duplicate"] = self._near[here] == code_of("near_duplicate")
        for kind, flagged in self._judge.flags(pairs).items():
            applies[kind] = flagged & ~applies["empty"] & ~applies["copy"]
        undecided = np.ones(len(pairs), dtype=bool)
        for reason in CHECK_ORDER:
            self.found[reason] += int(applies[reason].sum())
            if self._drops(reason):
                self.dropped[reason] += int((applies[reason] & undecided).sum())
                undecided &= ~applies[reason]
        for kind, rows in self.examples.items():
            for index in np.flatnonzero(applies[kind])[: _EXAMPLES - len(rows)]:
                pair = pairs[index]
                texts = pair.src[:_SHOWN_CHARACTERS], pair.tgt[:_SHOWN_CHARACTERS]
                rows.append((f"{name}:{pair.line}", *texts))
        if self._leaks is not None:
            filled = np.flatnonzero(~applies["empty"])
            src_hashes, tgt_hashes = scanned.src_hashes[here][filled], scanned.tgt_hashes[here][filled]
            leaking = self._leaks.look_at([pairs[i] for i in filled], src_hashes, tgt_hashes)
            applies[OVERLAP] = np.isin(np.arange(len(pairs)), filled[leaking])
        if self._show_line is not None and self._lines is not None:
            for index in np.flatnonzero(applies[self._lines]):
                self._show_line(f"{name}:{pairs[index].line}", pairs[index])

    def _conditions(
        self, pairs: list[Pair], codes: np.ndarray, src_lengths: np.ndarray, tgt_lengths: np.ndarray
    ) -> dict[str, np.ndarray]:
        """For each reason, which pairs it applies to."""
        empty = codes == EMPTY
        by_length = length_codes(src_lengths, tgt_lengths, self._clean)
        conditions = {
            "empty": empty,
            "copy": ~empty & np.array([is_copy(pair.src, pair.tgt) for pair in pairs]),
            "duplicate": codes == DUPLICATE,
        }
        for code in (TOO_LONG, RATIO):
            conditions[reason_of(code)] = ~empty & (by_length == code)
        return conditions

    def _drops(self, reason: str) -> bool:
        asked = self._clean.dropped_suspects
        optional = {kind: kind in asked for kind in SUSPECTS}
        optional |= {"copy": self._clean.drop_copies, "duplicate": self._clean.drop_duplicates}
        return optional.get(reason, True)


def _quick_tokenizer(scanned: Scan, progress: StageProgress) -> tuple[Tokenizer, Tokenizer]:
    """A tokenizer like that of a default run, trained on less text."""
    if scanned.characters == 0:  # an empty corpus: nothing to train on or to count
        tokenizer = Tokenizer.train([], TokenizerConfig(kind="byte"))
    else:
        pairs = sample_of(scanned, progress, _SAMPLE_CHARACTERS)
        texts = chain.from_iterable((pair.src, pair.tgt) for pair in pairs)
        tokenizer = Tokenizer.train(texts, TokenizerConfig())
    return tokenizer, tokenizer


def _chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while chunk := list(islice(pairs, _CHUNK)):
        yield chunk
