"""`dragoman corpus`: what is in parallel files, and what training would leave out of them."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dragoman.autopilot.profile import Profile
    from dragoman.data.config import SourceConfig
    from dragoman.data.report import CorpusReport, SideReport
    from dragoman.text.tokenizer import Tokenizer

_BAR = 24
_EXPLAIN = {
    "empty": "one side has no text",
    "copy": "untranslated: both sides are the same",
    "duplicate": "the same pair occurred before",
    "too_long": "more than {max_length} tokens on a side",
    "ratio": "one side has over {max_ratio:g} times the tokens of the other",
}


class Reason(StrEnum):
    empty = "empty"
    copy = "copy"
    duplicate = "duplicate"
    too_long = "too_long"
    ratio = "ratio"
    overlap = "overlap"


def corpus(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="Source and target file (any number of such pairs), tables, memories."
        ),
    ],
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES", help="Test files, to look for in the corpus: test.en test.de, or a table."
        ),
    ] = None,
    lines: Annotated[
        Reason | None,
        typer.Option(
            help="Print the pairs with this fault, with file and line; overlap: those in the test set."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
    format: Annotated[
        str, typer.Option(help="auto, plain, tsv, csv, jsonl, parquet, tmx, xliff, po, mo or zip.")
    ] = "auto",
    src: Annotated[
        str | None, typer.Option(help="Source column, by name or number; its language in a memory.")
    ] = None,
    tgt: Annotated[str | None, typer.Option(help="Target column, or language.")] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Run or tokenizer file that counts the tokens.  [default: learnt here]"),
    ] = None,
    max_length: Annotated[int, typer.Option(help="Most tokens a side.")] = 256,
    max_ratio: Annotated[float, typer.Option(help="Highest ratio of the two sides, in tokens.")] = 9.0,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Do not count them out.")
    ] = False,
    drop_copies: Annotated[bool, typer.Option("--drop-copies", help="Count untranslated pairs out.")] = False,
) -> None:
    """Show what is in a parallel corpus: lengths, faults, overlap with a test set, what training drops."""
    from dataclasses import replace

    from dragoman.autopilot.profiler import Profiler
    from dragoman.data.config import CleanConfig
    from dragoman.data.formats import Pair, group_files
    from dragoman.data.languages import languages_of
    from dragoman.data.report import analyse
    from dragoman.errors import UserError

    if lines is Reason.overlap and not test:
        raise UserError("--lines overlap: name the test set with --test")

    def corpora(names: list[str]) -> "tuple[SourceConfig, ...]":
        return tuple(replace(source, src=src, tgt=tgt) for source in group_files(names, format))

    sources = corpora(files)
    clean = CleanConfig(max_length, max_ratio, not keep_duplicates, drop_copies)
    languages = languages_of(sources[0]) or ("src", "tgt")

    shown = 0

    def show_line(origin: str, pair: Pair) -> None:
        nonlocal shown
        shown += 1
        typer.echo(_line_as_json(origin, pair.src, pair.tgt) if json else _line(origin, pair.src, pair.tgt))

    profiler = Profiler()
    with _progress() as progress:
        report = analyse(
            sources,
            test=corpora(test) if test else (),
            src_lang=languages[0],
            tgt_lang=languages[1],
            clean=clean,
            tokenizers=_load_tokenizers(tokenizer) if tokenizer else None,
            lines=lines,
            show_line=show_line if lines else None,
            progress=progress,
            watch=profiler.add,
        )
    if lines:
        found = f"{shown:,} pair{'s' * (shown != 1)}" if shown else "no pair"
        typer.echo(f"{found} with the fault {lines.value}", err=True)
        return
    profile = profiler.profile(report.found["duplicate"])
    if json:
        typer.echo(_as_json(report, profile))
        return
    learnt = "a vocabulary learnt from the corpus itself; --tokenizer RUN takes that of a run"
    counted_by = f"the vocabulary of {tokenizer}" if tokenizer else learnt
    _print_report(report, profile, _explanations(max_length, max_ratio), counted_by)


def _load_tokenizers(path: Path) -> "tuple[Tokenizer, Tokenizer]":
    from dragoman.cli.tokenizers import Side, tokenizer_file
    from dragoman.text.tokenizer import Tokenizer

    src, tgt = (Tokenizer.load(tokenizer_file(path, side)) for side in (Side.src, Side.tgt))
    return src, tgt


def _explanations(max_length: int, max_ratio: float) -> dict[str, str]:
    return {
        reason: text.format(max_length=max_length, max_ratio=max_ratio) for reason, text in _EXPLAIN.items()
    }


def _line(origin: str, src: str, tgt: str) -> str:
    """Place, source and target with tabs between them; what would break the line is escaped."""

    def visible(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
        return escaped.replace("\r", "\\r")

    return "\t".join((origin, visible(src), visible(tgt)))


def _line_as_json(origin: str, src: str, tgt: str) -> str:
    import json

    return json.dumps({"origin": origin, "src": src, "tgt": tgt}, ensure_ascii=False)


def _as_json(report: "CorpusReport", profile: "Profile") -> str:
    import json
    from dataclasses import asdict

    from dragoman.cli.corpus_profile import plain_profile

    plain = {**asdict(report), "profile": plain_profile(profile)}
    return json.dumps(plain, ensure_ascii=False, indent=1)


def _print_report(
    report: "CorpusReport", profile: "Profile", explanations: dict[str, str], counted_by: str
) -> None:
    from dragoman.cli.corpus_profile import profile_rows

    src, tgt = report.src.language, report.tgt.language
    names = [[files, f"{pairs:,}"] for files, pairs in report.corpora]
    if len(names) > 1:
        names.append(["all", f"{report.pairs:,}"])
    _table("Corpus", ["files", "pairs"], names)
    rows = [
        [label, *(_number(getattr(side, field)) for side in (report.src, report.tgt))]
        for label, field in (
            ("words", "words"),
            ("characters", "characters"),
            ("tokens", "tokens"),
            ("mean length", "mean"),
            ("median", "median"),
            ("99% are up to", "percentile_99"),
            ("longest", "longest"),
        )
    ]
    _table("Size (lengths in tokens)", ["", src, tgt], rows)
    _table(
        "Sentences by length in tokens",
        ["tokens", src, "", tgt, ""],
        _histogram(report.src, report.tgt),
        (2, 4),
    )
    _table("What it is like", ["", src, tgt], profile_rows(profile))
    faults = [
        [
            reason,
            f"{found:,}",
            _share(found, report.pairs),
            f"{report.dropped[reason]:,}",
            explanations[reason],
        ]
        for reason, found in report.found.items()
    ]
    dropped = report.pairs - report.kept
    faults.append(
        ["dropped", "", _share(dropped, report.pairs), f"{dropped:,}", "by the first reason that applies"]
    )
    faults.append(
        ["kept", "", _share(report.kept, report.pairs), f"{report.kept:,}", "what training would use"]
    )
    _table("What training would drop", ["reason", "found", "", "dropped", ""], faults, (4,))
    if report.overlap is not None:
        exact, normalised, total = report.overlap.exact, report.overlap.normalised, report.overlap.pairs
        overlaps = []
        for label, field in (
            (f"{src} sentence", "src"),
            (f"{tgt} sentence", "tgt"),
            ("both, as a pair", "pair"),
        ):
            counts = getattr(exact, field), getattr(normalised, field)
            overlaps.append([label, *(cell for n in counts for cell in (f"{n:,}", _share(n, total)))])
        title = f"Test pairs found in the corpus (of {total:,})"
        _table(title, ["", "exact", "", "normalised", ""], overlaps)
    typer.echo(f"Tokens are counted with {counted_by}.")
    if any(report.found.values()):
        typer.echo("See the pairs themselves with  --lines REASON")


def _histogram(src: "SideReport", tgt: "SideReport") -> list[list[str]]:
    """The two histograms side by side; their steps are the same, but either may lack the outermost."""
    sides = [{(low, high): count for low, high, count in side.histogram} for side in (src, tgt)]
    most = max(max(side.values(), default=0) for side in sides)
    rows = []
    for low, high in sorted({*sides[0], *sides[1]}, key=lambda step: step[0]):
        label = f"{low}+" if high is None else f"{low}" if high == low else f"{low}–{high}"
        counts = [side.get((low, high), 0) for side in sides]
        rows.append([label, *(cell for n in counts for cell in (f"{n:,}", _bar(n, most)))])
    return rows


def _bar(count: int, most: int) -> str:
    if not sys.stdout.isatty():
        return "#" * round(_BAR * count / max(1, most))
    eighths = round(8 * _BAR * count / max(1, most))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _number(value: float) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _share(part: int, whole: int) -> str:
    """A percentage in which a few are not none, and nearly all are not all."""
    if part == 0:
        return ""
    shown = f"{100 * part / whole:.2f}%"
    if shown == "0.00%":
        return "<0.01%"
    return ">99.99%" if shown == "100.00%" and part < whole else shown


def _table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()
) -> None:
    """A table: rich on a terminal, aligned plain text in a pipe. Numbers to the right, first column left."""
    justify = ["left" if column == 0 or column in left else "right" for column in range(len(header))]
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name, side in zip(header, justify, strict=True):
            table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    everything = [header, *rows] if any(header) else rows
    widths = [max(len(row[column]) for row in everything) for column in range(len(header))]
    typer.echo(title)
    for row in everything:
        cells = (
            cell.ljust(width) if side == "left" else cell.rjust(width)
            for cell, width, side in zip(row, widths, justify, strict=True)
        )
        typer.echo(f"  {'  '.join(cells)}".rstrip())
    typer.echo("")


def _progress() -> Any:
    """A bar on a terminal; nothing in a pipe."""
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress

    @contextmanager
    def bars() -> Any:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as display:
            tasks: dict[str, Any] = {}

            def progress(stage: str, done: int, total: int | None) -> None:
                if stage not in tasks:
                    tasks[stage] = display.add_task(stage, total=total)
                display.update(tasks[stage], completed=done, total=total)

            yield progress

    return bars()
