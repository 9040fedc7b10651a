"""Bracket F1 against cases counted by hand after EVALB's rules."""

import pytest

from dragoman.errors import UserError
from dragoman.evaluate.brackets import Brackets, read_tree
from dragoman.evaluate.metrics import SCORES, corpus_metrics

GOLD = "(ROOT (S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT a) (NN mat)))) (. .)))"
"""Counted: S 0-6, NP 0-2, VP 2-6, PP 3-6, NP 4-6; the full stop is no word."""


@pytest.mark.parametrize(
    ("output", "matched", "found"),
    [
        (GOLD, 5, 5),
        ("(S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT a) (NN mat)))) (. .))", 5, 5),
        # Other words and tags change nothing; `(X .)` is punctuation because the reference says so.
        ("(S (NP=2 (A b) (C d)) (VP (E f) (PP (G h) (NP (I j) (K l)))) (X .))", 5, 5),
        # Attached to the noun: VP 2-3 and NP 0-6 wrong, no S, PP and the inner NP right.
        ("(NP (NP (DT the) (NN cat)) (VP (VBZ sits)) (PP (IN on) (NP (DT a) (NN mat))) (. .))", 3, 5),
        # A bracket twice over the same words counts once in the reference.
        ("(S (NP (NP (DT the) (NN cat))) (VP (VBZ sits) (PP (IN on) (NP (DT a) (NN mat)))) (. .))", 5, 6),
        # A flat tree without tags: S alone.
        ("(S the cat sits on a mat .)", 1, 1),
        # Not as many words, unbalanced, words outside, two trees, nothing.
        ("(S (NP (DT the) (NN cat)) (VP (VBZ sits)))", 0, 0),
        (GOLD[:-1], 0, 0),
        (GOLD + ")", 0, 0),
        (GOLD + " mat", 0, 0),
        (GOLD + GOLD, 0, 0),
        ("", 0, 0),
    ],
)
def test_counted_by_hand(output: str, matched: int, found: int) -> None:
    whole = found > 0
    assert Brackets().numbers(output, GOLD) == [matched, 5, found, whole, 1]
    assert SCORES["brackets"]([output], [GOLD]) == pytest.approx(200 * matched / (5 + found))


def test_labels_that_do_not_count_and_those_that_are_the_same() -> None:
    gold = "(TOP (S1 (VP (VB give) (PRT (RP up)) (NP (-NONE- *)) (`` ``) (ADVP-TMP (RB now)))))"
    other = "(VP (VB give) (ADVP (RP up)) (NP (NN x)) (`` ``) (PRT (RB now)))"
    # VP 0-3, ADVP 1-2, ADVP 2-3; the NP spans a trace alone.
    assert Brackets().numbers(gold, gold)[:3] == [3, 3, 3]
    assert Brackets().numbers(other, gold)[:3] == [3, 3, 3]
    tree = read_tree("( (S (NP (-LRB- -LRB-) (NN a)) ) )")
    assert tree is not None
    assert tree.tags == ["-LRB-", "NN"]
    assert tree.spans == [("NP", 0, 2), ("S", 0, 2), ("", 0, 2)]


def test_of_a_whole_test_set_sums_are_divided_and_not_means() -> None:
    half = "(S (NP (DT the) (NN cat)) (VP (VBZ sits) (X (IN on) (DT a) (NN mat))) (. .))"  # 3 of 4
    outputs, references = [half, GOLD, "("], [GOLD] * 3
    found = corpus_metrics(outputs, references, bootstrap=50, further=["brackets"])
    values = {metric.name: metric.value for metric in found}
    assert values["precision"] == pytest.approx(100 * 8 / 9)
    assert values["recall"] == pytest.approx(100 * 8 / 15)
    assert values["bracket F1"] == pytest.approx(100 * 16 / 24)
    assert values["whole trees"] == pytest.approx(200 / 3)
    assert all(metric.half_width is not None for metric in found)
    assert "rules:evalb" in found[-1].signature


@pytest.mark.parametrize("reference", ["SELECT MAX( x )", "f ( a", ""])
def test_a_reference_that_is_no_tree_is_refused(reference: str) -> None:
    with pytest.raises(UserError, match="is no tree in brackets"):
        Brackets().numbers("(S (NP x))", reference)
