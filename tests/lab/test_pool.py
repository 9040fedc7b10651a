"""Several runs of the lab at once: what waits for what, what a failure takes with it, a pool that ends."""

from pathlib import Path

from dragoman.lab.book import Lab
from dragoman.lab.catalogue import experiment_named
from dragoman.lab.pool import PoolStep, dependants, ready, run_at_once, steps_of


def test_every_run_is_trained_once_and_before_what_needs_it(tmp_path: Path) -> None:
    place = Lab(tmp_path, quick=True, device="cpu")
    chosen = [experiment_named(name) for name in ("bottleneck", "alignment", "scaled")]
    steps = steps_of(place, chosen)
    shared, alone = steps["bottleneck"].needs, steps["alignment"].needs
    assert alone < shared and len(shared) == 6 and len(alone) == 3
    assert len(steps) == 6 + 12 + 3
    started = [step for step in steps.values() if step.label in ("divided", "not divided")]
    assert len(started) == 6 and all(len(step.needs) == 1 for step in started)
    assert {steps[key].label for step in started for key in step.needs} == {"first weights"}


def test_measurements_come_first_and_then_the_long_runs() -> None:
    steps = {
        "short": PoolStep("a", "x", 1, cost=1.0),
        "long": PoolStep("b", "x", 1, cost=9.0),
        "a": PoolStep("a", needs={"done"}, cost=1.0),
        "b": PoolStep("b", needs={"long"}, cost=9.0),
    }
    assert ready(steps, {"done"}) == ["a", "long", "short"]
    assert ready(steps, set()) == ["long", "short"]


def test_a_failure_takes_what_needs_it_and_no_more() -> None:
    steps = {
        "second": PoolStep("a", "y", needs={"first"}),
        "a": PoolStep("a", needs={"second"}),
        "b": PoolStep("b"),
    }
    assert dependants(steps, "first") == {"first", "second", "a"}


def test_experiments_run_in_processes_of_their_own(tmp_path: Path) -> None:
    place = Lab(tmp_path, quick=True, data=tmp_path, device="cpu")
    names = ("softmax-scale", "transition-matrix")  # the second one looks for a text in the folder
    told: list[str] = []
    failed = run_at_once(place, [experiment_named(name) for name in names], 10**12, 1, told.append)
    assert (tmp_path / "softmax-scale" / "softmax-scale.html").is_file()
    assert list(failed) == ["transition-matrix"] and "text.txt" in failed["transition-matrix"]
    assert len(told) == 2 and any("softmax-scale: holds" in line for line in told)
