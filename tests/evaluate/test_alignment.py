"""Alignment error rate, by hand."""

from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.evaluate.alignment import GoldLinks, read_gold, score_alignments


def test_scores_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("1-1 2-2 3p2 \n\n1p1 2-3\n", encoding="utf-8")
    gold = read_gold(path, first=1)
    assert gold[0] == GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    assert gold[1] == GoldLinks(frozenset(), frozenset())
    # 5 links; 2 are sure, 4 possible; 3 are sure in all
    found = [[(0, 0), (2, 1), (4, 4)], [], [(0, 0), (1, 2), (1, 2)]]
    scores = score_alignments(found, gold)
    assert scores.precision == pytest.approx(4 / 5)
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.error_rate == pytest.approx(1 - (2 + 4) / (5 + 3))


def test_all_right_and_all_wrong() -> None:
    gold = [GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0), (0, 1)}))]
    assert score_alignments([[(0, 0), (0, 1)]], gold).error_rate == 0
    assert score_alignments([[(1, 1)]], gold).error_rate == 1
    assert score_alignments([[]], gold).error_rate == 1
    assert score_alignments([[]], [GoldLinks(frozenset(), frozenset())]).error_rate == 0


@pytest.mark.parametrize(
    ("line", "message"), [("0-0 1+2", r"gold\.txt:1.*'1\+2'"), ("-1-0", "'-1-0'"), ("0-1 x", "'x'")]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "gold.txt"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_gold(path)


def test_words_before_the_first_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("1-1\n0-1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"gold\.txt:2: words are counted from 1"):
        read_gold(path, first=1)


def test_other_numbers_of_lines_are_refused() -> None:
    with pytest.raises(UserError, match="0 lines for 1 pairs"):
        score_alignments([[]], [])
