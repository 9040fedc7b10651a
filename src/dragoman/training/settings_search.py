"""`--search`: a contest with a share of the minutes, then the winner with the rest of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.autopilot.contenders import affordable, total_units
from dragoman.config import apply_overrides, from_dict
from dragoman.data.config import DataConfig
from dragoman.errors import UserError
from dragoman.files import explained, new_directory, write_new
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import pick_device
from dragoman.training.budget import Clock, Since
from dragoman.training.contest import Running
from dragoman.training.contest_record import CONTEST, Contest, directory_of, encoded, read_contest
from dragoman.training.display import Display, duration
from dragoman.training.draft import Overrides, Source, as_assignments, plain_config
from dragoman.training.plan import Plan, open_or_create, prepare_for
from dragoman.training.session import train_run

_SHARE, _LARGEST_SHARE = 0.2, 0.25
"""Share of the minutes for the contest; the larger one if the smaller one is too short for four."""
_ENOUGH = 4
_LEAST_SECONDS = {"cpu": 10.0, "cuda": 15.0}
"""Minimum seconds per contender in the first round; a GPU also loads kernels and captures graphs."""
_LEAST_UPDATES = 50


def asked_for(
    sources: Sequence[Source], overrides: Overrides, valid: Sequence[str], minutes: float | None
) -> str:
    """The arguments of a command as one string: an interrupted contest resumes only with the same ones."""
    arguments = [list(map(_plain, sources)), as_assignments(overrides), list(valid), minutes]
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def _plain(source: Source) -> object:
    return str(source) if isinstance(source, str | Path) else source


def run_directory(sources: Sequence[Source], overrides: Overrides, valid: Sequence[str]) -> Path:
    """The default run directory."""
    data = apply_overrides(plain_config(sources, valid, "auto"), as_assignments(overrides)).get("data", {})
    if any(isinstance(source, Mapping) and "src_lang" in source for source in data.get("train", ())):
        return Path("runs") / from_dict(DataConfig, data, "data").languages_name
    return Path("runs") / f"{data.get('src_lang', 'src')}-{data.get('tgt_lang', 'tgt')}"


def found_contest(out: Path, asked: str) -> Contest | None:
    """A contest that was started or finished with the same arguments; None if there is none."""
    finished = Run.exists(out)
    contest = read_contest(out if finished else directory_of(out))
    if contest is not None and contest.asked != asked:
        raise UserError(
            f"{out if finished else directory_of(out)}: this contest was begun with other arguments; "
            "choose another directory with --out"
        )
    return contest


def begin_contest(plan: Plan, asked: str, display: Display) -> Contest | None:
    """Create the runs of all contenders. None if the time is too short for two."""
    train = plan.config.train
    if not plan.config.budgeted or train.max_minutes is None:
        raise UserError("--search: a contest takes a share of the time; give it with --minutes")
    if not plan.rivals or plan.variant is None:
        raise UserError("--search: everything is given, so there is nothing to choose between")
    if not len(plan.prepared.valid):
        raise UserError("--search: there is no validation set to choose by")
    seconds = 60 * train.max_minutes
    least = _least_seconds(plan, seconds)
    count = affordable(len(plan.rivals), _SHARE * seconds, least)
    share = _SHARE if count >= _ENOUGH else _LARGEST_SHARE
    count = count if count >= _ENOUGH else affordable(len(plan.rivals), share * seconds, least)
    if not count:
        display.line(
            f"--search: {duration(seconds)} are too short for a contest, so the plan is trained as it is"
        )
        return None
    names = ("max_minutes", "validations", "patience", "tune_search", "report", "keep")
    contest = Contest(
        asked=asked,
        minutes=train.max_minutes,
        unit=share * seconds / total_units(count),
        train={name: getattr(train, name) for name in names},
        reasons=plan.reasons,
        speed=plan.speed,
        contenders=tuple(plan.rivals[:count]),
    )
    directory = directory_of(plan.out)
    with explained(directory), new_directory(directory) as temporary:
        for contender in contest.contenders:
            config = _of_contender(plan.variant(contender.overrides), contest.unit)
            prepared = prepare_for(config, plan.out, display)
            Run.create(temporary / contender.name, config, prepared)
        write_new(temporary / CONTEST, (encoded(contest),))
    return contest


def _least_seconds(plan: Plan, seconds: float) -> float:
    device = pick_device(plan.config.train.device).type
    an_update = seconds / plan.expected[0] if plan.expected else 0.0
    return max(_LEAST_SECONDS.get(device, 10.0), _LEAST_UPDATES * an_update)


def _of_contender(config: RunConfig, seconds: float) -> RunConfig:
    """The configuration of a contender: one validation at the end, and nothing after it."""
    train = replace(
        config.train,
        max_minutes=seconds / 60,
        validations=1,
        patience=None,
        tune_search=False,
        report=False,
        average=0,
    )
    return replace(config, train=train)


def search_and_train(
    planned: Callable[[Path], Plan], out: Path, asked: str, display: Display, clock: Clock, dry_run: bool
) -> Run | None:
    """Run or resume the contest, then train the winner. A dry run returns None."""
    contest = None if dry_run else found_contest(out, asked)
    if contest is None:
        plan = planned(out)
        if dry_run:
            return None
        contest = None if Run.exists(out) else begin_contest(plan, asked, display)
        if contest is None:
            run = open_or_create(plan)
            train_run(run, display, clock=clock)
            return run
    return go_on(out, contest, display, clock)


def go_on(out: Path, contest: Contest, display: Display, clock: Clock) -> Run:
    """Finish the contest, then train the winner."""
    if not Run.exists(out):
        run = Running(out, contest, display, clock).run()
        if run.outcome is not None and run.outcome.exit_status:
            return run
        clock = Since(clock)
    run = Run.open(out)
    train_run(run, display, clock=clock)
    return run
