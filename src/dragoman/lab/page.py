"""The page of one experiment, as Markdown with its figure beside it and as a single HTML file."""

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from dragoman.lab.experiment import LECTURES, Experiment, Verdict
from dragoman.lab.statistics import Numbers, shown


@dataclass(frozen=True)
class ExperimentReport:
    """All that a page says of one experiment."""

    experiment: Experiment
    quick: bool
    numbers: Numbers
    verdict: Verdict
    seconds: float
    """Seconds of training, as recorded by the runs, and of measuring."""
    runs: Sequence[tuple[str, int, int, float, str]]
    """Label, seed, updates, seconds, directory."""
    made_with: Mapping[str, str]
    png: bytes
    changes: Sequence[str] = ()
    look: str = ""
    """A command that looks into one of its runs."""

    @property
    def commands(self) -> list[str]:
        """The one that made the page, one that changes something, one that looks inside."""
        return [command for command in dict.fromkeys((self.command, self.another, self.look)) if command]

    @property
    def command(self) -> str:
        return " ".join(
            ["dragoman lab", self.experiment.name, *self.changes, *(["--quick"] if self.quick else [])]
        )

    @property
    def another(self) -> str:
        """A command that changes something."""
        usual = "train.max_updates=500" if self.experiment.trains else None
        change = self.experiment.change or usual
        return f"dragoman lab {self.experiment.name} {change}" if change else self.command


def columns_of(numbers: Numbers) -> list[str]:
    return list(dict.fromkeys(column for cells in numbers.values() for column in cells))


def table_of(numbers: Numbers) -> list[list[str]]:
    """A header, and a row for each row of numbers."""
    columns = columns_of(numbers)
    rows = [
        [label, *(shown(cells[column]) if column in cells else "" for column in columns)]
        for label, cells in numbers.items()
    ]
    return [["", *columns], *rows]


def sections(report: ExperimentReport) -> list[tuple[str, str]]:
    experiment = report.experiment
    lectures = "; ".join(f"{number}, {LECTURES[number]}" for number in (experiment.lecture, *experiment.also))
    parts = [
        ("Claim", experiment.claim),
        ("What was done", experiment.how),
        ("Verdict", f"{report.verdict}"),
        ("Rule of the verdict, fixed before the first run", experiment.rule_in_words),
        ("Literature", experiment.literature),
        ("Remark", experiment.remark),
        ("Lecture", lectures),
    ]
    return [(title, text) for title, text in parts if text]


def spread_note(numbers: Numbers) -> str:
    seeds = max((len(values) for cells in numbers.values() for values in cells.values()), default=1)
    return f"± is the half width of a 95% interval of the mean over {seeds} seeds." if seeds > 1 else ""


def made_with_line(report: ExperimentReport) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.made_with.items())
    size = "quick" if report.quick else "full"
    return (
        f"Size: {size}. Training and measuring took {report.seconds / 60:.1f} minutes. Made with {versions}."
    )


def markdown(report: ExperimentReport) -> str:
    experiment = report.experiment
    lines = [f"# {experiment.name}", ""]
    for title, text in sections(report):
        lines += [f"**{title}.** {text}", ""]
    lines += [f"![{experiment.claim}](figure.png)", "", f"Numbers: {experiment.cell}.", ""]
    table = table_of(report.numbers)
    lines += [_row(table[0]), _row(["---"] * len(table[0])), *map(_row, table[1:]), ""]
    if note := spread_note(report.numbers):
        lines += [note, ""]
    lines += ["```sh", *report.commands, "```", ""]
    if report.runs:
        lines += [_row(["run", "seed", "updates", "seconds", "directory"]), _row(["---"] * 5)]
        lines += [_row([a, str(b), f"{c:,}", f"{d:.1f}", f"`{e}`"]) for a, b, c, d, e in report.runs]
        lines += [""]
    return "\n".join([*lines, made_with_line(report), ""])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def article(report: ExperimentReport) -> str:
    """The page as a chapter of HTML."""
    experiment, said = report.experiment, html.escape
    parts = [f'<article id="{said(experiment.name)}"><h2>{said(experiment.name)}</h2>']
    for title, text in sections(report):
        kind = ' class="verdict"' if title == "Verdict" else ""
        parts.append(f"<p{kind}><b>{said(title)}.</b> {said(text)}</p>")
    image = base64.b64encode(report.png).decode()
    parts.append(f'<img alt="{said(experiment.claim)}" src="data:image/png;base64,{image}">')
    parts.append(f"<p>Numbers: {said(experiment.cell)}. {said(spread_note(report.numbers))}</p>")
    parts.append(_html_table(table_of(report.numbers)))
    parts.append(f"<pre>{said(chr(10).join(report.commands))}</pre>")
    if report.runs:
        rows = [[a, str(b), f"{c:,}", f"{d:.1f}", e] for a, b, c, d, e in report.runs]
        table = _html_table([["run", "seed", "updates", "seconds", "directory"], *rows])
        parts.append(f"<details><summary>{len(rows)} runs</summary>{table}</details>")
    return "\n".join([*parts, f"<p class=small>{said(made_with_line(report))}</p></article>"])


def _html_table(table: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in table[1:])
    return f'<div class="wide"><table><thead>{row(table[0], "th")}</thead><tbody>{body}</tbody></table></div>'


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h2 { border-bottom: 1px solid #d0d7de; padding-bottom: .2rem; margin-top: 3rem; }
img { max-width: min(100%, 46rem); height: auto; }
.verdict { background: #eef4fb; border-left: 4px solid #0072b2; padding: .5rem .8rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { border: 1px solid #d0d7de; padding: .15rem .5rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } .small { color: #57606a; font-size: .85rem; }
pre { background: #f6f8fa; padding: .6rem; overflow-x: auto; }
</style></head><body>
$body
</body></html>
""")


def html_page(title: str, body: str) -> str:
    return _PAGE.substitute(title=html.escape(title), body=body)
