"""A cancelled sentence leaves the search before its next step, and the others do not notice."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from decode.test_continuous import random_model, random_sources
from dragoman.decode.gpu.continuous import Continuous, Shape
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import Translator
from dragoman.shapes import Tensor
from odd_inputs import tiny_translator
from searching import batch_of, jobs_of

TEXTS = ["the cat sat", "a dog ran under the red mat.", "the blue dog slept", "a mat and then a cat"]
LONG: dict[str, Any] = {"min_length": 20, "max_extra": 30}
SEARCHES = {
    "greedy": SearchConfig(beam=1, **LONG),
    "beam": SearchConfig(beam=4, n_best=2, **LONG),
    "groups": SearchConfig(beam=4, groups=2, diversity=0.5, **LONG),
    "samples": SearchConfig(method="sample", n_best=3, **LONG),
}


class Steps:
    """Counts the steps of a scorer, and how many rows they had."""

    def __init__(self, scorer: Scorer, patch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        step = scorer.step

        def counted(last_ids: Tensor, state: object) -> object:
            self.rows.append(len(last_ids))
            return step(last_ids, state)  # type: ignore[arg-type]

        patch.setattr(scorer, "step", counted)

    def after(self, count: int) -> Cancelled:
        """Cancelled as soon as so many steps were made."""
        return lambda: len(self.rows) >= count


@pytest.fixture(scope="module")
def translator() -> Translator:
    return tiny_translator()


@pytest.fixture
def steps(translator: Translator) -> Iterator[Steps]:
    with pytest.MonkeyPatch.context() as patch:
        yield Steps(translator.scorer, patch)


@pytest.mark.parametrize("name", SEARCHES)
def test_one_leaves_and_the_others_stay_as_they_are(translator: Translator, steps: Steps, name: str) -> None:
    search = SEARCHES[name]
    whole = translator.hypotheses(TEXTS, search=search)
    steps.rows.clear()
    cancelled = [steps.after(10_000) for _ in TEXTS]
    cancelled[1] = steps.after(5)
    found = translator.hypotheses(TEXTS, search=search, cancelled=cancelled)
    assert [own for place, own in enumerate(found) if place != 1] == [
        own for place, own in enumerate(whole) if place != 1
    ]
    assert steps.rows[4] * 3 == steps.rows[5] * 4  # its rows are gone at once
    assert len(steps.rows) > 20


@pytest.mark.parametrize("name", SEARCHES)
def test_when_all_have_left_no_further_step_is_made(translator: Translator, steps: Steps, name: str) -> None:
    found = translator.hypotheses(TEXTS, search=SEARCHES[name], cancelled=[steps.after(3)] * len(TEXTS))
    assert len(steps.rows) == 3 and len(found) == len(TEXTS)
    assert translator.translate(TEXTS, search=SEARCHES[name], cancelled=[steps.after(3)] * 4) == [""] * 4
    assert len(steps.rows) == 3


def test_protected_and_required_are_given_up_too(translator: Translator, steps: Steps) -> None:
    texts = ["the cat {0} sat https://example.org", "a dog"]
    search = SEARCHES["beam"]
    cancelled = [steps.after(4), steps.after(10_000)]
    plain = translator.hypotheses(texts, search=search, protect=("placeholder", "url"))
    steps.rows.clear()
    found = translator.hypotheses(texts, search=search, protect=("placeholder", "url"), cancelled=cancelled)
    assert found[1] == plain[1]
    steps.rows.clear()
    translator.hypotheses(
        texts, search=search, required=[["cat"], ["dog"]], cancelled=[steps.after(2)] * 2, align=True
    )
    assert len(steps.rows) == 2


@pytest.mark.parametrize("shape", [Shape(16, 64, 16), Shape(2, 64, 16)])
def test_in_places_of_fixed_shape(shape: Shape) -> None:
    model, (ids, mask) = random_model(40, 3), random_sources(40, 3, count=6)
    config = SearchConfig(beam=3, n_best=2, min_length=10)

    def run(cancelled: list[Cancelled] | None) -> list[list[tuple[int, ...]]]:
        with torch.inference_mode():
            jobs = jobs_of(ids, mask, cancelled=cancelled)
            found = Continuous(model, config, shape).run(batch_of(model, jobs, config))
        return [[one.tokens for one in own] for own in found]

    asked = [0] * len(ids)

    def after(row: int, times: int) -> Cancelled:
        def cancelled() -> bool:
            asked[row] += 1
            return asked[row] > times

        return cancelled

    found = run([after(row, 4 if row == 2 else 10_000) for row in range(len(ids))])
    whole = run(None)
    assert found[2] == [] and whole[2]
    assert found[:2] + found[3:] == whole[:2] + whole[3:]
