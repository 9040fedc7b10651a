"""What is chosen for which corpus and machine."""

import dataclasses
import random
from typing import Any

import pytest
from tests.autopilot.corpora import (
    KINDS,
    abstracts,
    commands,
    inflections,
    long_symbols,
    profile_of,
    queries,
    sentences,
    sounds,
    summed_up,
    words,
)

from dragoman.autopilot.choice import Chosen
from dragoman.autopilot.choose import choose
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.tokens import count_tokens, is_arithmetic
from dragoman.extras import EXTRAS
from dragoman.learning import LEARNING
from dragoman.learning.resolve import resolve
from dragoman.runs.config import RunConfig

CPU = Machine(cores=2)
SMALL_GPU = Machine(cores=8, gpu_bytes=8 << 30)
LARGE_GPU = Machine(cores=16, gpu_bytes=140 << 30)
TRANSLATE = LEARNING["translate"]
_WIDTHS = {"transformer-tiny": 128, "transformer-small": 256}


def chosen(profile: Profile, machine: Machine = CPU, **more: Any) -> Chosen:
    return choose(profile, machine, learning=TRANSLATE, **more)


def resolved(found: Chosen, *overrides: str, minutes: float | None = None) -> RunConfig:
    data = {"train": [{"files": ["a.en", "a.de"]}], **found.sections.get("data", {})}
    return resolve({**found.sections, "data": data}, overrides, minutes)


def scaled(profile: Profile, pairs: int) -> Profile:
    """The same kind of corpus with another number of pairs."""
    times = pairs / profile.pairs
    sides = [
        dataclasses.replace(
            side,
            characters=int(side.characters * times),
            words=int(side.words * times),
            single_words=int(side.single_words * times),
        )
        for side in (profile.src, profile.tgt)
    ]
    return dataclasses.replace(profile, pairs=pairs, src=sides[0], tgt=sides[1])


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


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        (words(300), "char"),
        (sounds(300), "char"),
        (long_symbols(300), "word"),
        (inflections(300), "char"),
        (inflections(6000), "word"),
        (sentences(300), "bpe"),
        (queries(300), "bpe"),
    ],
)
def test_the_kind_of_tokenizer_follows_from_the_kind_of_text(pairs: Any, kind: str) -> None:
    assert chosen(profile_of(pairs)).sections["tokenizer"]["kind"] == kind


def test_features_become_pieces_and_words_are_spelt() -> None:
    from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

    pairs = inflections(6000)
    section = chosen(profile_of(pairs)).sections["tokenizer"]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], TokenizerConfig(**section))
    pieces = tokenizer.pieces(tokenizer.encode("V;PST;3;SG prolog"))
    assert pieces[:3] == ["▁V", ";", "PST"] and pieces[-6:] == list("prolog")


def test_symbols_become_pieces_and_words_are_spelt() -> None:
    from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

    pairs = long_symbols(300)
    section = chosen(profile_of(pairs)).sections["tokenizer"]
    assert section["joint"] is False
    config = TokenizerConfig(**section)
    src, tgt = (Tokenizer.train([pair[side] for pair in pairs], config) for side in (0, 1))
    assert src.pieces(src.encode("prolog"))[-6:] == list("prolog")
    assert tgt.pieces(tgt.encode("AH1 BH1")) == ["▁AH1", "▁BH1"]


@pytest.mark.parametrize(
    ("pairs", "metric"),
    [
        (words(300), "exact"),
        (sounds(300), "exact"),
        (queries(300), "exact"),
        (sentences(300), "chrf"),
        (sentences(6000), "bleu"),
    ],
)
def test_the_metric_follows_from_the_kind_of_target(pairs: Any, metric: str) -> None:
    assert chosen(profile_of(pairs)).sections["train"]["metric"] == metric


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


def test_words_of_closed_sets_are_pieces_with_their_punctuation() -> None:
    moves = [
        (f"please go left now {n} times", " ".join(["I_TURN_LEFT", "I_GO"] * n)) for n in (1, 2, 3, 4)
    ] * 100
    found = chosen(profile_of(moves))
    assert found.sections["tokenizer"]["split_punctuation"] is False
    copied = dataclasses.replace(profile_of(moves), copied_words=0.5)
    for other in (copied, profile_of(sentences(300))):
        assert "split_punctuation" not in chosen(other).sections["tokenizer"]


def test_identifiers_that_recur_are_pieces() -> None:
    """`T0.NAME` is one piece, so targets are shorter; names of variables that occur once are spelt."""
    profile = dataclasses.replace(profile_of(queries(300)), copied_words=0.9)
    found = chosen(profile)
    assert found.sections["tokenizer"] == {
        "kind": "bpe",
        "keep_identifiers": True,
        "joint": True,
        "vocab_size": found.sections["tokenizer"]["vocab_size"],
    }
    assert profile.tgt.segments_a_name > 1.3 > profile.src.segments_a_name
    shorter, longer = (
        count_tokens(dataclasses.replace(profile, tgt=tgt), "bpe").tgt_mean
        for tgt in (profile.tgt, dataclasses.replace(profile.tgt, segments_a_name=1.0))
    )
    assert shorter < 0.8 * longer
    rare = dataclasses.replace(profile, tgt=dataclasses.replace(profile.tgt, frequent_words=0.8))
    for other in (rare, profile_of(sentences(300))):
        assert "keep_identifiers" not in chosen(other).sections["tokenizer"]


@pytest.mark.parametrize("form", ["{a} + {b}", "{a}+{b}="])
def test_arithmetic_is_spelt_digit_by_digit_with_little_dropout(form: str) -> None:
    sums = [(form.format(a=a, b=7 * a % 600), str(a + 7 * a % 600)) for a in range(10, 900)]
    profile = scaled(profile_of(sums), 8000)
    for machine in (LARGE_GPU, Machine(2)):
        found = chosen(profile, machine, minutes=3.0)
        assert found.sections["tokenizer"]["kind"] == "char"
        assert found.sections["model"]["dropout"] == 0.1
        assert "r_drop" not in found.sections["objective"]
        assert found.sections["train"]["metric"] == "exact"
    dated = [
        (f"day {a % 28 + 1} of month {a % 12 + 1} in 20{a % 90 + 10}", f"20{a % 90 + 10}") for a in range(500)
    ]
    assert not is_arithmetic(profile_of(dated))


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


def test_a_model_copies_where_what_is_rare_stands_in_the_source() -> None:
    def copies(profile: Profile, **given: Any) -> bool:
        found = chosen(profile, given=given)
        said = any("cannot be exported" in reason for name, reason in found.reasons if name == "copying")
        assert said == bool(found.sections["model"].get("copy"))
        return said

    queried = dataclasses.replace(profile_of(queries(300)), copied_words=0.9)
    translated = dataclasses.replace(profile_of(sentences(300)), copied_words=0.35, copied_letters=0.9)
    spelt = dataclasses.replace(profile_of(words(300)), copied_words=0.9)
    assert copies(queried) and not copies(translated) and not copies(spelt)
    assert not copies(scaled(queried, 1_000_000))
    assert copies(queried, model={"preset": "lstm"})
    assert not copies(queried, model={"copy": False})


def test_summaries_are_scored_by_rouge_and_their_sources_are_cut() -> None:
    def read(pairs: Any, **given: Any) -> tuple[str, int | None]:
        config = resolved(chosen(profile_of(pairs), given=given))
        return config.train.metric, config.data.clean.cut_source

    summaries = summed_up(400)
    metric, cut = read(summaries)
    assert metric == ("chrf" if EXTRAS["rouge"].missing else "rouge")
    assert cut is not None and cut < max(len(src.split()) for src, _ in summaries)
    replies = [(src, other) for (src, _), (_, other) in zip(summaries, summaries[7:], strict=False)]
    assert read(replies) == ("chrf", None)
    assert read(summaries, data={"clean": {"max_length": 600}})[1] is None
    assert read(summaries, data={"clean": {"cut_source": 100}})[1] == 100
    assert read(sentences(400))[1] is None


def test_brackets_that_are_always_valid_are_kept_valid() -> None:
    def brackets(pairs: Any) -> str:
        return resolved(chosen(profile_of(pairs))).search.brackets

    assert brackets(queries(300)) == "()"
    assert brackets([*queries(300), ("which?", "a )( b")]) == ""
    assert (
        brackets([(src, f"[{tgt}]" if n % 2 else tgt) for n, (src, tgt) in enumerate(queries(300))]) == "()[]"
    )
    assert brackets([(src, f"{tgt} (1)") for src, tgt in sentences(300)]) == ""


def test_trees_over_the_words_of_their_sources_are_scored_by_their_brackets() -> None:
    trees = [
        (src, f"(S (NP (N {' (N '.join(src.split()).replace(' (N', ') (N')})))") for src, _ in sentences(300)
    ]
    config = resolved(chosen(profile_of(trees)))
    assert (config.train.metric, config.search.brackets) == ("brackets", "()")
    others = [(" ".join(src.split()[:3]), tree) for src, tree in trees]
    assert resolved(chosen(profile_of(others))).train.metric == "exact"


def test_outputs_may_be_as_long_as_targets_are() -> None:
    for make in (queries, commands):
        profile = profile_of(make(300))
        search = resolved(chosen(profile)).search
        from dragoman.autopilot.tokens import count_tokens

        counts = count_tokens(profile, "bpe")
        for src, tgt in zip(counts.src, counts.tgt, strict=True):
            assert search.longest(src + 1) > tgt
    assert resolved(chosen(profile_of(sentences(300)))).search.max_ratio == 2.0


def test_outputs_may_repeat_themselves_where_targets_do() -> None:
    assert resolved(chosen(profile_of(commands(300)))).search.loop_guard is False
    assert resolved(chosen(profile_of(sentences(300)))).search.loop_guard is True


def test_short_targets_bound_the_search() -> None:
    chance = random.Random(1)
    pairs = [(f"{src} " * 30, " ".join(tgt.split()[: chance.randint(2, 5)])) for src, tgt in sentences(200)]
    search = resolved(chosen(profile_of(pairs))).search
    assert search.max_length is not None and search.max_length < 100


@pytest.mark.parametrize("name", [name for name, way in LEARNING.items() if way.learns_from == "text"])
def test_text_is_planned_too(name: str) -> None:
    profile = profile_of([(tgt, tgt) for _, tgt in sentences(300)])
    for machine in (CPU, LARGE_GPU):
        found = choose(profile, machine, learning=LEARNING[name])
        data = {"train": [{"files": ["a.txt"], "format": "text"}]}
        assert resolve({**found.sections, "data": data, "objective": {"name": name}}).train.metric == "loss"


def test_few_inflected_words_get_invented_pairs() -> None:
    def chosen(pairs: list[tuple[str, str]], **given: Any) -> int:
        found = choose(
            profile_of(pairs), Machine(cores=2), minutes=5.0, learning=LEARNING["translate"], given=given
        )
        return found.sections["objective"].get("invented", 0)

    words = [f"{a}{b}{c}m" for a in "bcdfghjklmnpqrst" for b in ("ar", "el", "ino", "us") for c in "bdgtkplr"]
    inflected = [(f"V;PST;{n % 3 + 1};SG {word}", f"{word}ed") for n, word in enumerate(words)]
    assert chosen(inflected[:100]) == 10
    assert 0 < chosen(inflected) < 10
    assert chosen([*inflected, *inflected]) == 0
    assert chosen(inflected, tokenizer={"joint": False}) == 0
    assert chosen(sounds(400)) == 0  # nothing is copied
    assert chosen([(a, a[::-1]) for a in words]) == 0


def test_careless_sources_are_for_sentences_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(pairs: list[tuple[str, str]], machine: Machine = LARGE_GPU, **given: Any) -> float:
        found = choose(profile_of(pairs), machine, learning=LEARNING["translate"], given=given)
        return found.sections["objective"].get("source_noise", 0.0)

    assert chosen(sentences(300)) == 0.0  # until it is measured
    monkeypatch.setattr("dragoman.autopilot.training._CARELESS", 0.05)
    assert chosen(sentences(300)) == 0.05
    assert chosen(sentences(300), CPU) == 0.0
    assert chosen(sounds(400)) == 0.0
    assert chosen(sentences(300), tokenizer={"dropout": 0.1}) == 0.0


def test_t5_is_pre_trained_with_steps_in_proportion_to_its_weights() -> None:
    def optimizer(preset: str, **more: Any) -> dict[str, Any]:
        given = {"model": {"preset": preset}, **more}
        found = choose(profile_of(sentences(200)), CPU, learning=LEARNING["spans"], given=given)
        assert found.sections["model"] == {"preset": preset}  # and its own dropout
        return found.sections["optim"]

    assert optimizer("t5-tiny")["relative"] and optimizer("t5-base")["rate"] == 2e-2
    assert "relative" not in optimizer("bart-tiny")
    assert "relative" not in optimizer("t5-tiny", optim={"rate": 1e-3})
