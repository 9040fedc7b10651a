"""Buckets by hand, scores by sacreBLEU on the subset, intervals that come out the same again."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from dragoman.errors import UserError
from dragoman.evaluate.lengths import (
    choose_edges,
    compare_by_length,
    interval,
    make_buckets,
    paired_bootstrap,
    source_lengths,
)

WORDS = [
    "the",
    "old",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "dreamt",
    "of",
    "red",
    "fish",
    "all",
    "day",
    "long",
]
SOURCES = [" ".join(WORDS[start : start + size]) for size in range(2, 13) for start in range(4)]
REFERENCES = [source.upper() for source in SOURCES]
GOOD = [text.replace("CAT", "DOG") for text in REFERENCES]
BAD = [" ".join(text.split()[: 5 + len(text) % 2]) for text in GOOD]  # the end is forgotten
BUCKETS = make_buckets(source_lengths(SOURCES, "words"), [4, 8])


def test_lengths_are_words_or_characters() -> None:
    texts = ["one  two\u00a0three ", "", "日本語"]
    assert source_lengths(texts, "words") == [3, 0, 1]
    assert source_lengths(texts, "characters") == [15, 0, 3]


def test_given_edges_are_the_greatest_length_of_their_bucket() -> None:
    buckets = make_buckets([5, 1, 6, 11, 10, 0, 40], [5, 10, 11])
    assert [bucket.label for bucket in buckets] == ["≤ 5", "6–10", "11", "> 11"]
    assert [bucket.places for bucket in buckets] == [(0, 1, 5), (2, 4), (3,), (6,)]


def test_buckets_without_a_sentence_are_left_out_and_no_sentence_is() -> None:
    buckets = make_buckets([12, 13, 33], [5, 10, 20, 30, 40])
    assert [bucket.label for bucket in buckets] == ["11–20", "31–40"]
    assert [bucket.places for bucket in buckets] == [(0, 1), (2,)]


@pytest.mark.parametrize("edges", [[], [0, 5], [5, 5], [10, 5], [-3]])
def test_edges_that_do_not_rise_are_refused(edges: list[int]) -> None:
    with pytest.raises(UserError, match="edges"):
        make_buckets([3, 4], edges)


def test_chosen_edges_by_hand() -> None:
    # Steps of 1, 2 and 3 make more than seven buckets of 30 and more out of 30 lengths, steps of 5 make six.
    lengths = [length for length in range(1, 31) for _ in range(30)]
    assert choose_edges(lengths, 30) == [5, 10, 15, 20, 25]
    # With 8 of each length, four lengths make 32; the two that are left over join the last bucket.
    assert choose_edges([length for length in range(1, 31) for _ in range(8)], 32) == [4, 8, 12, 16, 20, 24]
    # A thin beginning joins the first bucket, a thin end the last.
    assert choose_edges([3] + [12] * 60 + [18] * 60 + [22] * 60 + [29] * 5, 30) == [12, 18]


def test_chosen_buckets_cover_everything_and_are_large_enough() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        size, minimum = int(rng.integers(1, 400)), int(rng.integers(1, 60))
        lengths = rng.geometric(rng.uniform(0.01, 0.5), size).tolist()
        buckets = make_buckets(lengths, None, minimum)
        assert sorted(place for bucket in buckets for place in bucket.places) == list(range(size))
        assert len(buckets) == 1 or min(len(bucket.places) for bucket in buckets) >= minimum


def test_equal_lengths_and_blank_lines_are_one_bucket() -> None:
    assert [bucket.label for bucket in make_buckets([7] * 100)] == ["all"]
    assert [bucket.label for bucket in make_buckets([0] * 100)] == ["all"]
    assert [bucket.label for bucket in make_buckets([3])] == ["all"]
    with pytest.raises(UserError, match="no sentence"):
        make_buckets([])


def test_scores_are_those_of_sacrebleu_on_the_subset() -> None:
    assert [len(bucket.places) for bucket in BUCKETS] == [12, 16, 16]
    for metric, expected in (("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)):
        found = compare_by_length({"good": GOOD, "bad": BAD}, REFERENCES, BUCKETS, metric=metric)
        for run, texts in zip(found.runs, (GOOD, BAD), strict=True):
            assert run.overall["bleu"].value == sacrebleu.corpus_bleu(texts, [REFERENCES]).score
            assert run.overall["chrf"].value == sacrebleu.corpus_chrf(texts, [REFERENCES]).score
            for bucket, score in zip(BUCKETS, run.by_length, strict=True):
                subset = [texts[place] for place in bucket.places]
                assert score.value == expected(subset, [[REFERENCES[place] for place in bucket.places]]).score
                assert interval(score) is None
            assert run.p_value is None


def test_intervals_hold_the_score_and_are_the_same_again() -> None:
    first, again = (
        compare_by_length({"good": GOOD, "bad": BAD}, REFERENCES, BUCKETS, bootstrap=100) for _ in range(2)
    )
    assert first == again
    for run in first.runs:
        for bucket, score in zip(BUCKETS, run.by_length, strict=True):
            places = list(bucket.places)
            samples = np.random.default_rng(12345).choice(len(places), (100, len(places)))
            texts = GOOD if run.label == "good" else BAD
            values = np.sort(
                [
                    BLEU(force=True)
                    .corpus_score([texts[places[i]] for i in row], [[REFERENCES[places[i]] for i in row]])
                    .score
                    for row in samples
                ]
            )
            low, high = interval(score) or (0, 0)
            assert high - low == pytest.approx(values[97] - values[2], abs=1e-3)
            assert (low + high) / 2 == pytest.approx(values.mean(), abs=1e-3)


def test_significance_against_the_first_run() -> None:
    found = compare_by_length({"good": GOOD, "same": GOOD, "bad": BAD}, REFERENCES, BUCKETS, bootstrap=200)
    good, same, bad = found.runs
    assert good.p_value is None
    assert same.p_value == 1.0
    assert bad.p_value == paired_bootstrap(GOOD, BAD, REFERENCES, samples=200)
    assert bad.p_value == pytest.approx(1 / 201)


def test_the_rows_hold_every_figure() -> None:
    found = compare_by_length({"good": GOOD, "bad": BAD}, REFERENCES, BUCKETS, bootstrap=50)
    header, *rows = found.rows()
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert len(table) == 2 * (2 + len(BUCKETS))
    whole = [row for row in table if row["source_words"] == "all" and row["run"] == "bad"]
    assert [row["metric"] for row in whole] == ["BLEU", "chrF2"]
    assert float(whole[0]["p_value"]) == pytest.approx(found.runs[1].p_value, abs=1e-6)
    assert whole[1]["p_value"] == ""
    last = table[-1]
    assert (last["source_words"], last["sentences"]) == ("> 8", "16")
    assert float(last["interval_low"]) <= float(last["value"]) <= float(last["interval_high"])
    assert "bs:50" in last["signature"]


def test_bad_input_is_named() -> None:
    with pytest.raises(UserError, match=r"2 translations.*44 references"):
        compare_by_length({"good": GOOD, "short": GOOD[:2]}, REFERENCES, BUCKETS)
    with pytest.raises(UserError, match=r"tokenize.*'moses'"):
        compare_by_length({"good": GOOD}, REFERENCES, BUCKETS, tokenize="moses")
