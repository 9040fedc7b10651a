"""What is chosen for which size of corpus and machine."""

import dataclasses
from typing import Any

import pytest
from tests.autopilot.corpora import (
    KINDS,
    abstracts,
    profile_of,
    sentences,
    sounds,
    words,
)
from tests.autopilot.plans import CPU, LARGE_GPU, SMALL_GPU, chosen, resolved, scaled

from dragoman.autopilot.choose import choose
from dragoman.autopilot.machine import Machine
from dragoman.learning import LEARNING
from dragoman.learning.resolve import resolve_config

_WIDTHS = {"transformer-tiny": 128, "transformer-small": 256}


@pytest.mark.parametrize("minutes", [None, 0.5, 10.0])
@pytest.mark.parametrize("machine", [CPU, SMALL_GPU, LARGE_GPU], ids=["cpu", "8 GiB", "140 GiB"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_choice_is_a_valid_configuration(kind: str, machine: Machine, minutes: float | None) -> None:
    for pairs in (1, 100, 30_000, 1_000_000, 50_000_000):
        profile = scaled(profile_of(KINDS[kind](60)), pairs)
        found = chosen(profile, machine, minutes=minutes)
        config = resolved(found, minutes=minutes)
        assert config.train.batch_tokens > config.data.clean.max_length
        assert config.optim.rate and 0 < config.optim.rate < 0.01
        if minutes is None:
            assert config.train.max_updates is not None
            assert config.schedule.warmup < config.train.max_updates
            assert config.train.log_every < config.train.validate_every <= config.train.max_updates
        else:
            assert config.budgeted and config.train.max_minutes == minutes
        assert all(name and reason for name, reason in found.reasons)


def test_the_plan_is_a_pure_function_of_profile_and_machine() -> None:
    for make in KINDS.values():
        pairs = make(200)
        first, second = profile_of(pairs), profile_of(list(pairs))
        assert first == second
        for machine in (CPU, LARGE_GPU):
            assert chosen(first, machine) == chosen(second, machine)


def test_more_text_gets_more_pieces() -> None:
    profile = profile_of(sentences(500))
    sizes = [
        chosen(scaled(profile, pairs), LARGE_GPU).sections["tokenizer"]["vocab_size"]
        for pairs in (500, 5_000, 50_000, 500_000, 5_000_000)
    ]
    assert sizes == sorted(sizes) and sizes[0] >= 500 and sizes[-1] == 32_000


def test_a_narrow_model_on_a_cpu_gets_fewer_pieces() -> None:
    profile = scaled(profile_of(sentences(500)), 500_000)
    narrow, wide = chosen(profile, CPU, minutes=10), chosen(profile, LARGE_GPU, minutes=10)
    assert narrow.sections["tokenizer"]["vocab_size"] == 4000 < wide.sections["tokenizer"]["vocab_size"]
    given = chosen(profile, CPU, minutes=10, given={"model": {"preset": "transformer-base"}})
    assert given.sections["tokenizer"]["vocab_size"] > 4000


def test_two_scripts_get_a_vocabulary_each_where_there_is_much_text() -> None:
    other = str.maketrans("abcdefghiklmnoprstuvwxyz", "абцдефгхиклмнопрстувшьйз")
    pairs = [(src, tgt.translate(other)) for src, tgt in sentences(300)]
    profile = profile_of(pairs)
    assert profile.shared_letters < 0.05
    assert chosen(profile).sections["tokenizer"]["joint"] is True
    assert chosen(scaled(profile, 1_000_000)).sections["tokenizer"]["joint"] is False
    assert chosen(scaled(profile_of(sentences(300)), 1_000_000)).sections["tokenizer"]["joint"] is True


def test_less_time_makes_a_smaller_model() -> None:
    profile = scaled(profile_of(sentences(500)), 100_000)
    widths = [
        resolved(chosen(profile, CPU, minutes=minutes), minutes=minutes).model for minutes in (1.0, 10_000.0)
    ]
    assert widths[0]["model_dim"] * widths[0]["num_layers"] < widths[1]["model_dim"] * widths[1]["num_layers"]


def test_on_a_cpu_a_model_is_small_enough_for_thousands_of_updates() -> None:
    """However small the corpus is: seeing it often is not enough."""
    profile = scaled(profile_of(sounds(300)), 1000)
    widths = []
    for minutes in (5.0, 60.0, 600.0):
        found = chosen(profile, CPU, minutes=minutes)
        assert found.sections["train"]["max_updates"] > 1000
        widths.append(found.sections["model"].get("model_dim", _WIDTHS[found.sections["model"]["preset"]]))
    assert widths == sorted(widths) and widths[0] < widths[-1] == 256


def test_the_reason_for_the_smallest_batch_does_not_promise_updates() -> None:
    found = chosen(profile_of(sounds(60)), CPU, minutes=10.0)
    assert found.sections["train"]["batch_tokens"] == 1000
    assert dict(found.reasons)["batch size"].endswith("the smallest, because there is little data or time")
    found = chosen(profile_of([(src * 20, tgt) for src, tgt in abstracts(60)]), CPU, minutes=0.5)
    longest = found.sections["data"]["clean"]["max_length"]
    assert found.sections["train"]["batch_tokens"] == longest + 2
    assert dict(found.reasons)["batch size"].endswith(f"with room for a line of {longest:,} pieces")


def test_the_reason_for_validations_says_what_will_happen() -> None:
    profile = profile_of(sentences(300))
    assert dict(chosen(profile).reasons)["validation"].startswith("every ")
    assert dict(chosen(profile, minutes=2.0).reasons)["validation"].startswith(
        "evenly spaced in time, on up to"
    )
    fixed = chosen(profile, minutes=2.0, max_updates=900)  # then the minutes are only a limit
    assert dict(fixed.reasons)["validation"].startswith("every ")


def test_with_little_time_a_cpu_makes_more_and_smaller_updates() -> None:
    profile = scaled(profile_of(sentences(500)), 500)
    tokens, updates = zip(
        *(
            (train["batch_tokens"], train["max_updates"])
            for train in (chosen(profile, CPU, minutes=minutes).sections["train"] for minutes in (0.3, 10.0))
        ),
        strict=True,
    )
    assert tokens == (510, 1000) and 100 < updates[0] < updates[1]
    assert chosen(profile, LARGE_GPU, minutes=0.3).sections["train"]["batch_tokens"] >= 1000


def test_more_pairs_make_a_larger_model_on_a_card() -> None:
    profile = profile_of(sentences(500))
    presets = [
        chosen(scaled(profile, pairs), LARGE_GPU, minutes=100_000.0).sections["model"]["preset"]
        for pairs in (30_000, 1_000_000, 30_000_000)
    ]
    assert presets == ["transformer-small", "transformer-base", "transformer-big"]


def test_few_pairs_that_are_seen_often_are_regularised() -> None:
    profile = scaled(profile_of(sentences(500)), 30_000)
    long, short = (chosen(profile, LARGE_GPU, minutes=minutes).sections for minutes in (20.0, 0.1))
    assert long["objective"]["r_drop"] and "r_drop" not in short["objective"]
    assert long["model"]["dropout"] > short["model"]["dropout"]


def test_a_small_card_accumulates_to_the_same_update() -> None:
    profile = scaled(profile_of(sentences(500)), 1_000_000)
    small, large = (chosen(profile, machine, minutes=600.0) for machine in (SMALL_GPU, LARGE_GPU))
    small, large = small.sections["train"], large.sections["train"]
    assert small["accumulate"] > large["accumulate"] == 1
    assert small["batch_tokens"] * small["accumulate"] == pytest.approx(large["batch_tokens"], rel=0.1)


@pytest.mark.parametrize("updates", [1, 2, 40, 1000, 300_000])
def test_a_given_number_of_updates_is_followed(updates: int) -> None:
    found = chosen(profile_of(sentences(300)), CPU, max_updates=updates)
    train, warmup = found.sections["train"], found.sections["schedule"]["warmup"]
    assert train["max_updates"] == updates
    assert warmup <= updates // 2
    assert 1 <= train["log_every"] <= train["validate_every"] <= updates
    assert resolved(found)


def test_what_follows_from_a_given_field_follows_it() -> None:
    profile = profile_of(words(300))
    free = chosen(profile).sections
    bpe = chosen(profile, given={"tokenizer": {"kind": "bpe"}}).sections
    assert (free["tokenizer"]["kind"], bpe["tokenizer"]["kind"]) == ("char", "bpe")
    assert bpe["train"]["batch_tokens"] <= free["train"]["batch_tokens"]
    small = chosen(profile, given={"train": {"batch_tokens": 500}}).sections
    assert small["train"]["batch_tokens"] == 500
    assert small["optim"]["rate"] <= free["optim"]["rate"]


@pytest.mark.parametrize(
    "preset", ["lstm", "lstm-no-attention", "convs2s", "transformer-base", "markov-skips"]
)
def test_each_family_gets_numbers_of_its_own(preset: str) -> None:
    profile = scaled(profile_of(sentences(300)), 5_000)
    found = chosen(profile, LARGE_GPU, given={"model": {"preset": preset}}, minutes=10.0)
    config = resolved(found, f"model.preset={preset}", minutes=10.0)
    if preset.startswith(("lstm", "convs2s")):
        assert config.model["dropout"] >= 0.3
        assert config.objective.r_drop == 0
    if preset == "convs2s":
        assert config.train.clip < 1
        assert config.model["max_positions"] > config.data.clean.max_length
    if preset == "transformer-base":
        assert config.model["model_dim"] == 512 and config.optim.rate == pytest.approx(1e-3, rel=0.6)


def test_a_recurrent_model_trains_all_positions_at_once_unless_its_attention_was_chosen() -> None:
    def model(**given: Any) -> dict[str, Any]:
        return chosen(profile_of(sentences(300)), given={"model": given}).sections["model"]

    assert model(preset="lstm")["wiring"] == "luong"
    assert model(kind="rnn")["attention"] == "cosine"
    for given in ({"attention": "additive"}, {"wiring": "bahdanau"}, {"input_feeding": True}):
        assert "wiring" not in model(preset="lstm", **given)
    assert "wiring" not in model(preset="lstm-no-attention")


def test_a_few_thousand_words_get_a_small_model_on_a_card() -> None:
    def width(count: int, machine: Machine = LARGE_GPU) -> int:
        profile = scaled(profile_of(sounds(300)), count)
        return resolved(chosen(profile, machine, minutes=3.0), minutes=3.0).model["model_dim"]

    assert (width(3000), width(8000)) == (128, 256)


def test_outputs_that_are_mostly_copied_have_no_r_drop() -> None:
    def weight(overlap: float) -> float:
        profile = dataclasses.replace(scaled(profile_of(sentences(300)), 30_000), overlap=overlap)
        return resolved(chosen(profile, LARGE_GPU, minutes=30.0), minutes=30.0).objective.r_drop

    assert weight(0.5) > 0 and weight(0.9) == 0


@pytest.mark.parametrize("name", [name for name, way in LEARNING.items() if way.learns_from == "text"])
def test_text_is_planned_too(name: str) -> None:
    profile = profile_of([(tgt, tgt) for _, tgt in sentences(300)])
    for machine in (CPU, LARGE_GPU):
        found = choose(profile, machine, learning=LEARNING[name])
        data = {"train": [{"files": ["a.txt"], "format": "text"}]}
        assert (
            resolve_config({**found.sections, "data": data, "objective": {"name": name}}).train.metric
            == "loss"
        )


def test_t5_is_pre_trained_with_steps_in_proportion_to_its_weights() -> None:
    def optimizer(preset: str, **more: Any) -> dict[str, Any]:
        given = {"model": {"preset": preset}, **more}
        found = choose(profile_of(sentences(200)), CPU, learning=LEARNING["spans"], given=given)
        assert found.sections["model"] == {"preset": preset}  # and its own dropout
        return found.sections["optim"]

    assert optimizer("t5-tiny")["relative"] and optimizer("t5-base")["rate"] == 2e-2
    assert "relative" not in optimizer("bart-tiny")
    assert "relative" not in optimizer("t5-tiny", optim={"rate": 1e-3})
