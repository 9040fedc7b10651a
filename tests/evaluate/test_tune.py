"""Tuning: ranking one pool by every α gives what every search would have found, and so the same choice."""

from dataclasses import replace

import pytest

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.evaluate.metrics import bleu, chrf
from dragoman.evaluate.tune import translate_by, tune_search
from letters import letters_translator

ALPHAS = (0.0, 0.6, 2.0)
SHORT = {"max_ratio": 0.0, "max_extra": 7}
TEXTS = ["ab a", "", "ba b", "aab ab b", "b", "abab aa b", "   ", "bb a"]
REFERENCES = ["a ba", "", "b ab", "b ba baa", "b", "b aa baba", "", "a bb"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return letters_translator(TEXTS, 7)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stop": "bound"},
        {"stop": "limit", "length_penalty": "gnmt"},
        {"stop": "complete"},
        {"stop": "complete", "coverage": 0.3},
        {"repetition_penalty": 1.5, "no_repeat_ngram": 2},
        {"loop_guard": False, "min_ratio": 0.5},
    ],
    ids=lambda fields: "-".join(fields) or "default",
)
def test_a_pool_has_what_every_search_finds(fields: dict[str, object], translator: Translator) -> None:
    for beam in (1, 4):
        start = SearchConfig(beam=beam, **SHORT, **fields)  # type: ignore[arg-type]
        searches = [replace(start, alpha=alpha) for alpha in ALPHAS]
        found = translate_by(translator, TEXTS, searches, batch_tokens=30)
        expected = [translator.translate(TEXTS, search=search) for search in searches]
        assert found == expected
        if beam == 4 and not fields:
            assert len({tuple(texts) for texts in expected}) > 1  # α does matter here


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
@pytest.mark.parametrize("fields", [{}, {"groups": 2}], ids=["one-group", "two-groups"])
def test_the_choice_is_that_of_brute_force(
    metric: str, fields: dict[str, int], translator: Translator
) -> None:
    beams, score = (2, 4), {"bleu": bleu, "chrf": chrf}[metric]
    start = SearchConfig(beam=4, **SHORT, **fields)  # type: ignore[arg-type]
    expected = {}
    for beam in beams:
        for alpha in ALPHAS:
            search = replace(start, beam=beam, alpha=alpha)
            expected[beam, alpha] = score(translator.translate(TEXTS, search=search), REFERENCES)
    found = tune_search(
        translator,
        TEXTS,
        REFERENCES,
        beams=[4, 2, 4],
        alphas=ALPHAS,
        metric=metric,  # type: ignore[arg-type]
        search=start,
    )
    assert found.scores == expected
    best = max(expected.values())
    assert found.best == best
    equals = [key for key, value in expected.items() if value == best]
    assert (found.chosen.beam, found.chosen.alpha) == min(equals, key=lambda key: (key[0], abs(key[1] - 1)))


def test_other_methods_are_refused(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"search\.method: .* not sample"):
        tune_search(
            translator, TEXTS, REFERENCES, beams=[1], alphas=[1.0], search=SearchConfig(method="sample")
        )
    with pytest.raises(UserError, match="8 translations cannot be held against 1"):
        tune_search(translator, TEXTS, ["x"], beams=[1], alphas=[1.0])
