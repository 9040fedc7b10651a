"""Metrics of tasks against definitions worked out another way: tables of counts, covariances, brute force."""

import itertools

import numpy as np
import pytest

from dragoman.evaluate.labels import (
    accuracy,
    answer_f1,
    entities,
    entity_scores,
    exact_answer,
    f1_of,
    macro_f1,
    matthews,
    micro_f1,
    pearson,
    spearman,
    squared_error,
)

LABELS = ["a", "b", "c"]


@pytest.fixture(params=range(5))
def sides(request: pytest.FixtureRequest) -> tuple[list[str], list[str]]:
    dice = np.random.default_rng(request.param)
    found, expected = dice.integers(0, 3, (2, 40))
    expected[:20] = found[:20]
    return [LABELS[i] for i in found], [LABELS[i] for i in expected]


def test_labels(sides) -> None:
    found, expected = sides
    table = np.array(
        [[sum(f == x and e == y for f, e in zip(*sides, strict=True)) for x in LABELS] for y in LABELS]
    )
    precision, recall = np.diag(table) / table.sum(0), np.diag(table) / table.sum(1)
    harmonic = 2 * precision * recall / (precision + recall)
    assert accuracy(found, expected) == pytest.approx(np.trace(table) / 40)
    assert [f1_of(label, found, expected) for label in LABELS] == pytest.approx(harmonic.tolist())
    assert macro_f1(found, expected, LABELS) == pytest.approx(harmonic.mean())
    assert micro_f1(found, expected, LABELS) == pytest.approx(accuracy(found, expected))
    right, said, given = (part[:2].sum() for part in (np.diag(table), table.sum(0), table.sum(1)))
    assert micro_f1(found, expected, LABELS[:2]) == pytest.approx(2 * right / (said + given))
    # Gorodkin: the correlation of the two sides as one-hot matrices
    x, y = (np.array([[label == other for other in LABELS] for label in side], float) for side in sides)
    x, y = x - x.mean(0), y - y.mean(0)
    assert matthews(found, expected) == pytest.approx((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def test_matthews_of_two_labels_is_that_of_1975() -> None:
    found, expected = list("1110010110"), list("1010110010")
    tp, tn, fp, fn = (
        sum(f == a and e == b for f, e in zip(found, expected, strict=True))
        for a, b in ("11", "00", "10", "01")
    )
    whole = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews(found, expected) == pytest.approx(whole)
    assert matthews(["1"] * 4, list("1010")) == 0.0


def test_correlations() -> None:
    dice = np.random.default_rng(3)
    x = dice.normal(size=30)
    y = x + dice.normal(size=30)
    assert pearson(x.tolist(), y.tolist()) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert pearson([1.0, 1.0], [1.0, 2.0]) == 0.0
    ties = np.round(y * 2)
    ranks = [[np.mean([sum(v < w for v in s), sum(v <= w for v in s) - 1]) for w in s] for s in (x, ties)]
    assert spearman(x.tolist(), ties.tolist()) == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert spearman(x.tolist(), np.exp(x).tolist()) == pytest.approx(1.0)


def slowly(tags: tuple[str, ...]) -> set[tuple[str, int, int]]:
    """All stretches that begin an entity and go on to its end."""
    found = set()
    for first, last in itertools.combinations_with_replacement(range(len(tags)), 2):
        kinds = {tag[2:] for tag in tags[first : last + 1]}
        inside = len(kinds) == 1 and "O" not in tags[first : last + 1]
        inside = inside and all(tag[0] == "I" for tag in tags[first + 1 : last + 1])
        led = (
            first
            and tags[first][0] == "I"
            and tags[first - 1] != "O"
            and tags[first - 1][2:] == tags[first][2:]
        )
        goes_on = last + 1 < len(tags) and tags[last + 1] == f"I-{tags[last][2:]}"
        if inside and not led and not goes_on:
            found.add((kinds.pop(), first, last))
    return found


def test_entities_by_brute_force() -> None:
    for tags in itertools.product(("O", "B-x", "I-x", "B-y", "I-y"), repeat=4):
        assert entities(tags) == slowly(tags), tags


def test_entity_scores_by_hand() -> None:
    expected = [["B-x", "I-x", "O", "B-y"], ["O", "B-x"]]
    found = [["B-x", "I-x", "O", "B-x"], ["B-y", "B-x"]]
    assert entity_scores(found, expected) == {"precision": 2 / 4, "recall": 2 / 3, "f1": 4 / 7}
    assert entity_scores([["O"]], [["O"]])["f1"] == 0.0


def test_answers_by_hand() -> None:
    assert exact_answer("The Rome!", ["in Rome", "rome"]) == 1.0
    assert exact_answer("Rome", ["in Rome"]) == 0.0
    assert answer_f1("Rome", ["in Rome", "Paris"]) == pytest.approx(2 / 3)
    assert answer_f1("to to be", ["to be be"]) == pytest.approx(4 / 6)
    assert (answer_f1("", []), exact_answer("", []), answer_f1("x", [])) == (1.0, 1.0, 0.0)


def test_the_squared_error_is_the_mean_of_the_squares() -> None:
    found, expected = [1.0, -2.0, 4.5], [0.5, 1.0, 4.5]
    by_hand = sum((a - b) ** 2 for a, b in zip(found, expected, strict=True)) / 3
    assert squared_error(found, expected) == pytest.approx(by_hand)
