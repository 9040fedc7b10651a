"""Where results go: standard output, or files that appear as a whole or not at all."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import typer

from dragoman.errors import UserError
from dragoman.files import explained, replacing
from dragoman.text.segment import escaped, one_line

if TYPE_CHECKING:
    from dragoman.cli.beside import GivenMemory
    from dragoman.cli.confidence import Trust
    from dragoman.text.glossary import Glossary


_TAB_CHECK = "\tcheck"


class Newlines(StrEnum):
    """By default newlines are kept for one text or a prompt, and are spaces where lines are counted."""

    auto = "auto"
    space = "space"
    escape = "escape"
    keep = "keep"

    def writer(self, alone: bool) -> Callable[[str], str]:
        keeps = alone if self is Newlines.auto else self is Newlines.keep
        return escaped if self is Newlines.escape else str if keeps else one_line


class WrittenLines(NamedTuple):
    """Lines to write for some lines of the input."""

    out: list[str]
    lines: int
    unproven: int = 0
    """Translations of an exhaustive search that may not be the optimum."""
    flagged: int = 0
    """Translations whose confidence is too low."""
    failed: int = 0
    """Lines that were left out."""


def write_lines(parts: Iterable[WrittenLines], path: Path | None) -> WrittenLines:
    """Write the lines of all parts; return their counts."""
    counts = [0] * 4
    with open_output(path) as write:
        for part in parts:
            for line in part.out:
                write(line)
            counts = [a + b for a, b in zip(counts, part[1:], strict=True)]
    return WrittenLines([], *counts)


ENDINGS = (".png", ".svg", ".tsv")
"""Of a picture and its numbers."""


@contextmanager
def open_output(path: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that writes one line as UTF-8."""
    if path is None:
        out = sys.stdout.buffer

        def to_stdout(line: str) -> None:
            out.write(line.encode("utf-8") + b"\n")
            out.flush()

        yield to_stdout
        return
    with _whole_file(path) as file:

        def to_file(line: str) -> None:
            file.write(line.encode("utf-8") + b"\n")

        yield to_file


def write_file(path: Path, data: bytes) -> None:
    with _whole_file(path) as file:
        file.write(data)


def output_stem(out: Path) -> Path:
    """The path without an ending of ours, in a directory that can be written to."""
    stem = out.with_suffix("") if out.suffix in ENDINGS else out
    if not stem.name or stem.name == ".." or stem.is_dir():
        raise UserError(
            f"--out {out}: this is a directory; give a name for the files, as in {out / 'lengths'}"
        )
    if not stem.parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {stem.parent}")
    if not os.access(stem.parent, os.W_OK):
        raise UserError(f"--out {out}: the directory {stem.parent} cannot be written to")
    return stem


def write_beside(stem: Path, contents: dict[str, bytes]) -> None:
    """Files of one name, by their endings, and a word about each."""
    for ending, content in contents.items():
        path = stem.with_name(stem.name + ending)
        write_file(path, content)
        typer.echo(f"  written to {path}" if ending == ENDINGS[0] else f"             {path}")


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """A device or a named pipe, such as /dev/stdout, is written to as it is; a file is replaced."""
    with explained(path):
        is_special = path.exists() and not path.is_file() and not path.is_dir()
        with path.open("wb") if is_special else replacing(path) as file:
            yield file


class Alone:
    """Counts translations that had to be made without the sentences before them."""

    def __init__(self) -> None:
        self.count = self.of = 0

    def note(self, found: Any) -> None:
        self.of += bool(found.tokens)  # blank lines have none
        self.count += found.alone

    def tell(self) -> None:
        if self.count:
            typer.echo(
                f"{self.count} of {self.of} sentences were translated without those before them: with them, "
                "the output had lost or gained a separator",
                err=True,
            )


@dataclass(frozen=True)
class WrittenAs:
    """How `translate` writes hypotheses: as JSON, or the best of each sentence, or its n best with their
    number and score."""

    n_best: int
    json_lines: bool
    newlines: Newlines
    alone: bool
    """One text, for one reader."""

    def lines(
        self,
        number: int,
        source: str,
        hypotheses: list[Any],
        glossary: "Glossary | None" = None,
        trust: "Trust | None" = None,
        memory: "GivenMemory | None" = None,
    ) -> list[str]:
        written = self.newlines.writer(self.alone)
        confidence, is_low = (None, False) if trust is None else trust.note(source, hypotheses[0])
        if self.json_lines:
            confidences = None if trust is None else [trust.of(source, one) for one in hypotheses]
            terms = None if glossary is None else applied_terms(glossary, source, hypotheses[0].text)
            beside = None if memory is None else memory.found(source)
            return [as_json(source, hypotheses, terms, confidences, beside)]
        if self.n_best == 1:
            suffix = "" if confidence is None else f"\t{confidence:.2f}{_TAB_CHECK if is_low else ''}"
            return [f"{_with_alignment(hypotheses[0], written)}{suffix}"]
        rows = []
        for hypothesis in hypotheses:
            suffix = "" if trust is None else f"\t{trust.of(source, hypothesis):.2f}"
            rows.append(f"{number}\t{hypothesis.score:.5f}\t{_with_alignment(hypothesis, written)}{suffix}")
        return rows


def _with_alignment(hypothesis: Any, written: Callable[[str], str]) -> str:
    """The text, and its alignment where it has one."""
    text = written(hypothesis.text)
    if hypothesis.alignment is None:
        return text
    from dragoman.data.alignment.links import pharaoh

    return f"{text}\t{pharaoh(hypothesis.alignment)}"


def as_json(
    source: str,
    hypotheses: list[Any],
    glossary: list[dict[str, Any]] | None = None,
    confidences: Sequence[float] | None = None,
    memory: dict[str, Any] | None = None,
) -> str:
    """One line; `glossary` are the terms of the source, with what the best translation calls them; `memory`
    is the sentence of a memory that was used."""
    sure = [None] * len(hypotheses) if confidences is None else confidences
    translations = [
        {
            "text": hypothesis.text,
            "score": hypothesis.score,
            "log_prob": hypothesis.log_prob,
            "finish_reason": hypothesis.finish_reason,
            "pieces": [*hypothesis.pieces, "</s>"] if hypothesis.token_scores else [],
            "token_scores": list(hypothesis.token_scores),
            **({} if confidence is None else {"confidence": confidence}),
            **({"alone": True} if hypothesis.alone else {}),
            **({} if hypothesis.exact is None else {"exact": hypothesis.exact}),
            **({} if hypothesis.alignment is None else {"alignment": hypothesis.alignment}),
            **({} if hypothesis.protection is None else {"protection": hypothesis.protection}),
        }
        for hypothesis, confidence in zip(hypotheses, sure, strict=True)
    ]
    entry: dict[str, Any] = {"source": source, "translations": translations}
    if glossary is not None:
        entry["glossary"] = glossary
    if memory is not None:
        entry["memory"] = memory
    if hypotheses[0].trace is not None:
        entry["trace"] = hypotheses[0].trace.as_dict()["steps"]
    return json.dumps(entry, ensure_ascii=False)


def applied_terms(glossary: "Glossary", source: str, text: str) -> list[dict[str, Any]]:
    """The glossary's terms in a source, each with the variant that the translation has, or a form of it."""
    from dragoman.text.word_boundaries import has_phrase
    from dragoman.text.word_forms import form_in

    return [
        {
            "source": match.entry.source,
            "start": match.start,
            "end": match.end,
            "target": next((target for target in match.targets if has_phrase(text, target)), None)
            or next((form for target in match.targets if (form := form_in(text, target))), None),
        }
        for match in glossary.matches(source)
    ]
