"""The tables that `dragoman corpus` prints."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dragoman.autopilot.profile import Profile
    from dragoman.data.report import CorpusReport, SideReport

_BAR = 24
_SHOWN = 70
"""Characters of an example."""


def print_report(
    report: "CorpusReport",
    profile: "Profile",
    explanations: dict[str, str],
    counted_by: str,
    columns: Sequence[str] = (),
) -> None:
    from dragoman.cli.corpus_profile import pair_rows, profile_rows
    from dragoman.data.config import SUSPECTS

    src, tgt = report.src.language, report.tgt.language
    names = [[files, f"{pairs:,}"] for files, pairs in report.corpora]
    if len(names) > 1:
        names.append(["all", f"{report.pairs:,}"])
    _table("Corpus", ["files", "pairs"], names)
    if columns:
        typer.echo("".join(f"columns: {told}\n" for told in columns))
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
    _table("What each side is like", ["", src, tgt], profile_rows(profile))
    _table("What they have in common", ["", ""], pair_rows(profile))
    faults = [
        [
            reason,
            f"{found:,}",
            share(found, report.pairs),
            f"{report.dropped[reason]:,}",
            explanations[reason],
        ]
        for reason, found in report.found.items()
        if found or reason not in SUSPECTS
    ]
    dropped = report.pairs - report.kept
    faults.append(
        ["dropped", "", share(dropped, report.pairs), f"{dropped:,}", "by the first reason that applies"]
    )
    faults.append(
        ["kept", "", share(report.kept, report.pairs), f"{report.kept:,}", "what training would use"]
    )
    _table("What training would drop", ["reason", "found", "", "dropped", ""], faults, (4,))
    _print_suspects(report)
    if report.overlap is not None:
        exact, normalised, total = report.overlap.exact, report.overlap.normalised, report.overlap.pairs
        overlaps = []
        for label, field in (
            (f"{src} sentence", "src"),
            (f"{tgt} sentence", "tgt"),
            ("both, as a pair", "pair"),
        ):
            counts = getattr(exact, field), getattr(normalised, field)
            overlaps.append([label, *(cell for n in counts for cell in (f"{n:,}", share(n, total)))])
        title = f"Test pairs found in the corpus (of {total:,})"
        _table(title, ["", "exact", "", "normalised", ""], overlaps)
    typer.echo(f"Tokens are counted with {counted_by}.")
    if any(report.found.values()):
        typer.echo("--lines REASON prints the pairs themselves, as in  --lines duplicate")


def _print_suspects(report: "CorpusReport") -> None:
    """Examples of pairs that look wrong."""
    rows = [
        [kind, origin, *(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in texts)]
        for kind, examples in report.examples.items()
        for origin, *texts in examples
    ]
    if rows:
        _table(
            "Suspicious pairs, for example (--strict or data.clean.drop_suspects leaves them out)",
            ["", "", "", ""],
            rows,
            (1, 2, 3),
        )
    rules = ", ".join(rule.replace("_", " ") for rule in report.rules)
    if rules:
        none = "" if any(report.found.get(rule, 0) for rule in report.rules) else "; none found"
        typer.echo(f"Suspicious pairs were looked for by these rules: {rules}{none}.")


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


def share(part: int, whole: int) -> str:
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
