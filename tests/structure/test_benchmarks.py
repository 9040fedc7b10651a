"""The benchmark of all models has all models, each at its size; what is tested elsewhere is there."""

from pathlib import Path

import pytest

from anywhere import SETTINGS
from dragoman.models import MODELS
from dragoman.models.base import Vocab
from matrix import QUICK
from models_cpu import MODELS_AT_WIDTH, width_for

TESTS = Path(__file__).parents[1]


def test_every_model_of_the_package_has_a_line() -> None:
    assert {kind for kind, _ in MODELS_AT_WIDTH.values()} == set(MODELS)


@pytest.mark.parametrize("name", MODELS_AT_WIDTH)
def test_widths_give_equal_sizes(name: str) -> None:
    kind, config_at = MODELS_AT_WIDTH[name]
    _, found = width_for(kind, config_at, Vocab(1000, 1000, shared=True), 1_000_000)
    assert found == 0 or abs(found / 1_000_000 - 1) <= 0.05


def test_the_parts_of_the_suite_that_are_run_elsewhere_are_there() -> None:
    parts = {place for setting in SETTINGS.values() for place in (*setting.whole, *setting.divided)}
    assert [place for place in sorted({*parts, *QUICK}) if not (TESTS / place).exists()] == []
