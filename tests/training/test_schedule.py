"""Rates as pure functions of the update."""

import itertools
import math

import pytest

from dragoman.errors import UserError
from dragoman.runs.optim import ScheduleConfig, paper_rate
from dragoman.training.optim import scale_at


@pytest.mark.parametrize(("model_dim", "warmup"), [(512, 4000), (128, 1), (256, 777)])
def test_inverse_sqrt_is_equation_3_of_the_paper(model_dim: int, warmup: int) -> None:
    config = ScheduleConfig("inverse_sqrt", warmup=warmup)
    for update in [1, 2, 3, warmup - 1, warmup, warmup + 1, 10 * warmup, 100_000]:
        if update < 1:
            continue
        paper = model_dim**-0.5 * min(update**-0.5, update * warmup**-1.5)
        assert math.isclose(paper_rate(model_dim, warmup) * scale_at(config, update), paper, rel_tol=1e-12)


@pytest.mark.parametrize("name", ["inverse_sqrt", "linear", "cosine", "constant", "plateau"])
def test_every_schedule_warms_up_in_a_line_and_never_rises_after(name: str) -> None:
    config = ScheduleConfig(name, warmup=10, total=50)  # type: ignore[arg-type]
    scales = [scale_at(config, update) for update in range(1, 61)]
    assert scales[:10] == pytest.approx([update / 10 for update in range(1, 11)])
    assert scales[9] == 1.0
    assert all(a >= b for a, b in itertools.pairwise(scales[9:]))


@pytest.mark.parametrize("name", ["inverse_sqrt", "linear", "cosine", "constant", "plateau"])
def test_without_a_warm_up_the_first_update_has_the_full_rate(name: str) -> None:
    config = ScheduleConfig(name, warmup=0, total=50)  # type: ignore[arg-type]
    assert scale_at(config, 1) == pytest.approx(1.0, abs=0.03)


def test_linear_and_cosine_end_at_the_floor() -> None:
    for name in ("linear", "cosine"):
        config = ScheduleConfig(name, warmup=10, total=50, floor=0.1)  # type: ignore[arg-type]
        assert scale_at(config, 50) == pytest.approx(0.1)
        assert scale_at(config, 5000) == pytest.approx(0.1)
        assert scale_at(config, 30) == pytest.approx(0.55)
    assert scale_at(ScheduleConfig("cosine", warmup=0, total=40), 10) == pytest.approx(
        (1 + math.sqrt(0.5)) / 2
    )


def test_plateau_counts_cuts() -> None:
    config = ScheduleConfig("plateau", warmup=4, factor=0.5)
    assert [scale_at(config, 100, cuts) for cuts in range(4)] == [1, 0.5, 0.25, 0.125]
    assert scale_at(config, 2, cuts=1) == 0.5


@pytest.mark.parametrize(("total", "cut_frac", "ratio"), [(100, 0.1, 32.0), (40, 0.3, 8.0), (10, 0.1, 2.0)])
def test_slanted_triangular_is_equation_3_of_ulmfit(total: int, cut_frac: float, ratio: float) -> None:
    config = ScheduleConfig("slanted_triangular", total=total, cut_frac=cut_frac, ratio=ratio)
    cut = round(total * cut_frac)
    for update in range(1, total + 1):
        p = update / cut if update < cut else 1 - (update - cut) / (cut * (1 / cut_frac - 1))
        assert scale_at(config, update) == pytest.approx((1 + p * (ratio - 1)) / ratio, rel=1e-12)
    assert scale_at(config, cut) == 1.0
    assert scale_at(config, 2 * total) == pytest.approx(1 / ratio)


@pytest.mark.parametrize("total", [1, 2, 3, 37, 105])
def test_slanted_triangular_ends_at_its_lowest_whatever_the_length(total: int) -> None:
    config = ScheduleConfig("slanted_triangular", total=total)
    scales = [scale_at(config, update) for update in range(1, total + 1)]
    assert max(scales) == 1.0
    assert all(scale >= 1 / 32 for scale in scales)
    assert total == 1 or scales[-1] == pytest.approx(1 / 32)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cut_frac", 0.0),
        ("ratio", 0.5),
        ("warmup", -1),
        ("total", 10),
        ("floor", 1.5),
        ("factor", 1.0),
        ("patience", 0),
    ],
)
def test_bad_numbers_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(UserError, match=f"^{field}: "):
        ScheduleConfig(**{"warmup": 10, field: value})  # type: ignore[arg-type]


# --- by the clock ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_by_minutes_the_rate_rises_by_updates_and_falls_to_the_floor_with_the_time(name: str) -> None:
    config = ScheduleConfig(name, warmup=100, by="minutes")  # type: ignore[arg-type]
    assert [scale_at(config, update) for update in (1, 50, 100, 1000)] == [0.01, 0.5, 1.0, 1.0]
    falling = [scale_at(config, 10_000, time_share=step / 50) for step in range(51)]
    assert all(a > b for a, b in itertools.pairwise(falling))
    assert scale_at(config, 10_000, time_share=0.5) == pytest.approx(0.5)
    assert falling[-1] == 0.0
    assert scale_at(config, 10_000, time_share=1.3) == 0.0
    with_floor = ScheduleConfig(name, warmup=100, by="minutes", floor=0.1)  # type: ignore[arg-type]
    assert scale_at(with_floor, 10_000, time_share=1.0) == pytest.approx(0.1)


def test_by_minutes_a_slow_machine_has_warmed_up_after_a_fifth_of_the_time() -> None:
    config = ScheduleConfig("linear", warmup=4000, by="minutes")
    assert scale_at(config, 3, time_share=0.1) == pytest.approx(0.5 * 0.9)
    assert scale_at(config, 6, time_share=0.2) == pytest.approx(0.8)
    assert scale_at(config, 9, time_share=0.5) == pytest.approx(0.5)


def test_by_minutes_slanted_triangular_is_the_same_triangle() -> None:
    by_minutes = ScheduleConfig("slanted_triangular", by="minutes")
    by_updates = ScheduleConfig("slanted_triangular", total=1000)
    for update in range(1, 1001):
        assert scale_at(by_minutes, 1, time_share=update / 1000) == pytest.approx(
            scale_at(by_updates, update)
        )


@pytest.mark.parametrize("given", [{"name": "inverse_sqrt"}, {"name": "linear", "total": 9000}])
def test_by_minutes_needs_a_schedule_that_ends_and_no_other_end(given: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^by: "):
        ScheduleConfig(by="minutes", **given)  # type: ignore[arg-type]
