"""The end of a run: the search is tuned within its time, and a report is written."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.evaluate import tune
from dragoman.runs.directory import Outcome, Run
from dragoman.runs.records import scored
from dragoman.training import finish
from dragoman.training.report import (
    ValidationTranslations,
    advice_after_training,
    read_reasons,
    report_rows,
    write_reasons,
    write_report,
)
from timed import Timed

MakeRun = Callable[..., Run]
BUDGET = (
    *("train.max_updates=null", "train.max_minutes=2", "schedule.name=linear", "schedule.by=minutes"),
    *("train.tune_search=true", "train.report=true", "train.validations=5", "train.metric=chrf"),
)


@pytest.fixture
def one_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow beam is better by far."""
    scores = iter([90.0] * 6 + [10.0] * 999)
    monkeypatch.setattr(tune, "SCORES", {**tune.SCORES, "chrf": lambda *_: next(scores)})


@pytest.mark.usefixtures("one_is_best")
def test_the_run_searches_with_what_was_chosen(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, update=4.0)
    run = make_run(*BUDGET, train=False)
    write_reasons(run.directory, [("small model", "there are 144 pairs")])
    timed.train(run)
    opened = Run.open(run.directory)
    assert (opened.config.search.beam, opened.config.search.alpha) == (1, 1.0)
    assert opened.translator().search.beam == 1
    record = json.loads((run.directory / "tuning.json").read_text())
    assert record["chosen"] == {"beam": 1, "alpha": 1.0}
    assert (record["metric"], record["sentences"], len(record["scores"])) == ("chrf", 16, 30)
    report = (run.directory / "report.md").read_text("utf-8")
    for part in ("144 pairs", "beam 1, alpha 1", "## Learning curve", "## What it gets wrong", "●"):
        assert part in report
    assert "train.max_minutes=4" in report


@pytest.mark.usefixtures("one_is_best")
def test_what_is_asked_for_fits_into_the_chosen_beam(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is the sources that are translated, and compared with the references."""
    asked: list[tuple[list[str], list[str]]] = []
    tuned = finish.tune_search

    def watched(translator: object, sources: list[str], references: list[str], **options: Any) -> Any:
        asked.append((sources, references))
        return tuned(translator, sources, references, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(finish, "tune_search", watched)
    timed = Timed(monkeypatch, update=4.0)
    run = make_run(*BUDGET, "search.n_best=3", train=False)
    timed.train(run)
    search = Run.open(run.directory).config.search
    assert (search.beam, search.n_best) == (1, 1)
    ((sources, references),) = asked
    assert [text[::-1].upper() for text in sources] == references


@pytest.mark.parametrize(("seconds", "sentences"), [(3.0, 4), (0.6, 16), (30.0, 1)])
def test_as_many_sentences_as_the_time_is_enough_for(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, seconds: float, sentences: int
) -> None:
    """Half of a validation of 16 sentences is greedy search; a beam of 8 takes eight times as long. Beams of
    1, 2, 4 and 8 have six seconds, a twentieth of the two minutes."""
    monkeypatch.setattr(finish, "_FEWEST_SENTENCES", 1)
    timed = Timed(monkeypatch, update=4.0, validation_seconds=seconds)
    run = make_run(*BUDGET, "train.validate_sentences=16", "train.report=false", train=False)
    timed.train(run)
    record = json.loads((run.directory / "tuning.json").read_text())
    assert record["sentences"] == sentences == max(1, min(16, int(6 / (15 * seconds / 16 / 2))))


def test_it_is_not_done_twice(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, update=4.0)
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    monkeypatch.setattr(finish, "tune_search", lambda *_, **__: pytest.fail("the search was tuned again"))
    timed.train(run)
    (run.directory / "tuning.json").unlink()
    with pytest.raises(BaseException, match="tuned again"):
        timed.train(run)


def test_a_small_gain_is_noise(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([50.1] * 6 + [50.0] * 999)
    monkeypatch.setattr(tune, "SCORES", {**tune.SCORES, "chrf": lambda *_: next(scores)})
    timed = Timed(monkeypatch, update=4.0)
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    assert Run.open(run.directory).config.search.beam == 5


def test_what_does_not_fit_into_the_time_is_left_out(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch, update=4.0)
    real = tune.translate_by

    def slow(translator: object, texts: list[str], searches: list[Any], *args: object) -> list[list[str]]:
        timed.clock.now += searches[0].beam  # of the six seconds that there are
        return real(translator, texts, searches, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(tune, "translate_by", slow)
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    record = json.loads((run.directory / "tuning.json").read_text())
    assert {each["beam"] for each in record["scores"]} == {1, 2}
    assert timed.clock.now <= 120


def test_where_there_is_no_time_nothing_changes(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, update=4.0)
    real = tune.translate_by

    def slow(*args: object) -> list[list[str]]:
        timed.clock.now += 100.0
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(tune, "translate_by", slow)
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    assert not (run.directory / "tuning.json").exists()
    assert "no time to tune" in (run.directory / "log.txt").read_text("utf-8")
    assert Run.open(run.directory).config.search.beam == 5


def test_the_same_command_goes_on_with_a_tuned_run(make_run: MakeRun) -> None:
    from dragoman.runs.config import config_differences, training_differences

    tuned, plain = (
        make_run(*BUDGET, f"search.beam={beam}", name=str(beam), train=False).config for beam in (1, 5)
    )
    assert config_differences(tuned, plain) and not training_differences(tuned, plain)
    other = make_run("search.beam=2", name="other", train=False).config
    assert training_differences(other, make_run(name="one", train=False).config)


def records(*values: tuple[float, float], nll: float = 1.0) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [{"kind": "train", "update": 1, "nll": nll}]
    for bleu, loss in values:
        found.append({"kind": "valid", "update": 1, "bleu": bleu, "loss": loss})
    return found


@pytest.mark.parametrize(
    ("values", "nll", "told"),
    [
        ([(1, 5), (5, 4), (9, 3), (20, 2), (30, 1.2)], 1.0, ["more minutes would probably help"]),
        ([(1, 5), (29, 4), (30, 3), (30, 2), (30, 1.2)], 1.0, ["change little", "larger model"]),
        ([(1, 5), (29, 4), (30, 3), (30, 2), (30, 2.2)], 1.0, ["change little", "more pairs"]),
        ([(1, 5)], 1.0, ["too few validations"]),
        (
            [(1, 5), (90, 4), (100, 3), (100, 2), (100, 1.2)],
            1.0,
            ["cannot be improved"],
        ),
    ],
)
def test_advice_follows_from_the_curve_and_the_losses(
    values: list[tuple[float, float]], nll: float, told: list[str]
) -> None:
    found = advice_after_training(records(*values, nll=nll), "bleu", 15)
    assert len(found) == len(told)
    assert all(part in line for part, line in zip(told, found, strict=True))


def test_more_time_is_no_advice_for_a_run_that_has_everything_right_or_got_worse() -> None:
    def told(exact: list[float]) -> list[str]:
        valid = [{"kind": "valid", "exact": value, "loss": 1.0} for value in exact]
        return advice_after_training(
            [{"kind": "train", "update": 1, "nll": 0.9, "epoch": 2}, *valid], "exact", 15
        )

    assert told([10, 50, 90, 100, 99]) == [
        "exact match 100% on the validation set cannot be improved: try other data (dragoman evaluate)"
    ]
    assert "more minutes would probably help most" in told([10, 20, 30, 40, 50])[0]
    assert "would probably change little" in told([10, 80, 79, 78, 77])[0]


def test_reasons_that_are_gone_are_no_matter(make_run: MakeRun) -> None:
    run = make_run(train=False)
    assert read_reasons(run.directory) == []
    (run.directory / "plan.json").write_text("{")
    assert read_reasons(run.directory) == []


def test_a_share_is_told_as_a_percentage_and_wrong_outputs_are_counted(make_run: MakeRun) -> None:
    run = make_run("train.metric=exact")
    best = run.best
    assert best is not None
    said = ValidationTranslations(["a", "b", "c"], ["1", "22", "3"], ["1", "21", "4"])
    rows = dict(report_rows(run, Outcome("max_updates is over", 7), 1.0, said))
    assert (
        rows["best"]
        == f"checkpoint {best['name']}, exact match {round(best['value'], 2):g}% on the validation set"
    )
    assert rows["mistakes"] == "of 3 translations, 2 wrong: no common kind of mistake"
    write_report(run, run.prepared(), Outcome("max_updates is over", 7), 1.0, said)
    examples = (run.directory / "report.md").read_text("utf-8").partition("## Examples")[2]
    assert "| b | 22 | 21 |" in examples and "| c | 3 | 4 |" in examples and "| a | 1 |" not in examples


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("exact", 0.74074, "exact match 0.74%"),
        ("bleu", 31.256, "BLEU 31.26"),
        ("loss", 1.23456, "loss 1.235"),
    ],
)
def test_scores_have_a_name_and_a_unit(metric: str, value: float, told: str) -> None:
    assert scored(metric, value) == told
