"""Translate a corpus into a file, line by line, in constant memory; resumes after an interruption
(`journal.py`).

Lines are translated in chunks of a fixed size, each sorted by length. A killed job resumes after the last
complete chunk and produces the same bytes as an uninterrupted one. A file that was started with another
model, search or text is refused.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import to_dict
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, SentenceProgress, Translator
from dragoman.runs.directory import Run
from dragoman.runs.identity import identity, refuse_other
from dragoman.runs.journal import CorpusPiece, Done, write_pieces
from dragoman.text.context import in_documents, sentence_of
from dragoman.text.segment import one_line

LINES_AT_ONCE = 1024
"""Lines that are sorted by length and translated together; an interruption loses at most these, and on a
cluster those of every chunk that it is at."""


@dataclass(frozen=True)
class CorpusTask:
    """Definition of the job: equal tasks give equal files."""

    search: SearchConfig
    text: str
    """Identifies the lines: a hash of their file, or the fingerprint of a prepared corpus."""
    max_tokens: int
    """Longer lines are not translated, because training would drop such pairs."""
    prefix: str = ""
    """Put before every translation that is not empty."""

    def described(self, translator: Translator) -> dict[str, Any]:
        """As stored in the journal."""
        own = {"text": self.text, "max_tokens": self.max_tokens, "prefix": self.prefix}
        context = {} if translator.context is None else {"context": to_dict(translator.context)}
        search = {f"search.{name}": value for name, value in to_dict(self.search).items()}
        return {**identity(translator), **own, **context, **search}


Spread = Callable[[CorpusTask, Iterator[list[str]], int], Iterator[CorpusPiece]]
"""The pieces of chunks, in their order, where others make them; and how many lines were before these."""


@dataclass(frozen=True)
class CorpusWork:
    """What a machine does for a job: it opens the runs, and translates chunk by chunk."""

    runs: tuple[Path, ...]
    checkpoint: str
    device: str
    task: CorpusTask
    batch_tokens: int
    identity: Mapping[str, list[str]]
    """Of the translator that the job was begun with."""

    def open(self) -> Callable[[Sequence[str | None]], CorpusPiece]:
        from dragoman.runs.opening import open_translator

        translator = open_translator([Run.open(path) for path in self.runs], self.checkpoint, self.device)
        refuse_other(self.runs[0], self.identity, identity(translator))
        return lambda texts: _translate(translator, texts, self.task, self.batch_tokens)


def translate_corpus(
    translator: Translator,
    lines: Iterable[str],
    out: Path,
    task: CorpusTask,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: SentenceProgress | None = None,
    total: int = 0,
    spread: Spread | None = None,
) -> Done:
    """Write the translation of each line to `out`; continue an interrupted call. A blank line ends a
    document, for a translator that reads the sentences before."""

    def pieces(done: Done) -> Iterator[CorpusPiece]:
        begun = done.lines

        def report(now: int, _of: int) -> None:
            if progress:
                progress(begun + now, total)

        context = 0 if translator.context is None else translator.context.source
        chunks = _chunks(itertools.islice(in_documents(lines, context), begun, None))
        for piece in (
            spread(task, chunks, begun)
            if spread
            else (_translate(translator, chunk, task, batch_tokens, report) for chunk in chunks)
        ):
            yield piece
            begun += piece[1].lines
            if spread:
                report(0, 0)

    return write_pieces(out, task.described(translator), pieces)


def _translate(
    translator: Translator,
    texts: Sequence[str | None],
    task: CorpusTask,
    batch_tokens: int,
    report: SentenceProgress | None = None,
) -> CorpusPiece:
    """A text is None if it has to be left out."""
    lines = [text or "" for text in texts]
    sizes = [len(ids) for ids in translator.src_tokenizer.encode_batch(list(map(sentence_of, lines)))]
    cuts = translator.cut_source is not None
    asked = [place for place, size in enumerate(sizes) if cuts or size <= task.max_tokens]
    found = translator.hypotheses(
        [lines[place] for place in asked], search=task.search, batch_tokens=batch_tokens, progress=report
    )
    outputs = [""] * len(lines)
    reasons: list[str] = []
    for place, (best, *_) in zip(asked, found, strict=True):
        text = one_line(best.text)
        outputs[place] = f"{task.prefix}{text}" if text else ""
        reasons.append(best.finish_reason)
    counts = Done(
        lines=len(lines),
        too_long=len(lines) - len(asked),
        cut_off=reasons.count("length"),
        loops=reasons.count("loop"),
        failed=texts.count(None),
    )
    return "".join(f"{text}\n" for text in outputs).encode(), counts


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(lines, LINES_AT_ONCE)):
        yield chunk
