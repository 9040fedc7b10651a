"""`dragoman.train`, `dragoman.resume` and `dragoman.load`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from dragoman.config import apply_overrides, to_dict
from dragoman.decode.translate import Translator
from dragoman.engines.manifest import is_export
from dragoman.errors import UserError
from dragoman.train.config import RunConfig, differences, resolve
from dragoman.train.display import Display, make_display
from dragoman.train.plan import Overrides, Plan, Source, as_assignments, make_plan
from dragoman.train.run import Run, ensemble
from dragoman.train.session import train_run

if TYPE_CHECKING:
    from dragoman.engines.ctranslate2 import Translator as FastTranslator

_FIXED = ("seed", "data", "tokenizer", "model", "train.batch_tokens")
"""What a run cannot change on its way: the weights belong to it, or the order of the data."""


def train(
    *sources: Source,
    out: str | Path | None = None,
    overrides: Overrides = (),
    valid: Sequence[str] = (),
    quiet: bool = False,
) -> Run:
    """Train on parallel files (`"a.en", "a.de"`), a table of pairs, a YAML recipe, or a mapping like one.

    What is not given is chosen from the data and the machine. `overrides` are strings such as
    `"model.num_layers=4"`, or a mapping of dotted names. A run that exists with the same configuration goes
    on where it stopped.
    """
    display = make_display(quiet)
    try:
        plan = make_plan(sources, display, out=Path(out) if out else None, overrides=overrides, valid=valid)
        display.table("Plan", plan.rows())
        return execute(plan, display)
    finally:
        display.close()


def execute(plan: Plan, display: Display) -> Run:
    """Make the run of a plan, or open the one there is, and train it."""
    run = Run.open(plan.out) if Run.exists(plan.out) else Run.create(plan.out, plan.config, plan.prepared)
    train_run(run, display)
    return run


def resume(run: str | Path | Run, overrides: Overrides = (), quiet: bool = False) -> Run:
    """Go on with a run. `overrides` may change how it is trained, not what it is."""
    opened = Run.open(run.directory if isinstance(run, Run) else run)
    changed = changed_config(opened, as_assignments(overrides))
    if differences(opened.config, changed):
        with opened.locked():
            opened.replace_config(changed)
    display = make_display(quiet)
    try:
        train_run(opened, display)
    finally:
        display.close()
    return opened


def changed_config(run: Run, assignments: Sequence[str]) -> RunConfig:
    changed = resolve(apply_overrides(to_dict(run.config), assignments))
    for field, old, new in differences(run.config, changed):
        if any(field == fixed or field.startswith(f"{fixed}.") for fixed in _FIXED):
            raise UserError(
                f"{field}: a run that has begun cannot change it (from {old!r} to {new!r}): start a new one"
            )
    return changed


def load(
    run: str | Path, *others: str | Path, which: str = "best", device: str = "auto"
) -> Union[Translator, "FastTranslator"]:
    """The translator of a run: its best checkpoint, the `last`, or one by name. Needs no training data.

    With other runs beside it, all are asked and the mean of their probabilities counts; their tokenizers have
    to be the same. Of an export too; where torch is not installed, use
    `dragoman.engines.ctranslate2.Translator.open`.
    """
    if is_export(Path(run)):
        from dragoman.engines.ctranslate2 import open_export  # only those who export have its library

        if others:
            raise UserError(f"{run}: this is an export, which translates alone")
        return open_export(Path(run), which, device)
    return ensemble([Run.open(directory) for directory in (run, *others)], which, device)
