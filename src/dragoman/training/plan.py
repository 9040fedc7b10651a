"""A configuration and its prepared data, ready to be shown and trained."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dragoman.autopilot.choice import round_down
from dragoman.autopilot.choose import Chosen
from dragoman.autopilot.contenders import Contender
from dragoman.autopilot.profile import SampledPair
from dragoman.data.corpus import prepare
from dragoman.data.fingerprint import CACHE
from dragoman.data.scan import Scan
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.task_plan import prepare_for_task
from dragoman.runs.config import RunConfig, refusal_of_other_config, training_differences
from dragoman.runs.directory import Corpus, Run
from dragoman.runs.opening import pick_device
from dragoman.training.budget import Clock
from dragoman.training.display import Display
from dragoman.training.draft import Draft, Overrides, Source, make_draft
from dragoman.training.estimate import Estimate, estimate, measured_update
from dragoman.training.plan_rows import Rows, details, reasons, summary
from dragoman.training.report import read_speed, write_reasons

_AS_EXPECTED = 0.7


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    out: Path
    prepared: Corpus
    estimate: Estimate | None
    """None if the run exists already, or if there are no updates to time."""
    processes: int = 1
    reasons: tuple[tuple[str, str], ...] = ()
    """The choices of the autopilot and their reasons."""
    shown: tuple[SampledPair, ...] = ()
    """Examples of pairs that the usual cleaning rules would have dropped."""
    speed: float = 1.0
    """Measured speed of the machine relative to the assumed one."""

    expected: tuple[int, float] | None = None
    """Expected updates and epochs, if the autopilot has estimated them."""
    rivals: tuple[Contender, ...] = ()
    """The contenders of a contest; the plan itself comes first."""
    variant: Callable[[Sequence[str]], RunConfig] | None = None
    """The configuration of the same plan with further overrides."""

    def rows(self) -> Rows:
        """The summary: about ten rows."""
        return summary(self)

    def tables(self, verbose: bool) -> list[tuple[str, Rows]]:
        """The tables to print, with titles."""
        shown = [("Plan", summary(self))]
        if verbose:
            shown += [("Details", details(self)), ("Reasons", reasons(self))]
        return [(title, rows) for title, rows in shown if rows]


def make_plan(
    sources: Sequence[Source],
    display: Display,
    *,
    out: Path | None = None,
    overrides: Overrides = (),
    valid: Sequence[str] = (),
    processes: int = 1,
    minutes: float | None = None,
    clock: Clock | None = None,
) -> Plan:
    """Read, choose, resolve, prepare and measure. Writes only the cache of prepared data. `clock` started
    with the command."""
    cache = (out or Path("runs") / "run").parent / CACHE
    with ExitStack() as stack:
        draft = make_draft(
            sources, stack, cache, overrides=overrides, valid=valid, display=display, minutes=minutes
        )
        config, chosen = draft.config, draft.chosen
        out = out or Path("runs") / learning_of(config).run_name(config)
        if Run.exists(out) and draft.at_speed is not None:
            config, chosen = draft.at_speed(read_speed(out))
        config = _dealt(config, processes)
        if Run.exists(out):
            _refuse_other_config(Run.open(out), config)
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"{out}: this is not a run, and not empty; choose another directory with --out")
        prepared = _prepare(config, cache, display, draft.scanned)
    speed = ratio = 1.0
    if chosen is not None and chosen.update_seconds is not None and not Run.exists(out):
        assert draft.at_speed is not None, "what was chosen can be chosen again"
        ratio = _measured_speed(config, prepared, chosen.update_seconds, display, clock or Clock())
        speed = _rounded(ratio)
        if speed < 1:
            config, chosen = draft.at_speed(speed)
            config = _dealt(config, processes)
    plan = Plan(config, out, prepared, None, processes, speed=speed)
    if chosen is not None:
        plan = dataclasses.replace(
            plan,
            reasons=tuple(chosen.reasons),
            shown=chosen.shown,
            expected=_expected(chosen, config, ratio / speed),
            rivals=tuple(draft.contenders(chosen)) if draft.contenders is not None else (),
            variant=_variants(draft, speed, processes),
        )
    if Run.exists(out):
        _refuse_other_corpus(Run.open(out), prepared)
        return plan
    if config.counted or (config.train.shard and processes > 1):  # one process cannot time a sharded model
        return plan
    display.stage("timing a few updates", 0, None)
    measured = estimate(config, prepared, pick_device(config.train.device), processes, clock)
    return dataclasses.replace(plan, estimate=measured)


def _measured_speed(
    config: RunConfig, prepared: Corpus, expected: float, display: Display, clock: Clock
) -> float:
    """Expected seconds per update divided by the measured ones; 1 if none could be timed."""
    display.stage("timing a few updates", 0, None)
    seconds = measured_update(config, prepared, pick_device(config.train.device), clock)
    return 1.0 if seconds is None else expected / seconds


def _rounded(ratio: float) -> float:
    """1 where updates take about what was expected, less where they take much longer: a slower machine, or
    one that others use too. Rounded, so that small differences choose nothing else."""
    return 1.0 if ratio > _AS_EXPECTED else 2.0 ** round(math.log2(ratio))


def _variants(draft: Draft, speed: float, processes: int) -> Callable[[Sequence[str]], RunConfig]:
    def variant(overrides: Sequence[str]) -> RunConfig:
        assert draft.at_speed is not None, "what was chosen can be chosen again"
        return _dealt(draft.at_speed(speed, overrides)[0], processes)

    return variant


def _expected(chosen: Chosen, config: RunConfig, faster: float) -> tuple[int, float] | None:
    """Updates and epochs, or None if the run ends by another setting. `faster` is the measured speed relative
    to the assumed one."""
    if chosen.updates is None or config.train.max_epochs is not None:
        return None
    times = faster if config.train.max_updates is None else 1.0
    return max(1, round_down(chosen.updates * times)), chosen.epochs * times


def prepare_for(config: RunConfig, out: Path, display: Display) -> Corpus:
    """Prepare the data of the run `out`, or take them from the cache."""
    return _prepare(config, out.parent / CACHE, display, None)


def _prepare(config: RunConfig, cache: Path, display: Display, scanned: Scan | None) -> Corpus:
    given = Run.open(config.start).distinct_tokenizers() if config.start else ()
    if config.task is not None:
        return prepare_for_task(config, config.task, cache, display.stage, given)
    return prepare(
        config.data,
        config.tokenizer,
        seed=config.seed,
        cache=cache,
        progress=display.stage,
        given=given,
        scanned=scanned,
    )


def _dealt(config: RunConfig, processes: int) -> RunConfig:
    """Adjust the number of batches per update so that processes share them evenly."""
    accumulate = -(-config.train.accumulate // processes) * processes
    return dataclasses.replace(config, train=dataclasses.replace(config.train, accumulate=accumulate))


def _refuse_other_config(run: Run, config: RunConfig) -> None:
    found = training_differences(run.config, config)
    found.sort(key=lambda difference: difference[0] == "schedule.total")  # it follows from another field
    if found:
        raise refusal_of_other_config(run, found)


def _refuse_other_corpus(run: Run, prepared: Corpus) -> None:
    if run.fingerprint != prepared.fingerprint:
        raise UserError(
            f"{run.directory}: this run was made with other data (fingerprint {run.fingerprint[:12]}…, "
            f"these files have {prepared.fingerprint[:12]}…): choose another directory with --out"
        )


def open_or_create(plan: Plan) -> Run:
    if not Run.exists(plan.out):

        def write_choices(directory: Path) -> None:
            if plan.reasons:
                write_reasons(directory, plan.reasons, plan.speed)

        return Run.create(plan.out, plan.config, plan.prepared, write_choices)
    run = Run.open(plan.out)
    if training_differences(run.config, plan.config) or run.fingerprint != plan.prepared.fingerprint:
        # It was not there when the plan was made.
        raise UserError(
            f"{plan.out}: another process has just made another run here; choose another directory with --out"
        )
    run.check_data()
    return run
