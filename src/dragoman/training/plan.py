"""A configuration and its prepared data, ready to be shown and trained."""

import dataclasses
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dragoman.autopilot.profile import Example
from dragoman.data.cache import CACHE
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.formats import describe_columns
from dragoman.data.scan import Scan
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.task_plan import prepare_for_task
from dragoman.models.describe import describe
from dragoman.runs.config import RunConfig, training_differences
from dragoman.runs.device import pick_device
from dragoman.runs.directory import Corpus, Run
from dragoman.runs.other import other_run
from dragoman.training.clock import Clock
from dragoman.training.display import Display, duration
from dragoman.training.draft import Overrides, Source, make_draft
from dragoman.training.estimate import Estimate, estimate, measured_update
from dragoman.training.report import read_speed

_AS_EXPECTED = 0.7
_UNITS = {"pairs": "pairs", "text": "lines", "labels": "examples"}


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    out: Path
    prepared: Corpus
    estimate: Estimate | None
    """None where the run exists already, and where there are no updates to be timed."""
    processes: int = 1
    reasons: tuple[tuple[str, str], ...] = ()
    """What the autopilot has chosen, and why."""
    shown: tuple[Example, ...] = ()
    """Pairs that the usual rules of cleaning would have left out."""
    speed: float = 1.0
    """Of the machine, beside what the choices take it to have."""

    def rows(self) -> list[tuple[str, str]]:
        """What a person wants to know before training."""
        config, prepared, train = self.config, self.prepared, self.config.train
        learning = learning_of(config)
        kind, model = config.model_config
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in prepared.dropped.items() if count)
        src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
        pieces = f"{src.size:,} (joint)" if src.config.joint else f"{src.size:,} and {tgt.size:,}"
        times = f"{train.accumulate} × " if train.accumulate > 1 else ""
        ends = {"updates": train.max_updates, "epochs": train.max_epochs}
        limits = [f"{value:,} {name}" for name, value in ends.items() if value is not None]
        if train.max_minutes is not None:
            limits.append(f"{train.max_minutes:g} minutes")
        if train.patience:
            limits.append(f"{train.patience} validations without a better {train.metric}")
        if config.counted:
            limits = ["one pass over the data: this model is fitted by counting"]
        read = f"to learn from, {len(prepared.valid):,} to validate on"
        rows = [
            *learning.plan_rows(config),
            *(_columns(config) if learning.learns_from == "pairs" else []),
            (_UNITS[learning.learns_from], f"{len(prepared.train):,} {read}"),
            *([("dropped", dropped or "none")] if isinstance(prepared, Prepared) else []),
            ("vocabulary", f"{pieces} {src.kind} pieces"),
            ("model", describe(kind, model)),
            *([] if config.counted else [("optimizer", _optimizer(config))]),
            *([] if config.counted else [("batch", f"{times}{train.batch_tokens:,} tokens")]),
            *([] if config.counted else [("best checkpoint", f"by {train.metric} on the validation set")]),
            ("ends after", " or ".join(limits)),
            ("device", str(pick_device(train.device))),
        ]
        if self.processes > 1:
            each = f"{train.accumulate // self.processes} of the {train.accumulate} batches of an update each"
            rows.append(("processes", f"{self.processes}, {each}{', in parts' if train.shard else ''}"))
        if self.estimate is not None:
            below = [name for name, _ in rows].index("model") + 1
            rows.insert(below, ("parameters", f"{self.estimate.parameters:,}"))
            unit = "targets" if learning.learns_from == "labels" else "target tokens"
            if self.estimate.tokens_per_second is not None:
                rows.append(("speed", f"{self.estimate.tokens_per_second:,.0f} {unit} a second"))
            rows.append(("time", self._time()))
        return [*self._chosen_rows(), *rows, ("run", str(self.out))]

    def _chosen_rows(self) -> list[tuple[str, str]]:
        kept = [("kept, for example", f"{pair.src} → {pair.tgt}") for pair in self.shown]
        return [*((f"why: {name}", reason) for name, reason in self.reasons), *kept]

    def _time(self) -> str:
        assert self.estimate is not None
        seconds = self.estimate.seconds
        if seconds is None:
            return "not known"
        if self.config.budgeted:
            return f"{duration(seconds)} for all of it"
        return f"about {duration(seconds)}{' if it runs to its end' if self.config.train.patience else ''}"


def _columns(config: RunConfig) -> list[tuple[str, str]]:
    """Of tables with more than two columns, those that are read."""
    data = config.data
    told = (describe_columns(source, data.src_lang, data.tgt_lang) for source in data.train)
    return [("columns", each) for each in dict.fromkeys(told) if each is not None]


def _optimizer(config: RunConfig) -> str:
    name = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}[config.optim.name]
    rate = "" if config.optim.rate is None else f", learning rate up to {config.optim.rate:.3g}"
    warmup = f", warm-up {config.schedule.warmup:,} updates" if config.schedule.warmup else ""
    return f"{name}{rate}, schedule {config.schedule.name}{warmup}"


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
    """Read, choose, resolve, prepare and measure. Nothing is written but the cache of prepared data. `clock`
    began with the command."""
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
    speed = 1.0
    if chosen is not None and chosen.update_seconds is not None and not Run.exists(out):
        assert draft.at_speed is not None, "what was chosen can be chosen again"
        speed = _measured_speed(config, prepared, chosen.update_seconds, display, clock or Clock())
        if speed < 1:
            config, chosen = draft.at_speed(speed)
            config = _dealt(config, processes)
    reasons, shown = (tuple(chosen.reasons), chosen.shown) if chosen else ((), ())
    plan = Plan(config, out, prepared, None, processes, reasons, shown, speed)
    if Run.exists(out):
        _refuse_other_corpus(Run.open(out), prepared)
        return plan
    if config.counted or (config.train.shard and processes > 1):  # in parts: one process cannot try it
        return plan
    display.stage("timing a few updates", 0, None)
    measured = estimate(config, prepared, pick_device(config.train.device), processes, clock)
    return dataclasses.replace(plan, estimate=measured)


def _measured_speed(
    config: RunConfig, prepared: Corpus, expected: float, display: Display, clock: Clock
) -> float:
    """1 where updates take about what was expected, less where they take much longer: a slower machine, or
    one that others use too. Rounded, so that small differences choose nothing else."""
    display.stage("timing a few updates", 0, None)
    seconds = measured_update(config, prepared, pick_device(config.train.device), clock)
    if seconds is None or expected / seconds > _AS_EXPECTED:
        return 1.0
    return 2.0 ** round(math.log2(expected / seconds))


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
    """With a number of batches an update that the processes can share evenly."""
    accumulate = -(-config.train.accumulate // processes) * processes
    return dataclasses.replace(config, train=dataclasses.replace(config.train, accumulate=accumulate))


def _refuse_other_config(run: Run, config: RunConfig) -> None:
    found = training_differences(run.config, config)
    found.sort(key=lambda difference: difference[0] == "schedule.total")  # it follows from another field
    if found:
        raise other_run(run, found)


def _refuse_other_corpus(run: Run, prepared: Corpus) -> None:
    if run.fingerprint != prepared.fingerprint:
        raise UserError(
            f"{run.directory}: this run was made with other data (fingerprint {run.fingerprint[:12]}…, "
            f"these files have {prepared.fingerprint[:12]}…): choose another directory with --out"
        )
