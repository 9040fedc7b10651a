"""`dragoman translate`: text in, translations out, line by line in the same order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    OutputOrOut,
    Precision,
    RunOrExport,
    SearchFields,
    ToLanguage,
    ZeroShot,
)
from dragoman.cli.output import WrittenLines
from dragoman.errors import UserError
from dragoman.text.normalize import one_line

if TYPE_CHECKING:
    from dragoman.cli.translators import Asked, Opened
    from dragoman.decode.confidence import Calibration
    from dragoman.decode.search.config import SearchConfig
    from dragoman.text.glossary import Glossary, GlossaryEntry


_TAB_CHECK = "\tcheck"


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
    n_best: Annotated[int | None, typer.Option(help="Translations of each sentence.")] = None,
    alpha: Alpha = None,
    prefix: Annotated[
        str | None, typer.Option(help="How translations begin: text, or @FILE (lines).")
    ] = None,
    prefix_open: Annotated[
        bool, typer.Option("--prefix-open", help="The last word of a prefix may be incomplete.")
    ] = False,
    glossary: Annotated[Path | None, typer.Option(help="TSV or CSV: source term, target term (a|b).")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="Phrase to avoid, or @FILE (repeatable).")] = None,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Use the lexical shortlist: faster.")
    ] = False,
    fields: SearchFields = None,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines with scores and pieces.")] = False,
    record: Annotated[bool, typer.Option("--record", help="With --json: include the search trace.")] = False,
    protect: Annotated[
        bool, typer.Option(help="Keep URLs, e-mail addresses, placeholders and markup.")
    ] = True,
    protect_numbers: Annotated[
        bool,
        typer.Option("--protect-numbers", help="Keep numbers with signs or many digits too."),
    ] = False,
    align: Annotated[bool, typer.Option("--align", help="Word alignment after each: TAB 0-0 1-2.")] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Confidence after each: TAB 0.93.")
    ] = False,
    flag_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="Mark the less confident ones: TAB check.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print each translation while it is found.")
    ] = False,
    batch_tokens: BatchTokensIfGiven = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    precision: Precision = "float32",
    cluster: Cluster = None,
) -> None:
    """Translate sentences, a file with one sentence a line, or whole documents."""
    from dragoman.cli.confidence import calibration, tell_flagged
    from dragoman.cli.file_names import check_input, documents_among
    from dragoman.cli.output import write_lines
    from dragoman.cli.searching import with_changes
    from dragoman.cli.texts import chunks, input_lines
    from dragoman.cli.translators import Asked
    from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS

    if record and not json_lines:
        raise UserError("--record: only --json has a place for it; give both")
    if input is not None:
        check_input(input)
    documents = documents_among(texts or [], output)
    lines = input_lines(texts, input)
    constraints = GivenConstraints(prefix, glossary, forbid)
    asked = Asked(run, tuple(also or ()), checkpoint, precision, to, source, zero_shot)
    opened = asked.open("cpu" if cluster else device)
    if opened.zero_shot:
        typer.echo(f"zero-shot: no pairs of {'-'.join(opened.languages)} were trained", err=True)
    numbers = {"beam": beam, "n_best": n_best, "alpha": alpha}
    flags = {"record": record or None, "shortlist": shortlist or None}
    settings = with_changes(opened.translator.search, method, fields or [], **numbers, **flags)
    sure = None
    if confidence or flag_below is not None:
        if also:
            raise UserError("--confidence: it is calibrated for one run; leave out --with")
        sure = calibration(run, opened, checkpoint, device)
    kinds = (ALL_KINDS if protect_numbers else DEFAULT_KINDS) if protect else ()
    if opened.fast and glossary:
        raise UserError("--glossary: CTranslate2 cannot insist on terms; translate with the run itself")
    work = TranslateWork(
        asked,
        settings,
        batch_tokens,
        kinds,
        () if constraints.glossary is None else constraints.glossary.entries,
        tuple(constraints.forbidden),
        prefix_open,
        align,
        json_lines,
        sure,
        flag_below,
    )
    whole_only = {"--json": json_lines, "--align": align, "--prefix": prefix, "--cluster": cluster}
    if documents:
        from dragoman.cli.translate_other import translate_documents

        translate_documents(work, opened, documents, whole_only | {"--stream": stream})
        return
    if stream:
        from dragoman.cli.translate_other import stream_lines

        whole_only |= {"--output": output, "--confidence": sure, "--glossary": glossary, "--forbid": forbid}
        stream_lines(work, opened, lines, whole_only | {"--n-best": settings.n_best > 1})
        return
    given = constraints.with_lines(lines)
    if cluster:
        from dragoman.cli.clustered import translate_on

        done = translate_on(cluster, device, work, opened, given, output, (input, prefix))
    else:
        done = write_lines(map(work.using(opened), chunks(given)), output)
    if done.unproven:
        from dragoman.cli.translate_other import warn_of_unproven

        warn_of_unproven(done.unproven, done.lines, settings)
    if flag_below is not None:
        tell_flagged(done.flagged, done.lines, flag_below)


class GivenConstraints:
    """`--prefix`, `--glossary` and `--forbid`. `@FILE` stands for the lines of a file."""

    def __init__(self, prefix: str | None, glossary: Path | None, forbid: Sequence[str] | None) -> None:
        self.prefix = prefix
        self.glossary = _load(glossary) if glossary else None
        self.forbidden = [phrase for given in forbid or () for phrase in _phrases(given)]
        self._lines = _lines(prefix) if prefix and prefix.startswith("@") else None

    def with_lines(self, lines: Iterable[str]) -> Iterator["NumberedLine"]:
        """Each line with its number, and the prefix of its translation."""
        number = 0
        for number, line in enumerate(lines, 1):
            prefix = self.prefix
            if self._lines is not None and (prefix := next(self._lines, None)) is None:
                raise UserError(f"--prefix {self.prefix}: it has fewer lines than there are texts")
            yield NumberedLine(number, line, prefix or "")
        if self._lines is not None and next(self._lines, None) is not None:
            raise UserError(f"--prefix {self.prefix}: it has more lines than there are texts")


def _load(path: Path) -> "Glossary":
    from dragoman.text.glossary import Glossary

    return Glossary.load(path)


def _phrases(given: str) -> list[str]:
    return [line for line in _lines(given) if line.strip()] if given.startswith("@") else [given]


def _lines(given: str) -> Iterator[str]:
    from dragoman.data.formats import read_lines

    return read_lines(given.removeprefix("@"))


class NumberedLine(NamedTuple):
    number: int
    text: str
    prefix: str
    """Of its translation."""


@dataclass(frozen=True)
class TranslateWork:
    """What is done with some lines: here, or on a machine of a cluster."""

    asked: "Asked"
    search: "SearchConfig"
    batch_tokens: int | None
    kinds: tuple[Any, ...]
    terms: "tuple[GlossaryEntry, ...]"
    forbidden: tuple[str, ...]
    prefix_open: bool
    align: bool
    json_lines: bool
    calibration: "Calibration | None"
    below: float | None

    def using(self, opened: "Opened") -> Callable[[Sequence[NumberedLine | None]], "WrittenLines"]:
        """The lines to write for some lines; None stands for one that has to be left out."""
        ask = self.best_of(opened)
        scored = self.json_lines or self.align or self.forbidden or self.calibration or self.search.n_best > 1

        def written(lines: Sequence[NumberedLine | None]) -> WrittenLines:
            base = next((line.number - place for place, line in enumerate(lines) if line), 1)
            given = [line or NumberedLine(base + place, "", "") for place, line in enumerate(lines)]
            texts, prefixes = [line.text for line in given], [line.prefix for line in given]
            if opened.fast and not scored and not any(prefixes):
                # The best texts alone are quicker to have than their scores.
                size = self.batch_tokens or opened.translator.default_batch_tokens
                found = opened.translator.translate(
                    texts, search=self.search, protect=self.kinds, batch_tokens=size
                )
                return WrittenLines([one_line(text) for text in found], len(texts), failed=lines.count(None))
            rows = ask(texts, prefixes=prefixes if any(prefixes) else None)
            return self._as_lines(given, rows, lines.count(None))

        return written

    def best_of(self, opened: "Opened") -> Callable[..., list[list[Any]]]:
        return partial(
            opened.translator.hypotheses,
            search=self.search,
            glossary=self.glossary,
            forbidden=list(self.forbidden),
            batch_tokens=self.batch_tokens or opened.translator.default_batch_tokens,
            protect=self.kinds,
            prefix_open=self.prefix_open,
            align=self.align,
        )

    @cached_property
    def glossary(self) -> "Glossary | None":
        if not self.terms:
            return None
        from dragoman.text.glossary import Glossary

        return Glossary(self.terms)

    def _as_lines(self, given: Sequence[NumberedLine], rows: list[list[Any]], failed: int) -> "WrittenLines":
        """As JSON, or the best of each sentence, or its n best with their number and score."""
        out: list[str] = []
        flagged = 0
        for line, hypotheses in zip(given, rows, strict=True):
            sures = [self._confidence(line.text, one) for one in hypotheses]
            low = self.below is not None and sures[0] is not None and sures[0] < self.below
            flagged += low
            if self.json_lines:
                from dragoman.cli.hypotheses import applied_terms, as_json

                best = hypotheses[0].text
                terms = None if self.glossary is None else applied_terms(self.glossary, line.text, best)
                out.append(as_json(line.text, hypotheses, terms, sures if self.calibration else None))
            elif self.search.n_best == 1:
                told = "" if sures[0] is None else f"\t{sures[0]:.2f}{_TAB_CHECK if low else ''}"
                out.append(f"{_with_alignment(hypotheses[0])}{told}")
            else:
                for one, sure in zip(hypotheses, sures, strict=True):
                    told = "" if sure is None else f"\t{sure:.2f}"
                    out.append(f"{line.number}\t{one.score:.5f}\t{_with_alignment(one)}{told}")
        unproven = sum(hypotheses[0].exact is False for hypotheses in rows)
        return WrittenLines(out, len(rows), unproven, flagged, failed)

    def _confidence(self, source: str, hypothesis: Any) -> float | None:
        return None if self.calibration is None else round(self.calibration.confidence(source, hypothesis), 4)


def _with_alignment(hypothesis: Any) -> str:
    """The text as one line, and its alignment where it has one."""
    text = one_line(hypothesis.text)
    if hypothesis.alignment is None:
        return text
    from dragoman.data.alignment.links import pharaoh

    return f"{text}\t{pharaoh(hypothesis.alignment)}"
