"""`dragoman translate`: text in, translations out, line by line in the same order."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import (
    Alpha,
    BatchTokensIfGiven,
    Beam,
    Checkpoint,
    Cluster,
    Device,
    FromLanguage,
    FurtherRuns,
    MemoryLeast,
    NewlinesOption,
    OutputOrOut,
    Precision,
    RunOrExport,
    SearchFields,
    TermsHow,
    ToLanguage,
    UseContext,
    ZeroShot,
)
from dragoman.cli.output import Newlines
from dragoman.errors import UserError
from dragoman.text.context import SIGN

if TYPE_CHECKING:
    from dragoman.cli.beside import GivenMemory
    from dragoman.cli.confidence import Trust
    from dragoman.cli.output import Alone, WrittenAs, WrittenLines
    from dragoman.cli.translate_clustered import TranslateWork
    from dragoman.cli.translators import Opened
    from dragoman.decode.search.config import SearchConfig
    from dragoman.text.glossary import Glossary, GlossaryEntry


def translate(
    run: RunOrExport,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, or documents; standard input by default."),
    ] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="File with one sentence a line.")
    ] = None,
    output: OutputOrOut = None,
    to: ToLanguage = None,
    source: FromLanguage = None,
    zero_shot: ZeroShot = False,
    also: FurtherRuns = None,
    method: Annotated[
        str | None, typer.Option(help="Search method: beam, exhaustive, sample or mbr.")
    ] = None,
    beam: Beam = None,
    n_best: Annotated[
        int | None, typer.Option(help="Translations of each: line number, score, text.")
    ] = None,
    alpha: Alpha = None,
    prefix: Annotated[
        str | None, typer.Option(help="How translations begin: text, or @FILE (lines).")
    ] = None,
    prefix_open: Annotated[
        bool, typer.Option("--prefix-open", help="The last word of a prefix may be incomplete.")
    ] = False,
    glossary: Annotated[
        Path | None, typer.Option(help="Terms as TSV or CSV: source, target (or a|b).")
    ] = None,
    terms: TermsHow = None,
    memory: Annotated[list[Path] | None, typer.Option(help="Translation memory (repeatable).")] = None,
    memory_least: MemoryLeast = None,
    forbid: Annotated[list[str] | None, typer.Option(help="Phrase to avoid, or @FILE (repeatable).")] = None,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Use the lexical shortlist: faster.")
    ] = False,
    fields: SearchFields = None,
    newlines: NewlinesOption = Newlines.auto,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines with scores and pieces.")] = False,
    record: Annotated[bool, typer.Option("--record", help="With --json: include the search trace.")] = False,
    protect: Annotated[
        bool, typer.Option(help="Keep URLs, e-mail addresses, placeholders and markup.")
    ] = True,
    protect_numbers: Annotated[
        bool, typer.Option("--protect-numbers", help="Keep numbers with signs or many digits too.")
    ] = False,
    align: Annotated[
        bool, typer.Option("--align", help="Add the word alignment, after a tab: 0-0 1-2.")
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add the confidence, after a tab: 0.93.")
    ] = False,
    flag_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="Add «check» where confidence is lower.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print each translation while it is found.")
    ] = False,
    context: UseContext = True,
    batch_tokens: BatchTokensIfGiven = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    precision: Precision = "float32",
    cluster: Cluster = None,
) -> None:
    """Translate sentences, a file with one sentence a line, or whole documents."""
    from dragoman.cli.beside import GivenMemory, asks_with_terms
    from dragoman.cli.confidence import Trust, calibration
    from dragoman.cli.output import WrittenAs
    from dragoman.cli.texts import check_input, documents_among, input_lines
    from dragoman.cli.translators import Asked, with_changes
    from dragoman.text.context import in_documents
    from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS

    if record and not json_lines:
        raise UserError("--record: only --json has a place for it; give both")
    if input is not None:
        check_input(input)
    documents = documents_among(texts or [], output)
    lines = input_lines(texts, input)
    constraints = GivenConstraints(prefix, glossary, forbid)
    asked = Asked(run, tuple(also or ()), checkpoint, precision, to, source, zero_shot, context)
    opened = asked.open("cpu" if cluster else device)
    if opened.zero_shot:
        typer.echo(f"zero-shot: no pairs of {'-'.join(opened.languages)} were trained", err=True)
    translator, size = opened.translator, batch_tokens or opened.translator.default_batch_tokens
    alone = output is None and (len(texts) == 1 if texts else input is None and sys.stdin.isatty())
    changes = {"beam": beam, "n_best": n_best, "alpha": alpha}
    changes |= {"record": record or None, "shortlist": shortlist or None}
    settings = with_changes(translator.search, method, fields or [], **changes)
    written = WrittenAs(settings.n_best, json_lines, newlines, alone)
    sure = None
    if confidence or flag_below is not None:
        if also:
            raise UserError("--confidence: it is calibrated for one run; leave out --with")
        sure = calibration(run, opened, checkpoint, device)
    trust = None if sure is None else Trust(sure, flag_below)
    kinds = (ALL_KINDS if protect_numbers else DEFAULT_KINDS) if protect else ()
    asking = {"search": settings, "forbidden": constraints.forbidden, "batch_tokens": size}
    how = {"protect": kinds, "prefix_open": prefix_open, "align": align}
    if cluster:
        from dragoman.cli.translate_clustered import TranslateWork, refuse, translate_on

        refuse(opened, {"documents": documents, "--stream": stream, "--memory": memory})
        work = TranslateWork(asked, asking | how, constraints.entries, terms, written, sure, flag_below)
        _tell(translate_on(cluster, device, work, opened, constraints, lines, (input, output)), work)
        return
    ask: Callable[..., list[list[Any]]] = partial(translator.hypotheses, **asking)
    known = None
    if glossary or terms or memory:
        ask = asks_with_terms(ask, opened, constraints.glossary, terms)
        known = GivenMemory(memory, memory_least, opened, align) if memory else None
        ask = ask if known is None else known.asks(ask)
    if documents:
        options = {"--json": json_lines, "--align": align, "--stream": stream, "--prefix": prefix}
        _translate_documents(documents, opened, partial(ask, protect=kinds or DEFAULT_KINDS), trust, options)
        return
    if stream:
        whole_only = {"--json": json_lines, "--align": align, "--output": output, "--prefix": prefix}
        whole_only |= {"--confidence": trust, "--glossary": glossary, "--memory": memory, "--forbid": forbid}
        _refuse_with_stream(whole_only | {"--n-best": settings.n_best > 1})
        _stream(translator, lines, settings, kinds, newlines.writer(alone))
        return
    if input is not None and opened.context:
        lines = in_documents(lines, opened.context)
    more = json_lines or align or prefix or forbid or glossary or known or trust or opened.context
    if opened.fast and not more and settings.n_best == 1:
        # The best texts alone are quicker to have than their scores.
        quick = partial(translator.translate, search=settings, protect=kinds, batch_tokens=size)
        _write_texts(quick, lines, output, newlines.writer(alone))
        return
    _write_hypotheses(partial(ask, **how), lines, output, constraints, settings, written, trust, known)
    if trust is not None:
        trust.tell()


class GivenConstraints:
    """`--prefix`, `--glossary` and `--forbid`. `@FILE` stands for the lines of a file."""

    def __init__(self, prefix: str | None, glossary: Path | None, forbid: Sequence[str] | None) -> None:
        self.prefix = prefix
        self.glossary = _load(glossary) if glossary else None
        self.forbidden = [phrase for given in forbid or () for phrase in _phrases(given)]
        self._lines = _lines(prefix) if prefix and prefix.startswith("@") else None

    def finish(self) -> None:
        """After the last text: no prefix may be left over."""
        if self._lines is not None and next(self._lines, None) is not None:
            raise UserError(f"--prefix {self.prefix}: it has more lines than there are texts")

    def prefixes(self, count: int) -> list[str] | None:
        """Those of the next `count` texts."""
        if self._lines is None:
            return [self.prefix] * count if self.prefix else None
        found = list(islice(self._lines, count))
        if len(found) < count:
            raise UserError(f"--prefix {self.prefix}: it has fewer lines than there are texts")
        return found

    @property
    def entries(self) -> "tuple[GlossaryEntry, ...]":
        return () if self.glossary is None else self.glossary.entries


def _load(path: Path) -> "Glossary":
    from dragoman.text.glossary import Glossary

    return Glossary.load(path)


def _phrases(given: str) -> list[str]:
    return [line for line in _lines(given) if line.strip()] if given.startswith("@") else [given]


def _lines(given: str) -> Iterator[str]:
    from dragoman.data.formats import read_lines

    return read_lines(given.removeprefix("@"))


def _write_texts(
    translated: Callable[[list[str]], list[str]],
    lines: Iterable[str],
    output: Path | None,
    written: Callable[[str], str],
) -> None:
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks

    with open_output(output) as write:
        for chunk in chunks(lines):
            for text in translated(chunk):
                write(written(text))


def _write_hypotheses(
    found: Callable[..., list[list[Any]]],
    lines: Iterable[str],
    output: Path | None,
    constraints: GivenConstraints,
    search: "SearchConfig",
    written: "WrittenAs",
    trust: "Trust | None",
    memory: "GivenMemory | None",
) -> None:
    from dragoman.cli.output import Alone, open_output
    from dragoman.cli.texts import chunks

    number = unproven = 0
    lone = Alone()
    with open_output(output) as write:
        for chunk in chunks(lines):
            rows = found(chunk, prefixes=constraints.prefixes(len(chunk)))
            for source, hypotheses in zip(chunk, rows, strict=True):
                source = source.rpartition(SIGN)[2]
                lone.note(hypotheses[0])
                number += 1
                unproven += hypotheses[0].exact is False
                for line in written.lines(number, source, hypotheses, constraints.glossary, trust, memory):
                    write(line)
        constraints.finish()
    lone.tell()
    if unproven:
        _warn_of_unproven(unproven, number, search)


def _tell(done: "WrittenLines", work: "TranslateWork") -> None:
    from dragoman.cli.confidence import tell_flagged

    if done.unproven:
        _warn_of_unproven(done.unproven, done.lines, work.how["search"])
    if work.below is not None:
        tell_flagged(done.flagged, done.lines, work.below)


def _warn_of_unproven(unproven: int, number: int, search: "SearchConfig") -> None:
    from dragoman.decode.search.config import ExhaustiveSearch

    assert isinstance(search, ExhaustiveSearch), "no other search proves anything"
    typer.echo(
        f"warning: {unproven} of {number} translations may not be the optimum: it was not proven within "
        f"{search.max_nodes:,} prefixes (search.max_nodes)",
        err=True,
    )


def _translate_documents(
    documents: Sequence[tuple[Path, Path]],
    opened: "Opened",
    found: Callable[[list[str]], list[list[Any]]],
    trust: "Trust | None",
    options: Mapping[str, Any],
) -> None:
    from dragoman.cli.documents import translate_files
    from dragoman.cli.output import Alone

    lone = Alone()
    refused = [name for name, given in options.items() if given]
    best = _best_texts(found, trust, lone)
    translate_files(documents, opened.languages, best, refused, opened.context)
    lone.tell()
    if trust is not None:
        trust.tell(listed=True)


def _best_texts(
    found: Callable[[list[str]], list[list[Any]]], trust: "Trust | None", lone: "Alone"
) -> Callable[[list[str]], list[str]]:
    def best(texts: list[str]) -> list[str]:
        rows = [best for best, *_ in found(texts)]
        for text, one in zip(texts, rows, strict=True):
            lone.note(one)
            if trust is not None:
                trust.note(text.rpartition(SIGN)[2], one)
        return [one.text for one in rows]

    return best


def _refuse_with_stream(whole_only: Mapping[str, Any]) -> None:
    if options := [name for name, given in whole_only.items() if given]:
        raise UserError(f"--stream: goes to standard output as plain text; leave out {', '.join(options)}")


def _stream(
    translator: Any,
    lines: Iterable[str],
    search: Any,
    kinds: Collection[Any],
    written: Callable[[str], str],
) -> None:
    """A text with spans to protect is printed when all of it is there: only then is their place known."""
    from itertools import chain

    from dragoman.text.spans import find

    out = sys.stdout.buffer
    for line in lines:
        if find(line, kinds):
            parts = iter(translator.translate([line], search=search, protect=kinds))
        else:
            parts = (part.text for part in translator.stream(line, search=search))
        for text in chain(map(written, parts), "\n"):
            out.write(text.encode("utf-8"))
            out.flush()
