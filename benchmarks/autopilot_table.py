"""The table of `benchmarks/autopilot.py`, from the results that there are."""

from typing import Any

from autopilot_tasks import HELD_OUT, TASKS, TUNED, UNSEEN, Task

ARMS: dict[str, tuple[str, ...]] = {
    "default": (),
    "search": (),
    "hand": (),
    "old": (),
    "lstm": ("model.preset=lstm",),
    "convs2s": ("model.preset=convs2s",),
}
"""What is compared, with the overrides of each."""
_FELL = 3.0
"""Points."""


def table(found: list[dict[str, Any]]) -> str:
    """A table for each device, number of cores and number of minutes."""
    parts = ["# What the autopilot reaches\n"]
    for key in sorted({_setting(row) for row in found}):
        own = [row for row in found if _setting(row) == key]
        device, cores, minutes = key
        where = f"{cores} cores of a CPU" if device == "cpu" else device
        parts += [f"## {minutes:g} minutes a task on {where}\n", *_rows(own), ""]
    return "\n".join(parts)


def _setting(row: dict[str, Any]) -> tuple[str, int, float]:
    return row["device"], row.get("cores", 0), row["minutes"]


def _best_by_hand(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Of several settings by hand, the one that was best on the validation set."""
    return max(rows, key=lambda row: row.get("best_valid", -1.0), default=None)


def _rows(own: list[dict[str, Any]]) -> list[str]:
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in own)]
    by_key = {
        (name, arm): _best_by_hand([row for row in own if (row["task"], row["arm"]) == (name, arm)])
        for name in TASKS
        for arm in arms
    }
    rows = []
    for title, tasks in (
        ("Tasks that rules were tuned on", TUNED),
        ("Other tasks", HELD_OUT),
        ("Many kinds", UNSEEN),
    ):
        results = {name: {arm: by_key[name, arm] for arm in arms} for name in tasks}
        if any(any(own.values()) for own in results.values()):
            rows += [f"{title}:", "", *_scores(tasks, arms, results), ""]
    falls = [
        f"{row['task']} ({row['arm']}): {row['best_valid']:.1f} → {row['last_valid']:.1f}"
        for row in own
        if "best_valid" in row and row["best_valid"] - row["last_valid"] > _FELL
    ]
    if falls:
        told = f"Worse at the end than at the best validation by more than {_FELL:g} points"
        rows.append(f"\n{told}: {'; '.join(falls)}.")
    late = [f"{row['task']} ({row['arm']})" for row in own if row["train_seconds"] > 61 * row["minutes"] + 2]
    if late:
        rows.append(f"\nLonger than their minutes, start of Python counted in: {'; '.join(late)}.")
    return rows


def _scores(
    tasks: dict[str, Task], arms: list[str], found: dict[str, dict[str, dict[str, Any] | None]]
) -> list[str]:
    rows = [
        "| task | metric | " + " | ".join(arms) + " | published |",
        "|---|---|" + "---|" * (len(arms) + 1),
    ]
    sums: dict[str, list[float]] = {arm: [] for arm in arms}
    for name, task in tasks.items():
        results = found[name]
        if not any(results.values()):
            continue
        cells = []
        for arm, result in results.items():
            value = result.get(task.metric) if result else None
            cells.append("" if result is None else "failed" if value is None else f"{value:.1f}")
            if all(r is not None and task.metric in r for r in results.values()) and value is not None:
                sums[arm].append(value)
        rows.append(f"| {name} | {task.metric} | {' | '.join(cells)} | {task.published} |")
    count = len(next(iter(sums.values()), []))
    if count:
        means = " | ".join(f"**{sum(values) / count:.1f}**" for values in sums.values())
        rows.append(f"| mean of {count} | | {means} | |")
    return rows
