"""What a person wants to know when training is over: in a few lines on the terminal, and in report.md.

Everything follows from what the run has written down and from translations of validation sentences. What
would help is derived from numbers that are shown beside it, and said as no more than that.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from dragoman.data.corpus import Prepared
from dragoman.evaluate.mistakes import by_known_words, find_kinds, sentence_scores, slices_by_length
from dragoman.evaluate.search_errors import evenly
from dragoman.files import explained, read_regular, replace_file
from dragoman.learning import learning_of
from dragoman.runs.config import LOWER_IS_BETTER
from dragoman.runs.directory import Outcome, Run
from dragoman.runs.records import is_perfect, metric_name, metric_value, scored
from dragoman.training.contest_record import read_contest
from dragoman.training.display import duration

REPORT, PLAN = "report.md", "plan.json"
_PLAN_LIMIT = 1 << 20
_WORDS_FROM = 10_000
"""Number of training pairs whose words count as known."""
_LATE = 0.75
_STILL_RISING, _LARGE_GAP, _FEW_EPOCHS = 0.02, 0.5, 4


@dataclass(frozen=True)
class ValidationTranslations:
    """Validation sentences and their translations by the best checkpoint."""

    sources: list[str]
    references: list[str]
    outputs: list[str]


def write_reasons(directory: Path, reasons: Sequence[tuple[str, str]], speed: float = 1.0) -> None:
    """Store the choices and their reasons for the report."""
    path = directory / PLAN
    with explained(path):
        replace_file(
            path,
            json.dumps({"reasons": list(reasons), "speed": speed}, ensure_ascii=False, indent=1).encode(),
        )


def read_speed(directory: Path) -> float:
    """The machine's relative speed when the choices were made; 1 if it was not measured."""
    try:
        found = json.loads(read_regular(directory / PLAN, _PLAN_LIMIT))["speed"]
    except (OSError, ValueError, KeyError, TypeError):
        return 1.0
    return found if isinstance(found, float) and 0 < found <= 1 else 1.0


def read_reasons(directory: Path) -> list[tuple[str, str]]:
    """The stored choices; empty if nothing was chosen or the file is damaged."""
    try:
        found = json.loads(read_regular(directory / PLAN, _PLAN_LIMIT))["reasons"]
        return [(str(choice), str(reason)) for choice, reason in found]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def report_rows(
    run: Run, outcome: Outcome, seconds: float, said: ValidationTranslations | None
) -> list[tuple[str, str]]:
    """The report in a few rows, for the terminal."""
    metric, best = run.config.train.metric, run.best
    rows = [("training", f"{outcome.update:,} updates in {duration(seconds)}; {outcome.reason}")]
    if best is not None:
        value = scored(best["metric"], best["value"])
        rows.append(("best", f"checkpoint {best['name']}, {value} on the validation set"))
    if said is not None:
        rows.append(("search", run.config.search.summary))
        kinds = find_kinds(said.sources, said.references, said.outputs)
        counts = ", ".join(f"{len(kind.places)} {kind.name}" for kind in kinds) or "no common kind of mistake"
        if metric == "exact" and not _wrong(said, metric):
            counts = "none wrong"
        rows.append(("mistakes", f"of {len(said.sources)} translations{_wrong(said, metric)}: {counts}"))
    rows += [
        ("advice", line) for line in advice_after_training(run.metrics, metric, run.config.train.max_minutes)
    ]
    return [*rows, ("report", str(run.directory / REPORT))]


def _wrong(said: ValidationTranslations, metric: str) -> str:
    """The number of wrong outputs, if the metric is exact match; includes outputs of no common kind."""
    if metric != "exact":
        return ""
    wrong = sum(score < 100 for score in sentence_scores(said.references, said.outputs, exact=True))
    return f", {wrong} wrong" if wrong else ""


def write_report(
    run: Run, prepared: Prepared, outcome: Outcome, seconds: float, said: ValidationTranslations | None
) -> None:
    parts = [
        [f"# {run.directory.name}", ""],
        _table(("", ""), [*report_rows(run, outcome, seconds, said)[:-1], *_data_rows(prepared)]),
        _chosen_part(run),
        _contest_part(run),
        _curve_part(run),
        _objective_part(run),
        _mistakes_part(run, prepared, said),
        _examples_part(said),
        _next_part(run),
    ]
    path = run.directory / REPORT
    with explained(path):
        replace_file(path, "\n".join(line for part in parts for line in part).encode())


def advice_after_training(
    records: Sequence[Mapping[str, Any]], metric: str, minutes: float | None
) -> list[str]:
    """The most promising next step, judged by the end of the learning curve and the gap between training and
    validation loss."""
    valid = [r for r in records if r["kind"] == "valid" and r.get(metric) is not None]
    learnt = [r for r in records if r["kind"] == "train" and r.get("nll") is not None]
    if len(valid) < 4 or not learnt:
        return ["there were too few validations to say what would help"]
    sign = -1 if metric in LOWER_IS_BETTER else 1
    late = valid[int(_LATE * (len(valid) - 1)) :]
    best = max(valid, key=lambda r: sign * r[metric])
    then, now = late[0][metric], max(late, key=lambda r: sign * r[metric])[metric]
    if is_perfect(metric, best[metric]):
        best_value = scored(metric, best[metric])
        return [f"{best_value} on the validation set cannot be improved: try other data (dragoman evaluate)"]
    if learnt[-1].get("epoch", _FEW_EPOCHS) < _FEW_EPOCHS and now == best[metric]:
        more = "more minutes" if minutes else "more updates"
        return [f"training is in epoch {learnt[-1]['epoch']} of its data: {more} would probably help most"]
    gain = sign * (now - then) / max(abs(now), 1e-9)
    rise = f"from {metric_value(metric, then)} to {metric_value(metric, now)}"
    told = f"{metric_name(metric)} went {rise} in the last quarter"
    lines = []
    if gain > _STILL_RISING:
        more = "more minutes" if minutes else "more updates"
        lines.append(f"{told}: {more} would probably help")
    else:
        lines.append(f"{told}: more time alone would probably change little")
    gap = valid[-1]["loss"] - learnt[-1]["nll"]
    losses = f"loss {learnt[-1]['nll']:.2f} on training data, {valid[-1]['loss']:.2f} on validation data"
    if gap > _LARGE_GAP:
        lines.append(
            f"{losses}: it knows its training pairs much better than others, so more pairs would help"
        )
    elif gain <= _STILL_RISING:
        lines.append(f"{losses}: it has not learnt its pairs by heart, so a larger model may help")
    return lines


def _data_rows(prepared: Prepared) -> list[tuple[str, str]]:
    dropped = {reason: count for reason, count in prepared.dropped.items() if count}
    rows = [("pairs", f"{len(prepared.train):,} for training, {len(prepared.valid):,} for validation")]
    if dropped:
        share = sum(dropped.values()) / (sum(dropped.values()) + len(prepared.train))
        told = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
        rows.append(("left out", f"{told} ({share:.1%})"))
    return rows


def _chosen_part(run: Run) -> list[str]:
    reasons = read_reasons(run.directory)
    return ["## What was chosen, and why", "", *_table(("choice", "reason"), reasons)] if reasons else []


def _contest_part(run: Run) -> list[str]:
    contest = read_contest(run.directory)
    if contest is None:
        return []
    title = f"## The contest ({run.config.train.metric} at the end of each round)"
    return [title, "", *_table(("contender", "what it changed, and how it went"), contest.told())]


def _curve_part(run: Run) -> list[str]:
    metric = run.config.train.metric
    valid = [r for r in run.metrics if r["kind"] == "valid"]
    lines = ["## Learning curve", ""]
    for name in dict.fromkeys((metric, "loss")):
        points = [(float(r["update"]), float(r[name])) for r in valid if r.get(name) is not None]
        if drawn := text_curve(points):
            title = f"{metric_name(name)} on the validation set by update"
            lines += [title, "", "```text", *drawn, "```", ""]
    return lines if len(lines) > 2 else []


def _objective_part(run: Run) -> list[str]:
    """The objective's own section about the best validation."""
    best = run.best
    valid = [r for r in run.metrics if r["kind"] in ("valid", "averaged")]
    own = [r for r in valid if best is not None and r.get(best["metric"]) == best["value"]]
    return learning_of(run.config).report(run.config, own[-1]) if own else []


def _mistakes_part(run: Run, prepared: Prepared, said: ValidationTranslations | None) -> list[str]:
    if said is None:
        return []
    exact = run.config.train.metric == "exact"
    scores = sentence_scores(said.references, said.outputs, exact)
    kinds = find_kinds(said.sources, said.references, said.outputs)
    rows = [(kind.name, kind.rule, str(len(kind.places))) for kind in kinds]
    slices = slices_by_length(said.sources, scores) + by_known_words(
        said.sources, scores, _known_words(prepared)
    )
    unit = "exact match, %" if exact else "mean chrF"
    return [
        f"## What it gets wrong ({len(said.sources)} validation sentences)",
        "",
        *(
            _table(("kind", "rule", "sentences"), rows)
            if rows
            else ["No common kind of mistake was found.", ""]
        ),
        *_table(
            ("source", "sentences", unit), [(s.name, str(s.sentences), f"{s.score:.1f}") for s in slices]
        ),
    ]


def _known_words(prepared: Prepared) -> set[str]:
    store, tokenizer = prepared.train, prepared.src_tokenizer
    places = evenly(len(store), _WORDS_FROM)
    return {word for place in places for word in tokenizer.decode(store.src(place).tolist()).split()}


def _examples_part(said: ValidationTranslations | None) -> list[str]:
    """Examples: the worst, a median one, and the best that is not an exact match."""
    if said is None:
        return []
    scores = sentence_scores(said.references, said.outputs, exact=False)
    wrong = [n for n in range(len(scores)) if said.outputs[n] != said.references[n]]
    order = sorted(wrong, key=lambda number: scores[number])
    chosen = dict.fromkeys(order[place] for place in (0, len(order) // 2, -1)) if order else {}
    rows = [(_cell(said.sources[n]), _cell(said.references[n]), _cell(said.outputs[n])) for n in chosen]
    return ["## Examples", "", *_table(("source", "reference", "output"), rows)] if rows else []


def _next_part(run: Run) -> list[str]:
    directory, train, best = quote(str(run.directory)), run.config.train, run.best
    commands = []
    next_step = learning_of(run.config).next_step
    if next_step:
        commands.append(next_step.split(":")[-1].strip().format(run=directory))
    if run.config.purpose == "translate":
        commands.append(f"dragoman evaluate {directory} TEST_FILES")
    if best is not None and is_perfect(best["metric"], best["value"]):
        pass  # more training cannot improve it
    elif train.max_minutes is not None:
        commands.append(f"dragoman resume {directory} train.max_minutes={2 * train.max_minutes:g}")
    elif train.max_updates is not None:
        commands.append(f"dragoman resume {directory} train.max_updates={2 * train.max_updates}")
    return ["## What to type next", "", "```sh", *commands, "```", ""]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [*("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines), ""]


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    return (flat if len(flat) <= 200 else flat[:199] + "…").replace("\\|", "|").replace("|", "\\|")


_HEIGHT, _WIDTH = 8, 56


def text_curve(
    points: Sequence[tuple[float, float]], height: int = _HEIGHT, width: int = _WIDTH
) -> list[str]:
    """Draw (x, y) points as lines of text, with the range of y on the left and that of x below."""
    if len(points) < 2:
        return []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high, first, last = min(ys), max(ys), min(xs), max(xs)
    rows = [[" "] * width for _ in range(height)]
    for x, y in points:
        column = round((width - 1) * (x - first) / ((last - first) or 1))
        row = round((height - 1) * (y - low) / ((high - low) or 1))
        rows[height - 1 - row][column] = "●"
    labels = [""] * height
    labels[0], labels[-1] = _label(high), _label(low)
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} │{''.join(row).rstrip()}" for label, row in zip(labels, rows, strict=True)]
    begin, end = f"{first:,.0f}", f"{last:,.0f}"
    lines.append(f"{'':>{margin}} └{'─' * width}")
    lines.append(f"{'':>{margin}}  {begin}{end:>{width - len(begin)}}")
    return lines


def _label(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
