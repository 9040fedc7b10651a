"""Resolve a configuration: fill in defaults, presets and derived values, and refuse contradictory
settings."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.config import apply_overrides, check_given, from_dict, to_dict
from dragoman.data.labelled.config import VECTORS
from dragoman.errors import UserError
from dragoman.learning import Learning, named
from dragoman.models import check_fields, chosen_config, config_class
from dragoman.runs.config import ENDS, RunConfig
from dragoman.runs.opening import pick_device
from dragoman.runs.optim import ENDING, paper_rate

_BUDGETED = {"validations": 15, "patience": 4, "tune_search": True, "report": True}
"""Defaults of `train` for runs with a time budget."""
_BY_UPDATES = ("max_updates", "max_epochs", "validate_every", "save_every", "patience")
"""Fields of `train` that a time budget replaces."""


def check_settings(plain: Mapping[str, Any]) -> None:
    """Refuse unknown fields, presets, kinds and devices, and values of a wrong type, before the corpus is
    read, which can take minutes."""
    check_given(RunConfig, plain)
    model = plain.get("model", {})
    if "preset" in model or "kind" in model:
        chosen_config(model)
    else:
        check_fields("transformer", model)
        check_given(config_class("transformer"), model, "model")
    pick_device(plain.get("train", {}).get("device", "auto"))


def resolve_config(
    data: Mapping[str, Any], overrides: Sequence[str] = (), minutes: float | None = None
) -> RunConfig:
    """Resolve plain YAML data with overrides: fill in every default, preset and derived value. `minutes` is a
    time budget: it replaces the length of training in `data`, but not in `overrides`."""
    plain = apply_overrides(data, overrides)
    if minutes is not None:
        plain = _limited(plain, overrides, minutes)
    kind, model = chosen_config(plain.get("model", {}))
    plain["model"] = {"kind": kind, **to_dict(model)}
    plain.setdefault("train", {})
    learning = _chosen(plain)
    plain["objective"] = _objective(plain.get("objective", {}), learning)
    if plain.get("purpose") not in (None, learning.purpose):
        raise UserError(f"purpose: it follows from objective.name and is {learning.purpose}; leave it out")
    plain["purpose"] = learning.purpose
    if model.abilities.counts:
        plain["train"] = _with_an_end(plain["train"])
    else:
        plain = _budgeted(plain, learning)
    config = learning.settle(from_dict(RunConfig, plain), model.abilities)
    learning.check(config, model.abilities)
    if config.data.directions is not None and not learning.several_languages:
        raise UserError(
            f"objective.name: {learning.name} learns one pair of languages, and data.train names several; "
            "leave src_lang and tgt_lang out of its corpora"
        )
    if config.data.context is not None and learning.name != "translate":
        raise UserError(f"objective.name: {learning.name} learns no documents; leave data.context out")
    config = _with_specials(config, learning)
    return config if model.abilities.counts else _with_schedule(config, model)


def _chosen(plain: Mapping[str, Any]) -> Learning:
    """The training objective: `task` or `vectors` for tasks, otherwise `translate` unless it is set."""
    objective = plain.get("objective", {})
    has_task = plain.get("task") is not None
    task = plain.get("task")
    kind = task.get("kind") if isinstance(task, Mapping) else None
    usual = "captions" if kind == "caption" else "vectors" if kind in VECTORS else "task"
    usual = usual if has_task else "translate"
    found = named(objective.get("name", usual) if isinstance(objective, Mapping) else usual)
    if has_task and found.learns_from != "labels":
        raise UserError(f"objective.name: a task is learnt from its labels, found {found.name}; leave it out")
    if not has_task and found.learns_from == "labels":
        raise UserError(f"objective.name: {found.name} needs a section task; set task.kind")
    return found


def _objective(section: object, learning: Learning) -> object:
    if not isinstance(section, Mapping):
        return section
    return {"name": learning.name, "label_smoothing": learning.label_smoothing, **section}


def _with_specials(config: RunConfig, learning: Learning) -> RunConfig:
    """The configuration with the objective's control pieces added to the tokenizer."""
    own = config.tokenizer.specials
    more = tuple(piece for piece in learning.specials(config) if piece not in own)
    return dataclasses.replace(
        config, tokenizer=dataclasses.replace(config.tokenizer, specials=(*own, *more))
    )


def _limited(plain: dict[str, Any], overrides: Sequence[str], minutes: float) -> dict[str, Any]:
    """With a time budget instead of other stopping criteria, and a schedule that ends with it. A number of
    updates in the overrides stays: then the schedule depends on updates, and the budget is only a limit."""
    said = {assignment.split("=", 1)[0] for assignment in overrides}
    train, schedule = plain.get("train", {}), plain.get("schedule", {})
    if not isinstance(train, Mapping) or not isinstance(schedule, Mapping):
        return plain  # from_dict reports the error
    if "train.max_updates" in said:
        return {**plain, "train": {**train, "max_minutes": minutes}}
    kept = {
        name: value for name, value in train.items() if f"train.{name}" in said or name not in _BY_UPDATES
    }
    timed = {**schedule, "total": None}
    if schedule.get("name") not in ENDING and "schedule.name" not in said:
        timed["name"] = "linear"
    return {**plain, "train": {**kept, "max_minutes": minutes}, "schedule": timed}


def _budgeted(plain: dict[str, Any], learning: Learning) -> dict[str, Any]:
    """If only a time budget ends a run: the learning rate, validations and checkpoints follow the clock."""
    train, schedule = plain["train"], plain.get("schedule", {})
    if not isinstance(train, Mapping) or not isinstance(schedule, Mapping):
        return plain
    ends_by_clock = train.get("max_minutes") is not None and train.get("max_updates") is None
    if not ends_by_clock or schedule.get("name") not in ENDING or schedule.get("total") is not None:
        return plain
    by = schedule.get("by", "minutes")
    if by != "minutes":
        return plain
    own = dict(_BUDGETED)
    if "validate_every" in train:
        del own["validations"]
    if learning.purpose != "translate":
        own["tune_search"] = False
    return {**plain, "train": {**own, **train}, "schedule": {**schedule, "by": by}}


def _with_schedule(config: RunConfig, model: Any) -> RunConfig:
    """The configuration with the peak learning rate and the last update of the schedule."""
    optim, schedule = config.optim, config.schedule
    if optim.rate is None:
        own = schedule.name == "inverse_sqrt" or config.budgeted
        if not own or not hasattr(model, "model_dim"):
            raise UserError("optim.rate: only the schedule inverse_sqrt has a rate of its own; set one")
        optim = dataclasses.replace(optim, rate=paper_rate(model.model_dim, schedule.warmup))
    if schedule.needs_total and schedule.total is None:
        if config.train.max_updates is None or config.train.max_updates <= schedule.rise:
            raise UserError(
                f"schedule.total: {schedule.name} has to know its end: set it, or train.max_updates, "
                f"to more than the warm-up's {schedule.rise} updates"
            )
        schedule = dataclasses.replace(schedule, total=config.train.max_updates)
    return dataclasses.replace(config, optim=optim, schedule=schedule)


def _with_an_end(train: object) -> object:
    """Counting models stop by themselves, after one pass over the data."""
    if not isinstance(train, Mapping) or any(train.get(name) is not None for name in ENDS):
        return train
    return {**train, "max_epochs": 1}
