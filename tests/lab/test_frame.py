"""The frame of the lab: statistics, made-up data, runs that are shared, pages."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.lab.bench import Bench, is_finished
from dragoman.lab.book import Lab
from dragoman.lab.catalogue import experiment_named
from dragoman.lab.draw import bars, lines
from dragoman.lab.experiment import Experiment, Setting, Size, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.page import html_page, table_of
from dragoman.lab.statistics import half_width, mean, shown, slope, surely_greater
from dragoman.lab.tasks import Task, files_of, make
from dragoman.training.display import NoDisplay

TASK = Task("copy", 40, longest=4, tests=10)


def rule(numbers: dict[str, dict[str, list[float]]]) -> "object":
    """Holds if there is a loss."""
    return holds("yes") if numbers else fails("no")


def tiny(settings: dict[str, Setting], measured: list[str]) -> Experiment:
    def measure(bench: Bench) -> dict[str, dict[str, list[float]]]:
        measured.append("measured")
        return bench.each(lambda run: {"loss": final(run)})

    return Experiment(
        name="tiny-experiment",
        lecture=1,
        claim="It < trains.",
        how="By hand.",
        literature="None.",
        measure=measure,
        rule=rule,  # type: ignore[arg-type]
        figure=lambda numbers: bars(numbers, "loss"),
        settings=lambda _size: settings,
        quick=Size(updates=2, seeds=2, width=8),
    )


def test_intervals_are_those_of_students_t() -> None:
    values = [1.0, 2.0, 4.0]
    spread = math.sqrt(sum((value - mean(values)) ** 2 for value in values) / 2)
    assert half_width(values) == pytest.approx(4.303 * spread / math.sqrt(3))
    assert half_width([1.0]) == math.inf


def test_surely_greater_compares_seed_by_seed() -> None:
    assert surely_greater([1.0, 5.0, 9.0], [0.9, 4.9, 8.9])  # far apart, yet each is greater by as much
    assert not surely_greater([1.0, 5.0, 9.0], [0.9, 6.0, 8.0])
    assert not surely_greater([1.0, 5.0, 9.0], [0.9, 4.9, 8.9], by=0.2)


def test_a_line_through_points_is_found_again() -> None:
    assert slope([1, 2, 3], [5, 3, 1]) == pytest.approx((-2.0, 1.0))


def test_numbers_are_shown_with_their_spread() -> None:
    assert shown([0.25]) == "0.2500"
    assert shown([-3.0]) == "−3"
    assert shown([1.0, 2.0, 3.0]) == "2 ± 2.484"


def test_a_task_is_the_same_everywhere_and_keeps_test_sentences_apart() -> None:
    task = Task("language", 300, longest=12, tests=50)
    first, again = make(task), make(task)
    assert first == again
    assert not {source for source, _ in first["train"]} & {source for source, _ in first["test"]}
    assert (
        make(Task("reverse", 5, longest=5))["test"][0][1].split()[::-1]
        == make(Task("reverse", 5, longest=5))["test"][0][0].split()
    )


def test_longer_test_sentences_are_longer_than_training(tmp_path: Path) -> None:
    found = make(Task("copy", 100, longest=3, longest_test=9, tests=100))
    assert max(len(source.split()) for source, _ in found["train"]) == 3
    assert max(len(source.split()) for source, _ in found["test"]) > 6
    assert all(Path(name).is_file() for files in files_of(TASK, tmp_path).values() for name in files)


def test_own_pairs_take_the_place_of_the_made_up_language(tmp_path: Path) -> None:
    language = Task("language", 10)
    with pytest.raises(UserError, match=r"expected train.tsv, or two files"):
        files_of(language, tmp_path / "made", tmp_path)
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.en").write_text("a\n")
        (tmp_path / f"{part}.de").write_text("b\n")
    found = files_of(language, tmp_path / "made", tmp_path)
    assert [Path(name).name for name in found["train"]] == ["train.de", "train.en"]
    assert files_of(TASK, tmp_path / "made", tmp_path)["train"][0].endswith("train.tsv")


def test_runs_on_own_pairs_are_measured_on_own_pairs(tmp_path: Path) -> None:
    for part, count in (("train", 30), ("valid", 5), ("test", 7)):
        lines = "".join(f"w{number} x\tx w{number}\n" for number in range(count))
        (tmp_path / f"{part}.tsv").write_text("src\ttgt\n" + lines)
    size = Size(updates=1, seeds=1, width=8, tests=3)
    bench = Bench(size, tmp_path / "lab", {"a": Setting(Task("language", 10))}, (), tmp_path, "cpu")
    bench.train(lambda *_: NoDisplay())
    assert bench.test_pairs("a") == [("w0 x", "x w0"), ("w1 x", "x w1"), ("w2 x", "x w2")]
    assert bench.runs["a"][0].config.data.train[0].files == (str(tmp_path / "train.tsv"),)


def test_runs_are_trained_once_and_numbers_measured_once(tmp_path: Path) -> None:
    measured: list[str] = []
    told: list[str] = []

    def tell(label: str, seed: int, number: int, count: int) -> NoDisplay:
        told.append(f"{label} {seed}: {number} of {count}")
        return NoDisplay()

    experiment = tiny({"a": Setting(TASK), "b": Setting(TASK, {"model.num_heads": 2})}, measured)
    place = Lab(tmp_path, quick=True, device="cpu")
    report = place.run(experiment, tell)
    runs = sorted((tmp_path / "runs").glob("copy-*"))
    before = [(run / "log.txt").read_bytes() for run in runs]
    again = place.run(experiment, tell)
    assert len(runs) == 4 and [(run / "log.txt").read_bytes() for run in runs] == before
    assert measured == ["measured"] and again.numbers == report.numbers
    assert told[:4] == ["a 1: 1 of 4", "b 1: 2 of 4", "a 2: 3 of 4", "b 2: 4 of 4"]
    changed = Lab(tmp_path, quick=True, changes=["train.max_updates=3"], device="cpu").run(experiment, tell)
    assert len(measured) == 2 and {row[2] for row in changed.runs} == {3}


def test_a_setting_can_begin_with_the_run_of_another(tmp_path: Path) -> None:
    settings = {
        "first": Setting(TASK),
        "second": Setting(TASK, {"model.scale_attention": False}, start="first"),
    }
    bench = Bench(Size(updates=1, seeds=1, width=8), tmp_path, settings, device="cpu")
    bench.train(lambda *_: NoDisplay())
    first, second = bench.runs["first"][0], bench.runs["second"][0]
    assert is_finished(second) and second.config.start == str(first.directory)
    assert second.config.model == {**first.config.model, "scale_attention": False}


def test_a_page_says_everything_and_is_escaped(tmp_path: Path) -> None:
    place = Lab(tmp_path, quick=True, device="cpu")
    place.run(tiny({"a": Setting(TASK)}, []), lambda *_: NoDisplay())
    text = (tmp_path / "tiny-experiment" / "tiny-experiment.md").read_text("utf-8")
    for wanted in ("Claim", "Verdict", "Rule", "holds: yes", "seed", "PyTorch", "--quick", "± "):
        assert wanted in text
    page = (tmp_path / "tiny-experiment" / "tiny-experiment.html").read_text("utf-8")
    assert "It &lt; trains." in page and "data:image/png;base64," in page
    assert "http://" not in page and "https://" not in page and "<script" not in page


def test_the_book_has_the_pages_that_are_there(tmp_path: Path) -> None:
    place = Lab(tmp_path, quick=True, device="cpu")
    place.run(experiment_named("softmax-scale"), lambda *_: NoDisplay())
    text = (place.write_book() or tmp_path).read_text("utf-8")
    assert 'id="softmax-scale"' in text and 'id="masks"' not in text


def test_figures_and_tables_take_rows_of_different_columns() -> None:
    numbers = {"a": {"1": [1.0], "2": [2.0, 3.0]}, "b": {"2": [4.0]}}
    assert table_of(numbers)[0] == ["", "1", "2"]
    assert set(lines(numbers, "x", "y", log_x=True, log_y=True, level=1.0)) == {"png", "svg"}
    assert "<title>a &amp; b</title>" in html_page("a & b", "")


def test_verdicts_read_as_sentences() -> None:
    assert [str(verdict) for verdict in (holds("a"), holds_for("b"), fails("c"))] == [
        "holds: a",
        "holds here for b",
        "does not hold: c",
    ]


def test_an_unknown_experiment_is_told() -> None:
    with pytest.raises(UserError, match="did you mean 'bottleneck'"):
        experiment_named("bottelneck")


def test_settings_of_one_label_differ_by_size() -> None:
    experiment = experiment_named("heads")
    assert experiment.settings is not None
    assert list(experiment.settings(replace(experiment.quick, points=(2, 4)))) == ["2", "4"]
