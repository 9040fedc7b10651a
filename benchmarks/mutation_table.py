"""The results as Markdown, joined with what was judged by reading."""

import json
import platform
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from mutation_faults import Fault

JUDGED = Path(__file__).parent / "mutations_judged.yaml"
VERDICTS = ("equivalent", "survivor")


def read_results(file: Path) -> dict[str, dict[str, Any]]:
    """The last result of every fault, by its key."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["key"]: row for row in rows}


@cache
def _judged() -> list[dict[str, str]]:
    entries = yaml.safe_load(JUDGED.read_text(encoding="utf-8")) or []
    for entry in entries:
        assert entry["verdict"] in VERDICTS, f"{JUDGED.name}: {entry['verdict']} is no verdict"
    return entries


def judge(row: dict[str, Any]) -> dict[str, str] | None:
    """What is known about a fault: the entry of the same file, line and change."""
    for entry in _judged():
        if all(entry[name] == row[name] for name in ("file", "line", "change")):
            return entry
    return None


def table(cache: Path, drawn: dict[str, list[Fault]], seed: int, command: str) -> str:
    """One line a room, and what was not found with its reason. `drawn`: the faults of each room."""
    totals: Counter[str] = Counter()
    lines = ["| room | faults | equivalent | found as the suite stood | by tests written since | survived |"]
    lines[0] += " found of those that matter |"
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    lists: dict[str, list[str]] = {"equivalent": [], "survived": []}
    for room, faults in drawn.items():
        counts: Counter[str] = Counter()
        results = read_results(cache / f"results-{room}-{seed}.jsonl")
        for row in (results[fault.key] for fault in faults if fault.key in results):
            entry = None if row["outcome"] == "found" else judge(row)
            outcome = "equivalent" if entry and entry["verdict"] == "equivalent" else row["outcome"]
            counts["found later" if outcome == "found" and row.get("new_tests") else outcome] += 1
            if outcome != "found":
                lists[outcome].append(_told(row, entry))
        if counts:
            lines.append(_counted(room, counts))
        totals += counts
    lines.append(_counted("**all**", totals))
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, pytest {pytest.__version__}"
    return "\n".join(
        [
            "# Faults that the suite notices",
            "",
            "Small faults, drawn by a seed and made one at a time; for each one the tests run that execute",
            "its line. «Equivalent» are faults that change no promised behaviour, judged by reading.",
            "",
            f"    {command}",
            "",
            f"Seed {seed}; {versions}, on a CPU.",
            "",
            *lines,
            "",
            "## Survived",
            "",
            *(lists["survived"] or ["None."]),
            "",
            "## Equivalent",
            "",
            *(lists["equivalent"] or ["None."]),
            "",
        ]
    )


def _counted(room: str, counts: Counter[str]) -> str:
    names = ("equivalent", "found", "found later", "survived")
    equivalent, found, later, survived = (counts[name] for name in names)
    matter = found + later + survived
    shares = [f"{100 * part / matter:.1f}%" if matter else "–" for part in (found, found + later)]
    cells = (room, counts.total(), equivalent, found, later, survived, " → ".join(shares))
    return f"| {' | '.join(map(str, cells))} |"


def _told(row: dict[str, Any], entry: dict[str, str] | None) -> str:
    reason = entry["reason"] if entry else f"Not judged; {row['by'].replace('no test', 'no recorded test')}."
    return f"- `{row['file']}` `{row['line']}`: `{row['change']}`. {reason}"
