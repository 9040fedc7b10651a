"""One YAML: presets, overrides, derived numbers, and errors that name the field."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.config import load_yaml, to_dict
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.models.presets import preset
from dragoman.runs.config import RunConfig, TrainConfig, config_differences, to_yaml

DATA = {"train": [{"files": ["a.en", "a.de"]}]}


def minimal(**sections: Any) -> dict[str, Any]:
    return {"data": DATA, "model": {"preset": "transformer-tiny"}, "train": {"max_updates": 10}, **sections}


def test_a_preset_gives_all_fields_and_can_be_changed() -> None:
    config = resolve_config(
        minimal(model={"preset": "transformer-tiny", "dropout": 0.2}), ["model.num_layers=2"]
    )
    kind, model = config.model_config
    expected = to_dict(preset("transformer-tiny")[1]) | {"dropout": 0.2, "num_layers": 2}
    assert kind == "transformer"
    assert to_dict(model) == expected
    assert config.model == {"kind": "transformer", **expected}


def test_a_resolved_configuration_survives_yaml_and_stays_as_it_is(tmp_path: Path) -> None:
    config = resolve_config(minimal(), ["schedule.name=cosine", "schedule.warmup=3", "optim.rate=1e-3"])
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config))
    again = resolve_config(load_yaml(path))
    assert again == config
    assert to_yaml(again) == to_yaml(config)
    assert isinstance(again, RunConfig)


def test_relative_steps_need_whole_parameters() -> None:
    with pytest.raises(UserError, match=r"^optim\.relative: .*train\.shard"):
        resolve_config(minimal(), ["optim.relative=true", "train.shard=true"])


def test_the_rate_of_the_paper_is_filled_in() -> None:
    config = resolve_config(minimal(model={"preset": "transformer-base"}, schedule={"warmup": 4000}))
    assert config.optim.rate == pytest.approx(512**-0.5 * 4000**-0.5)


def test_the_end_of_a_schedule_is_filled_in() -> None:
    config = resolve_config(minimal(schedule={"name": "linear", "warmup": 2}, optim={"rate": 0.1}))
    assert config.schedule.total == 10


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.preset=transformer-huge", "model.preset: 'transformer-huge'"),
        ("model.preset=3", "model.preset: expected text"),
        ("model.kind=rnn", "model.kind: the preset"),
        ("model.layers=3", "model.layers: unknown field"),
        ("model.dropout=1.5", "model.dropout: "),
        ("model=3", "model: expected a mapping"),
        ("train.max_updates=0", "train.max_updates: .* found 0"),
        ("train.max_updates=null", "train.max_updates: nothing ends this run"),
        ("train.batch_tokens=-1", "train.batch_tokens: .* found -1"),
        ("train.batch_tokens=big", "train.batch_tokens: expected a whole number"),
        ("train.keep=1", "train.keep: .* at least 2"),
        ("train.clip=-1", "train.clip: "),
        ("train.ema=1", "train.ema: "),
        ("train.metric=ter", "train.metric: expected one of"),
        ("train.amp=fp16", "train.amp: expected one of"),
        ("train.max_minutes=0", "train.max_minutes: "),
        ("train.patience=0", "train.patience: "),
        ("objective.label_smoothing=1", "objective.label_smoothing: "),
        ("objective.r_drop=-1", "objective.r_drop: expected a number of 0 or more, found -1.0"),
        ("objective={r_drop: 5, teacher_forcing: 0.5}", "objective.r_drop: two passes can only agree"),
        ("objective.teacher_forcing=1.5", "objective.teacher_forcing: .* found 1.5"),
        ("objective.teacher_forcing_end=0.5", "objective.teacher_forcing_end: a constant share has none"),
        (
            "objective.teacher_forcing_updates=9",
            "objective.teacher_forcing_updates: a constant share has none",
        ),
        ("objective.teacher_forcing_schedule=linear", "objective.teacher_forcing_end: the schedule linear"),
        ("objective.teacher_forcing_schedule=cosine", "objective.teacher_forcing_schedule: expected one of"),
        ("optim.rate=-1", "optim.rate: "),
        ("optim.name=adagrad", "optim.name: expected one of"),
        ("schedule.name=cosine", "optim.rate: only the schedule inverse_sqrt"),
        ("seed=-1", "seed: "),
        ("objective.name=tranlate", "objective.name: expected one of .*; did you mean 'translate'"),
        ("objective.name=[causal]", r"objective.name: expected one of .*, found \['causal'\]"),
        ("tokenizer.vocab_size=-5", "tokenizer.vocab_size: "),
        ("search.beam=0", "search.beam: "),
        ("data.valid_size=-1", "data.valid_size: "),
        ("traim.max_updates=3", "traim: unknown field; did you mean 'train'"),
    ],
)
def test_mistakes_name_the_field(assignment: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        resolve_config(minimal(), [assignment])


def test_a_budget_tunes_the_search_of_what_translates_alone() -> None:
    text = {"train": [{"files": ["a.txt"], "format": "text"}]}
    of_text = budgeted(data=text, model={"preset": "gpt-tiny"}, objective={"name": "causal"}, train={})
    assert of_text.train.max_minutes == 15 and not of_text.train.tune_search
    assert budgeted(train={}).train.tune_search


@pytest.mark.parametrize("other", ["tokenizer.dropout=0.1", "objective.invented=1"])
def test_changed_sources_go_with_nothing_that_changes_them_too(other: str) -> None:
    with pytest.raises(UserError, match=r"^objective\.source_noise: it does not go with"):
        resolve_config(minimal(), ["objective.source_noise=0.1", other])


def budgeted(*overrides: str, minutes: float | None = 15, **sections: Any) -> RunConfig:
    return resolve_config(minimal(**sections), overrides, minutes)


def test_a_budget_takes_the_place_of_what_was_chosen_for_another_length() -> None:
    given = {"max_updates": 10, "max_epochs": 3, "validate_every": 7, "save_every": 5, "patience": 9}
    config = budgeted(
        train={**given, "log_every": 20}, schedule={"name": "linear", "warmup": 50, "total": 99}
    )
    train = config.train
    assert (train.max_minutes, train.max_updates, train.max_epochs) == (15, None, None)
    assert (train.validations, train.patience, train.log_every) == (15, 4, 20)
    assert train.tune_search and train.report
    assert (config.schedule.by, config.schedule.total, config.schedule.warmup) == ("minutes", None, 50)
    assert resolve_config(to_dict(config)) == config


def test_a_budget_brings_a_schedule_that_ends_and_keeps_the_rate() -> None:
    paper = resolve_config(minimal(schedule={"name": "inverse_sqrt", "warmup": 400})).optim.rate
    config = budgeted(schedule={"name": "inverse_sqrt", "warmup": 400})
    assert (config.schedule.name, config.schedule.by, config.optim.rate) == ("linear", "minutes", paper)
    assert budgeted(schedule={"name": "cosine"}).schedule.name == "cosine"


def test_a_number_of_updates_that_is_asked_for_stays_the_end() -> None:
    config = budgeted("train.max_updates=500", schedule={"name": "linear", "warmup": 5}, optim={"rate": 0.1})
    assert (config.schedule.by, config.schedule.total, config.train.max_minutes) == ("updates", 500, 15)
    assert config.train.validations is None and not config.train.tune_search


def test_what_is_asked_for_stays_under_a_budget() -> None:
    config = budgeted(
        "train.validate_every=30", "train.patience=2", "train.tune_search=false", "schedule.name=constant",
        optim={"rate": 0.1},
    )  # fmt: skip
    assert config.schedule.by == "updates"
    assert (config.train.validate_every, config.train.patience) == (30, 2)
    config = budgeted("train.validate_every=30", "train.tune_search=false")
    assert (config.schedule.by, config.train.validations) == ("minutes", None)
    assert not config.train.tune_search


def test_minutes_in_a_file_are_a_budget_where_the_schedule_has_no_other_end() -> None:
    train = {"max_minutes": 5}
    linear = resolve_config(minimal(train=train, schedule={"name": "linear", "warmup": 9}))
    assert (linear.schedule.by, linear.train.validations) == ("minutes", 15)
    other = resolve_config(minimal(train=train, schedule={"name": "inverse_sqrt"}))
    assert (other.schedule.by, other.train.validations) == ("updates", None)
    total = resolve_config(
        minimal(train=train, schedule={"name": "linear", "total": 5000}, optim={"rate": 0.1})
    )
    assert total.schedule.by == "updates"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.validations=3"], "train.validations: 3 in how many minutes"),
        (["schedule={name: linear, by: minutes}", "optim.rate=1"], "schedule.by: minutes of what"),
        (["schedule.by=minutes", "train.max_minutes=3"], "schedule.by: the clock brings down"),
    ],
)
def test_a_share_of_no_budget_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        resolve_config(minimal(), overrides)


def test_a_linear_schedule_needs_an_end() -> None:
    with pytest.raises(UserError, match=r"^schedule\.total: linear has to know its end"):
        resolve_config(minimal(optim={"rate": 0.1}), ["schedule.name=linear", "schedule.warmup=20"])


def test_metrics_of_translations_need_translations() -> None:
    with pytest.raises(UserError, match="metric: bleu needs validate_sentences"):
        TrainConfig(max_updates=1, metric="bleu", validate_sentences=0)


def test_differences_name_dotted_fields() -> None:
    old = resolve_config(minimal())
    new = resolve_config(minimal(), ["train.max_updates=11", "seed=2"])
    assert config_differences(old, new) == [("seed", 1, 2), ("train.max_updates", 10, 11)]
    assert config_differences(old, old) == []
