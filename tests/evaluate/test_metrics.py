"""Figures and signatures are sacreBLEU's own."""

import pytest
import sacrebleu

from dragoman.errors import UserError
from dragoman.evaluate.metrics import bleu, chrf, corpus_metrics, exact_match

REFERENCES = ["The cat sat on the mat.", "A dog ran under the old hill.", "They ate red fish and bread."] * 5
HYPOTHESES = ["The cat sat on a mat.", "A dog ran under the hill.", "they ate red fish and bread."] * 5


def test_equal_to_sacrebleu() -> None:
    found = {metric.name: metric for metric in corpus_metrics(HYPOTHESES, REFERENCES)}
    assert (
        found["BLEU"].value
        == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
        == bleu(HYPOTHESES, REFERENCES)
    )
    assert found["chrF2"].value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert found["chrF2"].value == chrf(HYPOTHESES, REFERENCES)
    assert found["TER"].value == pytest.approx(
        sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES], case_sensitive=True).score
    )
    assert "tok:13a" in found["BLEU"].signature
    assert "case:mixed" in found["BLEU"].signature
    assert not found["TER"].higher_is_better


def test_lower_case_and_another_tokenizer_show_in_figure_and_signature() -> None:
    found = {m.name: m for m in corpus_metrics(HYPOTHESES, REFERENCES, tokenize="intl", lowercase=True)}
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="intl", lowercase=True).score
    assert found["BLEU"].value == expected
    assert "case:lc" in found["BLEU"].signature
    assert "tok:intl" in found["BLEU"].signature


def test_bootstrap_intervals_hold_the_figure_and_are_the_same_again() -> None:
    first = corpus_metrics(HYPOTHESES, REFERENCES, bootstrap=200)
    for metric, again in zip(first, corpus_metrics(HYPOTHESES, REFERENCES, bootstrap=200), strict=True):
        assert metric == again
        assert metric.half_width is not None
        assert metric.mean is not None
        assert metric.half_width > 0
        assert abs(metric.value - metric.mean) < metric.half_width
        assert "bs:200" in metric.signature


def test_a_bootstrap_of_translations_that_are_mostly_empty() -> None:
    chrf = corpus_metrics(["", "", "", "a b"], ["a b c"] * 4, bootstrap=100)[1]
    assert chrf.name == "chrF2"
    assert chrf.mean is not None
    assert chrf.mean == pytest.approx(chrf.value, abs=10)


def test_exact_match() -> None:
    assert exact_match(["a", "b", "c "], ["a", "x", "c"]) == pytest.approx(100 / 3)


def test_bad_input_is_named() -> None:
    with pytest.raises(UserError, match=r"2 translations.*3 references"):
        corpus_metrics(["a", "b"], ["a", "b", "c"])
    with pytest.raises(UserError, match="no sentence"):
        corpus_metrics([], [])
    with pytest.raises(UserError, match=r"tokenize.*'moses'"):
        corpus_metrics(["a"], ["a"], tokenize="moses")
