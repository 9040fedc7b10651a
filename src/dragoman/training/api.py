"""`dragoman.train` and `dragoman.resume`."""

import socket
from collections.abc import Sequence
from pathlib import Path

from dragoman.config import apply_overrides, to_dict
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig, config_differences
from dragoman.runs.directory import Run
from dragoman.training.budget import Clock
from dragoman.training.contest_record import Contest, directory_of, read_contest
from dragoman.training.display import Display, make_display
from dragoman.training.distributed import Crew, joined_crew
from dragoman.training.draft import Overrides, Source, as_assignments
from dragoman.training.half_data import MAIN_SHARE, measure_half
from dragoman.training.plan import Plan, make_plan, open_or_create
from dragoman.training.session import train_run
from dragoman.training.settings_search import asked_for, go_on, run_directory, search_and_train

_EXAMPLES = (
    "objective.name",
    "objective.block",
    "objective.carry",
    "objective.noise",
    "objective.next_sentence",
    "objective.every",
    "objective.invented",
    "objective.source_noise",
    "objective.terms",
    "objective.fuzzy",
)
_FIXED = ("seed", "start", "data", "tokenizer", "model", "task", "train.batch_tokens", *_EXAMPLES)
"""Sections that cannot change when a run is resumed: the weights or the order of the data depend on them."""


def train(
    *sources: Source,
    out: str | Path | None = None,
    overrides: Overrides = (),
    valid: Sequence[str] = (),
    quiet: bool = False,
    minutes: float | None = None,
    search: bool = False,
    half: bool = False,
) -> Run:
    """Train on parallel files (`"a.en", "a.de"`), a table of pairs, a YAML recipe, or a mapping like one.

    What is not given is chosen from the data and the machine. `overrides` are strings such as
    `"model.num_layers=4"`, or a mapping of dotted names. `minutes` is a budget for all of it: the learning
    rate falls to 0 within it. With `search`, a share of it goes to a contest between a few configurations.
    `half` trains a second run on half of the data, with a third of the time, to see what more would bring.
    An existing run with the same configuration is resumed.
    """
    run = plan_and_train(
        sources,
        out=Path(out) if out else None,
        overrides=overrides,
        valid=valid,
        quiet=quiet,
        minutes=minutes,
        search=search,
        half=half,
        clock=Clock(),
    )
    assert run is not None, "this was not a dry run"
    return run


def plan_and_train(
    sources: Sequence[Source],
    *,
    out: Path | None,
    overrides: Overrides,
    valid: Sequence[str],
    quiet: bool,
    dry_run: bool = False,
    verbose: bool = False,
    minutes: float | None = None,
    search: bool = False,
    half: bool = False,
    clock: Clock | None = None,
) -> Run | None:
    """Plan and train a run; with torchrun, the first process plans. A dry run returns None. `verbose` prints
    the reasons of every choice. `clock` started with the command."""
    clock = clock or Clock()
    if minutes is not None and not minutes > 0:
        raise UserError(
            f"minutes: expected a number above 0, found {minutes:g}; without it, early stopping ends training"
        )
    if half and minutes is not None:
        minutes *= MAIN_SHARE
    with joined_crew() as crew:
        if crew.size > 1 and (search or half):
            option = "--search" if search else "--half"
            raise UserError(f"{option}: it is for one process; start it without torchrun")
        display = make_display(quiet or not crew.first)

        def planned(out: Path | None) -> Plan:
            plan = make_plan(
                sources,
                display,
                out=out,
                overrides=overrides,
                valid=valid,
                processes=crew.size,
                minutes=minutes,
                clock=clock,
            )
            for title, rows in plan.tables(verbose or dry_run):
                display.table(title, rows)
            return plan

        def begin() -> str | None:
            plan = planned(out)
            return None if dry_run else str(open_or_create(plan).directory)

        def trained() -> Run | None:
            if search:
                where = out or run_directory(sources, overrides, valid)
                asked = asked_for(sources, overrides, valid, minutes)
                return search_and_train(planned, where, asked, display, clock, dry_run)
            directory = crew.decide(begin)
            if directory is None:
                return None
            run = _open_as_member(directory, crew)
            train_run(run, display, crew, clock)
            return run

        try:
            run = trained()
            if half and run is not None and run.outcome is not None and not run.outcome.exit_status:
                run.outcome = measure_half(run, display, clock).outcome
            return run
        finally:
            display.close()


def _open_as_member(directory: str | Path, crew: Crew) -> Run:
    if not crew.first and not Run.exists(Path(directory)):
        raise UserError(
            f"{directory}: process {crew.rank} on {socket.gethostname()} does not see this run: all machines "
            "need one file system under the same path"
        )
    return Run.open(directory)


def execute(plan: Plan, display: Display) -> Run:
    """Create the run of a plan, or open it if it exists, and train it."""
    run = open_or_create(plan)
    train_run(run, display)
    return run


def resume(
    run: str | Path | Run, overrides: Overrides = (), quiet: bool = False, clock: Clock | None = None
) -> Run:
    """Resume a run. `overrides` may change how it is trained, not what it is. `clock` started with the
    command."""
    clock = clock or Clock()
    directory = run.directory if isinstance(run, Run) else Path(run)
    contest = None if Run.exists(directory) else read_contest(directory_of(directory))
    if contest is not None:
        return _resume_contest(directory, contest, overrides, quiet, clock)

    def change() -> None:
        opened = Run.open(directory)
        opened.check_data()
        changed = changed_config(opened, as_assignments(overrides))
        if config_differences(opened.config, changed):
            with opened.locked():
                opened.replace_config(changed)

    with joined_crew() as crew:
        crew.decide(change)
        opened = _open_as_member(directory, crew)
        display = make_display(quiet or not crew.first)
        try:
            train_run(opened, display, crew, clock)
        finally:
            display.close()
    return opened


def _resume_contest(out: Path, contest: Contest, overrides: Overrides, quiet: bool, clock: Clock) -> Run:
    if as_assignments(overrides):
        raise UserError(f"{out}: a contest is under way; resume it without changes first")
    display = make_display(quiet)
    try:
        return go_on(out, contest, display, clock)
    finally:
        display.close()


def changed_config(run: Run, assignments: Sequence[str]) -> RunConfig:
    plain, old = to_dict(run.config), run.config
    if old.schedule.total is not None and old.schedule.total == old.train.max_updates:
        plain["schedule"]["total"] = None  # follows max_updates unless it is given as well
    changed = resolve_config(apply_overrides(plain, assignments))
    for field, old, new in config_differences(run.config, changed):
        if any(field == fixed or field.startswith(f"{fixed}.") for fixed in _FIXED):
            raise UserError(
                f"{field}: a run that has begun cannot change it (from {old!r} to {new!r}): start a new one"
            )
    return changed
