"""From what a person typed to a configuration and prepared data, ready to be shown and trained."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoman.config import apply_overrides, from_dict, load_yaml, to_dict
from dragoman.data.cache import CACHE
from dragoman.data.config import DataConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.formats import group_files
from dragoman.data.languages import languages_of
from dragoman.errors import UserError
from dragoman.learning import learning_of, named
from dragoman.learning.resolve import resolve
from dragoman.learning.task_plan import completed_task, prepare_for_task
from dragoman.runs.config import RunConfig, training_differences
from dragoman.runs.device import pick_device
from dragoman.runs.directory import Corpus, Run
from dragoman.training.auto import CorpusStats, choose, measure, this_machine
from dragoman.training.clock import Clock
from dragoman.training.display import Display, duration
from dragoman.training.estimate import Estimate, estimate

Overrides = Sequence[str] | Mapping[str, Any]
Source = str | Path | Mapping[str, Any]

CHOSEN = ("tokenizer", "model", "objective", "optim", "schedule", "train")
"""Sections that are chosen from the data and the machine where they are not given at all."""
_LABELLED = "labelled"
_UNITS = {"pairs": "pairs", "text": "lines", "labels": "examples"}
_FINE_TUNING_RATE = 5e-5
"""Where a run begins with the weights of another and nothing else is said."""


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    out: Path
    prepared: Corpus
    estimate: Estimate | None
    """None where the run exists already, and where there are no updates to be timed."""
    processes: int = 1
    reasons: tuple[tuple[str, str], ...] = ()
    """What was chosen and why, for the report."""

    def rows(self) -> list[tuple[str, str]]:
        """What a person wants to know before training."""
        config, prepared, train = self.config, self.prepared, self.config.train
        learning = learning_of(config)
        kind, model = config.model_config
        fields = to_dict(model)
        shape = ", ".join(
            f"{name.replace('_', ' ')} {fields[name]}"
            for name in ("num_layers", "model_dim", "num_heads", "ff_dim", "dropout")
            if name in fields
        )
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
            shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in fields.items())
            limits = ["one pass over the data: this model is fitted by counting"]
        read = f"to learn from, {len(prepared.valid):,} to validate on"
        rows = [
            *learning.plan_rows(config),
            (_UNITS[learning.learns_from], f"{len(prepared.train):,} {read}"),
            *([("dropped", dropped or "none")] if isinstance(prepared, Prepared) else []),
            ("vocabulary", f"{pieces} {src.kind} pieces"),
            ("model", f"{kind}: {shape}"),
            *([] if config.counted else [("batch", f"{times}{train.batch_tokens:,} tokens")]),
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
        return [*rows, ("run", str(self.out))]

    def _time(self) -> str:
        assert self.estimate is not None
        seconds = self.estimate.seconds
        if seconds is None:
            return "not known"
        if self.config.budgeted:
            return f"{duration(seconds)} for all of it"
        return f"about {duration(seconds)}{' if it runs to its end' if self.config.train.patience else ''}"


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
    config = make_config(sources, overrides=overrides, valid=valid, display=display, minutes=minutes)
    config = _dealt(config, processes)
    out = out or Path("runs") / learning_of(config).run_name(config)
    if Run.exists(out):
        _refuse_other_config(Run.open(out), config)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: this is not a run, and not empty; choose another directory with --out")
    prepared = _prepare(config, out.parent / CACHE, display)
    if Run.exists(out):
        _refuse_other_corpus(Run.open(out), prepared)
        return Plan(config, out, prepared, None, processes)
    if config.counted or (config.train.shard and processes > 1):  # in parts: one process cannot try it
        return Plan(config, out, prepared, None, processes)
    display.stage("timing a few updates", 0, None)
    measured = estimate(config, prepared, pick_device(config.train.device), processes, clock)
    return Plan(config, out, prepared, measured, processes)


def _prepare(config: RunConfig, cache: Path, display: Display) -> Corpus:
    given = Run.open(config.start).distinct_tokenizers() if config.start else ()
    if config.task is not None:
        return prepare_for_task(config, config.task, cache, display.stage, given)
    return prepare(
        config.data, config.tokenizer, seed=config.seed, cache=cache, progress=display.stage, given=given
    )


def _dealt(config: RunConfig, processes: int) -> RunConfig:
    """With a number of batches an update that the processes can share evenly."""
    accumulate = -(-config.train.accumulate // processes) * processes
    return dataclasses.replace(config, train=dataclasses.replace(config.train, accumulate=accumulate))


def make_config(
    sources: Sequence[Source],
    *,
    overrides: Overrides,
    valid: Sequence[str],
    display: Display,
    minutes: float | None = None,
) -> RunConfig:
    """The resolved configuration of files, of a YAML recipe, or of a mapping like one; `minutes` is a budget
    that takes the place of other ends."""
    assignments = as_assignments(overrides)
    format = _LABELLED if _is_task(assignments) else "text" if _learns_from_text(assignments) else "auto"
    plain = apply_overrides(_plain_config(sources, valid, format), assignments)
    if not isinstance(plain.get("data"), Mapping):
        raise UserError("data: this section is required")
    data = from_dict(DataConfig, plain["data"], "data")
    given = _plain_config(sources, valid, format)
    if plain.get("start") is not None:
        given = _as_begun(Run.open(str(plain["start"])), given)
    missing = [section for section in CHOSEN if section not in given]
    if plain.get("task") is not None:
        task = completed_task(given, plain, data, missing, _brings_model(assignments))
        return resolve(task, assignments, minutes)
    if missing:
        display.stage("reading the corpus", 0, None)
        train = plain.get("train")
        asked = train if isinstance(train, Mapping) else {}
        updates = asked.get("max_updates")
        known = updates if isinstance(updates, int) and updates > 0 else None
        if "schedule" in missing and known is None:
            minutes = minutes or asked.get("max_minutes")
        machine = this_machine(str(asked.get("device", "auto")))
        chosen = choose(_stats(data, display), machine, known, named(_objective_of(plain)))
        if plain.get("start") is not None:
            chosen["optim"]["rate"] = _FINE_TUNING_RATE
        given |= {section: _without_clashes(section, chosen[section], assignments) for section in missing}
    return resolve(given, assignments, minutes)


def _as_begun(start: Run, given: dict[str, Any]) -> dict[str, Any]:
    """With the vocabulary and the model of the run that is begun with. What is said of the model beside that
    counts, as far as the weights fit it."""
    model = given.get("model", {})
    if not isinstance(model, Mapping):
        raise UserError(f"model: expected a mapping of fields, found {model!r}")
    own = {"tokenizer": to_dict(start.config.tokenizer), "model": {**start.config.model, **model}}
    return {**given, **own}


def _stats(data: DataConfig, display: Display) -> CorpusStats:
    stats = measure(data, display.stage)
    if not stats.pairs:
        files = ", ".join(file for source in data.train for file in source.files)
        raise UserError(f"{files}: there is no pair to learn from")
    return stats


def _without_clashes(section: str, chosen: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """A model that is named on the command line brings its own numbers, not those of the one it replaces."""
    return {} if section == "model" and _brings_model(assignments) else chosen


def _brings_model(assignments: Sequence[str]) -> bool:
    return any(a.startswith(("model.preset=", "model.kind=")) for a in assignments)


def _is_task(assignments: Sequence[str]) -> bool:
    """Then every file on the command line is a corpus of labelled examples."""
    return any(a.startswith("task.kind=") for a in assignments)


def _objective_of(plain: Mapping[str, Any]) -> str:
    section = plain.get("objective")
    return str(section.get("name", "translate")) if isinstance(section, Mapping) else "translate"


def _learns_from_text(assignments: Sequence[str]) -> bool:
    """Then every file on the command line is text, and files do not come two by two."""
    chosen = [a for a in assignments if a.startswith("objective.name=")]
    return bool(chosen) and named(_objective_of(apply_overrides({}, chosen))).learns_from == "text"


def _plain_config(sources: Sequence[Source], valid: Sequence[str], format: str) -> dict[str, Any]:
    if not sources:
        raise UserError("nothing to train on: give two files, a table of pairs, or a YAML recipe")
    if len(sources) == 1 and isinstance(sources[0], Mapping):
        return dict(sources[0])
    files = [_as_file(source) for source in sources]
    if len(files) == 1 and files[0].endswith((".yaml", ".yml")):
        if valid:
            raise UserError("--valid: a recipe names its own validation files, under data.valid")
        return load_yaml(Path(files[0]))
    if format == _LABELLED:
        named = {"train": files, **({"valid": list(valid)} if valid else {})}
        return {"data": {side: [{"files": [file]} for file in names] for side, names in named.items()}}
    train = group_files(files, format)
    languages = languages_of(train[0]) or ("src", "tgt")
    data: dict[str, Any] = {"train": [to_dict(source) for source in train]}
    if valid:
        data["valid"] = [to_dict(source) for source in group_files(list(valid), format)]
    return {"data": {**data, "src_lang": languages[0], "tgt_lang": languages[1]}}


def _as_file(source: Source) -> str:
    if isinstance(source, Mapping):
        raise UserError("a configuration given as a mapping has to be the only source")
    if not os.path.exists(source):  # noqa: PTH110 (a text that is too long for a name is no file either)
        raise UserError(f"{source}: there is no such file")
    return str(source)


def as_assignments(overrides: Overrides) -> list[str]:
    """`{"train.max_updates": 100}` as `train.max_updates=100`."""
    if isinstance(overrides, Mapping):
        return [f"{k}={yaml.safe_dump(v, default_flow_style=True).strip()}" for k, v in overrides.items()]
    return list(overrides)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and overrides, as they come mixed on a command line."""
    named = re.compile(r"[a-z_][\w.]*=")
    is_override = [bool(named.match(a)) and not os.path.exists(a) for a in arguments]  # noqa: PTH110
    files = [a for a, override in zip(arguments, is_override, strict=True) if not override]
    return files, [a for a, override in zip(arguments, is_override, strict=True) if override]


def _refuse_other_config(run: Run, config: RunConfig) -> None:
    found = training_differences(run.config, config)
    if found:
        field, old, new = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(
            f"{run.directory}: this run exists with another configuration: {field} is {old!r}, not {new!r}"
            f"{more}; choose another directory with --out, or change it with  dragoman resume RUN field=value"
        )


def _refuse_other_corpus(run: Run, prepared: Corpus) -> None:
    if run.fingerprint != prepared.fingerprint:
        raise UserError(
            f"{run.directory}: this run was made with other data (fingerprint {run.fingerprint[:12]}…, "
            f"these files have {prepared.fingerprint[:12]}…): choose another directory with --out"
        )
