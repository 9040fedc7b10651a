"""average, tune, back-translate and distill as a person types them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.runs.directory import Run

TrainSmall = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, train_small: TrainSmall) -> Path:
    directory = train_small(tmp_path_factory.mktemp("tricks"))
    dragoman.resume(directory, {"train.max_updates": 20, "train.save_every": 5}, quiet=True)
    return directory


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_average(run: Path) -> None:
    told = command("average", run, "--last", 2, "--name", "two")
    assert told.startswith("mean of 0000015, 0000020, written as checkpoint two\nvalid at 20  loss ")
    assert command("translate", run, "the red cat", "--checkpoint", "two")
    for arguments, message in (
        ((), "average: give either --last N or --best N"),
        (("--last", 2, "--best", 2), "average: give either"),
        (("--last", 2, "--name", "0000001"), "--name: expected letters, digits"),
        (("--last", 2, "--name", "../x"), "--name: expected letters, digits"),
    ):
        with pytest.raises(UserError, match=message):
            command("average", run, *arguments)


def test_tune_prints_a_table_and_stores_its_choice(run: Path) -> None:
    told = command("tune", run, "--beams", "2,1", "--alphas", "0,1", "--sentences", 3)
    assert re.search(r"^ +1 +\d+\.\d\d\*? +\d+\.\d\d\*?$", told, re.MULTILINE)
    found = re.search(r"^best: beam (\d), alpha (\d)", told, re.MULTILINE)
    assert found is not None
    assert Run.open(run).config.search.beam == 5
    assert f"stored in {run}" in command("tune", run, "--beams", "2,1", "--alphas", "0,1", "--write")
    assert Run.open(run).config.search.beam in (1, 2)
    command("translate", run, "the red cat")
    for alphas in ("x", "1,1e20"):
        with pytest.raises(UserError, match=rf"--alphas: expected numbers from 0 to 10, .* found '{alphas}'"):
            command("tune", run, "--alphas", alphas)
    with pytest.raises(UserError, match=r"alpha: expected a number from 0 to 10, found 1e\+20"):
        command("translate", run, "the red cat", "--alpha", "1e20")


def test_back_translate(run: Path, tmp_path: Path) -> None:
    mono, out = tmp_path / "mono", tmp_path / "out"
    texts = ["the old cat and a dog", "", "the red dog and a fish"]
    mono.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    told = command("back-translate", run, mono, "--out", out, "--tag", "<BT>", "--beam", 2)
    assert told.startswith("3 lines are translated\n")
    said = command("translate", run, *texts, "--beam", 2, "--no-protect").splitlines()
    assert out.read_text("utf-8").splitlines() == [f"<BT> {line}" if line else "" for line in said]
    sampled = tmp_path / "sampled"
    command("back-translate", run, mono, "--out", sampled, "--sample", "--set", "search.seed=3")
    expected = command("translate", run, *texts, "--method", "sample", "--set", "search.seed=3")
    assert sampled.read_text("utf-8") == expected
    for arguments, message in (
        (("--sample", "--beam", 2), "--sample: a sample has no beam"),
        (("--tag", " x"), "--tag: expected printable text"),
        (("--tag", "<BT>", "--beam", 3), r"begun with search\.beam 2, not 3"),
    ):
        with pytest.raises(UserError, match=message):
            command("back-translate", run, mono, "--out", out, *arguments)
    with pytest.raises(UserError, match="there is no such file"):
        command("back-translate", run, tmp_path / "none", "--out", out)


def test_distill(run: Path, tmp_path: Path) -> None:
    student = tmp_path / "student"
    arguments = ("distill", run, run, "--student", "transformer-tiny", "--out", student, "--beam", 1)
    fields = ("train.max_updates=2", "schedule.warmup=1", "train.batch_tokens=500", "model.model_dim=32")
    told = command(*arguments, *fields, "--no-train")
    assert not student.exists()
    recipe, out = (shlex.quote(f"{student}{end}") for end in ("-corpus/recipe.yaml", ""))
    assert f"train the student with:  dragoman train {recipe} --out {out}" in told
    command(*arguments, *fields, "--quiet")
    assert Run.open(student).last == "0000002"
    assert command("translate", student, "the red cat")
    with pytest.raises(UserError, match=r"--student: 'huge' is not known; presets are "):
        command("distill", run, "--student", "huge")
    with pytest.raises(UserError, match="give the run directory of at least one teacher"):
        command("distill", "train.max_updates=2")
