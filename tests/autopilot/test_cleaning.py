"""No rule leaves out more than one pair in a hundred, unless a person asks for it."""

from pathlib import Path
from typing import Any

import pytest
from tests.autopilot.corpora import KINDS, labels, profile_of, queries, sentences, words
from tests.autopilot.test_choices import chosen

from dragoman.autopilot.cleaning import MOST, max_ratio
from dragoman.autopilot.tokens import count_tokens, fewest_tokens
from dragoman.config import from_dict
from dragoman.data.config import CleanConfig
from dragoman.training import plan as plan_module
from dragoman.training.display import NoDisplay
from dragoman.training.plan import make_plan


@pytest.fixture(autouse=True)
def nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "estimate", lambda *_: None)


SMALL = {
    "train.max_updates": 1,
    "train.validate_sentences": 0,
    "train.metric": "loss",
    "model.model_dim": 16,
    "model.num_layers": 1,
    "train.device": "cpu",
}


def written(pairs: Any, folder: Path) -> list[str]:
    for name, side in (("a.en", 0), ("a.de", 1)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / "a.en"), str(folder / "a.de")]


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_drops_more_than_one_in_a_hundred(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind](300)
    pairs += pairs[:100]
    plan = make_plan(written(pairs, tmp_path), NoDisplay(), out=tmp_path / "run", overrides=SMALL)
    dropped = getattr(plan.prepared, "dropped")  # noqa: B009 (of pairs alone)
    assert all(count <= MOST * len(pairs) for count in dropped.values()), dropped


def test_what_a_person_asks_for_is_dropped(tmp_path: Path) -> None:
    pairs = [*queries(100), *sentences(200)]
    overrides = {**SMALL, "data.clean.max_ratio": 9, "data.clean.drop_duplicates": True}
    plan = make_plan(
        written([*pairs, *pairs], tmp_path), NoDisplay(), out=tmp_path / "run", overrides=overrides
    )
    dropped = getattr(plan.prepared, "dropped")  # noqa: B009
    assert dropped["duplicate"] >= 300 and dropped["ratio"] > 2


def test_a_widened_rule_shows_three_of_its_pairs() -> None:
    found = chosen(profile_of(queries(300)))
    assert "max_ratio" in found.sections["data"]["clean"]
    assert len(found.shown) == 3
    assert "1 : 9" in dict(found.reasons)["cleaning"]


def test_a_label_may_be_one_piece_however_long_it_is() -> None:
    profile = profile_of(labels(300))
    counts, fewest = count_tokens(profile, "bpe"), fewest_tokens(profile, "bpe")
    assert set(fewest.tgt) == {1} and fewest.src == counts.src and max(counts.tgt) == 2
    assert max_ratio(counts, fewest).value >= 2 * max(counts.src) - 1
    assert fewest_tokens(profile_of(sentences(300)), "bpe") == count_tokens(profile_of(sentences(300)), "bpe")


def test_usual_corpora_keep_the_usual_rules() -> None:
    found = chosen(profile_of(sentences(300)))
    assert "data" not in found.sections and not found.shown
    assert from_dict(CleanConfig, {}) == CleanConfig()


def test_duplicates_are_kept_where_they_are_frequent() -> None:
    pairs = words(100)
    assert chosen(profile_of([*pairs, *pairs])).sections["data"]["clean"] == {"drop_duplicates": False}
    assert "data" not in chosen(profile_of([*pairs, pairs[0]])).sections
