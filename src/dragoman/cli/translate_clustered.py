"""`dragoman translate --cluster`: lines to the machines of a cluster, and their translations in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.cli.beside import TermsOption, asks_with_terms
from dragoman.cli.clustered import cluster_at, identity_of, parts_on
from dragoman.cli.output import WrittenAs, WrittenLines
from dragoman.cli.translators import Asked, Opened
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.cli.translate import GivenConstraints
    from dragoman.decode.confidence import Calibration
    from dragoman.runs.journal import CorpusPiece, Done
    from dragoman.text.glossary import GlossaryEntry


def refuse(opened: Opened, given: Mapping[str, Any]) -> None:
    """What goes on one machine alone."""
    if names := [name for name, value in given.items() if value]:
        raise UserError(f"--cluster: {', '.join(names)} only on one machine so far; leave one of them out")
    if opened.context:
        raise UserError(
            "--cluster: sentences are translated without those before them so far; give --no-context too"
        )


class NumberedLine(NamedTuple):
    number: int
    text: str
    prefix: str
    """Of its translation."""


def numbered_lines(lines: Iterable[str], constraints: "GivenConstraints") -> Iterator[NumberedLine]:
    for number, line in enumerate(lines, 1):
        own = constraints.prefixes(1)
        yield NumberedLine(number, line, own[0] if own else "")
    constraints.finish()


@dataclass(frozen=True)
class TranslateWork:
    """What a machine does with some lines."""

    asked: Asked
    how: Mapping[str, Any]
    """Arguments of `Translator.hypotheses`."""
    entries: "tuple[GlossaryEntry, ...]"
    terms: TermsOption | None
    written: WrittenAs
    calibration: "Calibration | None"
    below: float | None

    def using(self, opened: Opened) -> Callable[[Sequence[NumberedLine | None]], WrittenLines]:
        """The lines to write for some lines; None stands for one that has to be left out."""
        from dragoman.cli.confidence import Trust
        from dragoman.text.glossary import Glossary

        glossary = Glossary(self.entries) if self.entries else None
        ask = asks_with_terms(partial(opened.translator.hypotheses, **self.how), opened, glossary, self.terms)
        own, written = self.how, self.written
        more = own["align"] or own["forbidden"] or glossary or self.calibration or written.json_lines
        quick = opened.fast and not more and written.n_best == 1
        write = written.newlines.writer(written.alone)

        def found(lines: Sequence[NumberedLine | None]) -> WrittenLines:
            base = next((line.number - place for place, line in enumerate(lines) if line), 1)
            given = [line or NumberedLine(base + place, "", "") for place, line in enumerate(lines)]
            texts, prefixes = [line.text for line in given], [line.prefix for line in given]
            if quick and not any(prefixes):
                # The best texts alone are quicker to have than their scores.
                asked = {name: own[name] for name in ("search", "protect", "batch_tokens")}
                best = [write(text) for text in opened.translator.translate(texts, **asked)]
                return WrittenLines(best, len(texts), failed=lines.count(None))
            rows = ask(texts, prefixes=prefixes if any(prefixes) else None)
            trust = None if self.calibration is None else Trust(self.calibration, self.below)
            out: list[str] = []
            for line, hypotheses in zip(given, rows, strict=True):
                out += written.lines(line.number, line.text, hypotheses, glossary, trust)
            unproven = sum(hypotheses[0].exact is False for hypotheses in rows)
            flagged = 0 if trust is None else trust.flagged
            return WrittenLines(out, len(rows), unproven, flagged, lines.count(None))

        return found


def translate_on(
    address: str,
    device: str,
    work: TranslateWork,
    opened: Opened,
    constraints: "GivenConstraints",
    lines: Iterable[str],
    files: tuple[Path | None, Path | None],
) -> WrittenLines:
    """What `translate` writes. A file made from a file continues where it was interrupted."""
    from dragoman.cli.output import write_lines
    from dragoman.cli.synthetic import corpus_progress
    from dragoman.cli.texts import chunks
    from dragoman.data.formats import read_lines
    from dragoman.files import hash_file
    from dragoman.runs.journal import replace_by_pieces

    work.using(opened)  # a mistake is told before anything starts
    (file, output), prefix, given = files, constraints.prefix, numbered_lines(lines, constraints)
    with cluster_at(address) as cluster:
        spread = partial(parts_on, cluster, device, work, opened)
        if output is None or file is None or (output.exists() and not output.is_file()):
            return write_lines(spread(chunks(given)), output)
        total = sum(1 for _ in read_lines(file))
        with corpus_progress(total) as progress:

            def pieces(done: "Done") -> "Iterator[CorpusPiece]":
                before = done.lines
                for _ in range(before):
                    next(given, None)
                for part in spread(chunks(given), before):
                    yield as_piece(part)
                    before += part.lines
                    progress(before, total)

            task = {"text": hash_file(file), **identity_of(opened, work.asked), **described(work)}
            if prefix and prefix.startswith("@"):
                task["prefix"] = hash_file(Path(prefix[1:]))
            done = replace_by_pieces(output, task | {"prefix": task.get("prefix", prefix)}, pieces)
    return WrittenLines([], done.lines, done.unproven, done.flagged, done.failed)


def described(work: Any) -> dict[str, Any]:
    """What a result depends on, beside the text and the weights."""
    return {field.name: repr(getattr(work, field.name)) for field in fields(work)}


def as_piece(part: WrittenLines) -> "CorpusPiece":
    from dragoman.runs.journal import Done

    _, lines, unproven, flagged, failed = part
    counts = Done(lines=lines, unproven=unproven, flagged=flagged, failed=failed)
    return "".join(f"{line}\n" for line in part.out).encode(), counts
