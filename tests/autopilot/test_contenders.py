"""Who takes part in a contest, and how its time is divided."""

import pytest
from tests.autopilot.corpora import profile_of, sounds

from dragoman.autopilot.choose import choose
from dragoman.autopilot.contenders import DEFAULT, Contender, affordable, contenders, rungs, total_units
from dragoman.autopilot.machine import Machine
from dragoman.learning import LEARNING

SENTENCES = [
    (f"the {n} cats are here and {n} there", f"die {n} Katzen sind hier und {n} da") for n in range(900)
]


def found(pairs: list[tuple[str, str]], *given: str) -> dict[str, Contender]:
    profile = profile_of(pairs)
    chosen = choose(profile, Machine(cores=2), minutes=10.0, learning=LEARNING["translate"])
    return {each.name: each for each in contenders(profile, chosen.sections, set(given))}


def test_the_default_comes_first_and_everybody_changes_something_else() -> None:
    for pairs in (sounds(900), SENTENCES):
        all_of_them = found(pairs)
        assert next(iter(all_of_them)) == DEFAULT and not all_of_them[DEFAULT].overrides
        assert len(all_of_them) >= 6
        assert len({each.overrides for each in all_of_them.values()}) == len(all_of_them)


def test_what_is_given_is_not_changed() -> None:
    assert "higher-rate" in found(sounds(900))
    assert not {"higher-rate", "lower-rate"} & found(sounds(900), "optim.rate").keys()
    assert not {"higher-rate", "lower-rate"} & found(sounds(900), "optim").keys()
    assert "smaller-model" in found(sounds(900)) and "smaller-model" not in found(
        sounds(900), "model.model_dim"
    )


def test_long_texts_are_not_spelt() -> None:
    assert "characters" not in found([(f"{a} " * 40, f"{b} " * 40) for a, b in SENTENCES])


@pytest.mark.parametrize(
    ("count", "rounds", "units"),
    [
        (2, [(2, 1)], 2),
        (3, [(3, 1), (2, 2)], 5),
        (4, [(4, 1), (2, 2)], 6),
        (6, [(6, 1), (3, 2), (2, 4)], 13),
        (8, [(8, 1), (4, 2), (2, 4)], 16),
    ],
)
def test_half_go_on_with_twice_the_time(count: int, rounds: list[tuple[int, int]], units: int) -> None:
    assert rungs(count) == rounds
    assert total_units(count) == units


def test_as_many_as_there_is_time_for() -> None:
    assert affordable(9, 160.0, 10.0) == 8
    assert affordable(9, 159.0, 10.0) == 6
    assert affordable(3, 159.0, 10.0) == 3
    assert affordable(9, 20.0, 10.0) == 2
    assert affordable(9, 19.0, 10.0) == 0
