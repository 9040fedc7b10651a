"""Learning curves in characters."""

from dragoman.training.report import text_curve


def test_lowest_and_highest_are_at_the_corners() -> None:
    assert text_curve([(0, 1.0), (50, 3.0), (100, 21.0)], height=3, width=11) == [
        "21.0 │          ●",
        "     │",
        "1.00 │●    ●",
        "     └───────────",
        "      0       100",
    ]


def test_a_flat_curve_and_no_curve() -> None:
    flat = text_curve([(1, 2.0), (2, 2.0)], height=3, width=5)
    assert flat[2] == "2.00 │●   ●"
    assert text_curve([(1, 2.0)]) == []
