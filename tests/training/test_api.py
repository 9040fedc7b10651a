"""`dragoman.train(...)`: from files to a run, and what is said on the way."""

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

import dragoman
from drafted import make_config
from dragoman.cli.resume import resume as resume_command
from dragoman.cli.train import train as train_command
from dragoman.config import dump_yaml
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import load
from dragoman.training import loop
from dragoman.training.api import resume, train
from dragoman.training.batches import UpdateBatch
from dragoman.training.display import NoDisplay, Plain
from dragoman.training.draft import split_arguments
from dragoman.training.estimate import estimate
from dragoman.training.plan import make_plan
from dragoman.training.session import train_run
from dragoman.training.state import Training

MakeConfig = Callable[..., RunConfig]
SMALL = [
    "model.num_layers=1",
    "model.model_dim=16",
    "model.num_heads=2",
    "model.ff_dim=32",
    "tokenizer.vocab_size=300",
    "train.max_updates=6",
    "train.validate_every=3",
    "train.save_every=3",
    "train.log_every=2",
    "train.device=cpu",
]


def test_the_package_is_a_function(tmp_path: Path, corpus: tuple[str, str]) -> None:
    run = dragoman.train(*corpus, out=tmp_path / "run", overrides=SMALL, quiet=True)
    assert isinstance(run, Run)
    assert run.last == "0000006"
    assert dragoman.training.api.train is train  # type: ignore[attr-defined]  # and still a package
    assert len(load(run.directory).translate(["ab"])) == 1


def test_files_are_enough(
    tmp_path: Path, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(*corpus, out=tmp_path / "run", overrides=SMALL)
    shown = capsys.readouterr().out
    for text in (
        "en → de",
        "vocabulary",
        "parameters",
        "time",
        "update 6/6",
        "valid at 6",
        "source",
        "finished at",
    ):
        assert text in shown
    config = Run.open(run.directory).config
    assert (config.data.src_lang, config.data.tgt_lang) == ("en", "de")
    assert config.model["num_layers"] == 1
    assert config.model["norm"] == "pre"
    assert config.train.metric == "chrf"


def test_the_same_again_goes_on_and_another_configuration_is_refused(
    tmp_path: Path, corpus: tuple[str, str]
) -> None:
    out = tmp_path / "run"
    first = train(*corpus, out=out, overrides=SMALL, quiet=True)
    before = (out / "metrics.jsonl").read_bytes()
    again = train(*corpus, out=out, overrides=SMALL, quiet=True)
    assert again.outcome == first.outcome
    assert (out / "metrics.jsonl").read_bytes() == before
    with pytest.raises(
        UserError,
        match=r"another configuration \(train\.max_updates is 6 there and 7 here.*\); use another directory",
    ):
        train(*corpus, out=out, overrides=[*SMALL, "train.max_updates=7"], quiet=True)


def test_changed_files_are_refused(tmp_path: Path, corpus: tuple[str, str]) -> None:
    files = [tmp_path / Path(file).name for file in corpus]
    for file, original in zip(files, corpus, strict=True):
        file.write_bytes(Path(original).read_bytes())
    train(*files, out=tmp_path / "run", overrides=SMALL, quiet=True)
    for file in files:
        file.write_text("new words\n" + file.read_text().partition("\n")[2])
    with pytest.raises(UserError, match="made with other data"):
        train(*files, out=tmp_path / "run", overrides=SMALL, quiet=True)


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path, corpus: tuple[str, str]) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="not a run, and not empty"):
        train(*corpus, out=tmp_path, overrides=SMALL, quiet=True)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_recipe_and_a_mapping_are_the_same(tmp_path: Path, plain: dict[str, Any]) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(dump_yaml(plain))
    from_file = make_config([path], overrides=["seed=8"], valid=[], display=NoDisplay())
    from_mapping = make_config([plain], overrides={"seed": 8}, valid=[], display=NoDisplay())
    assert from_file == from_mapping
    assert from_file.seed == 8


def test_missing_sections_are_chosen_and_given_ones_are_not(corpus: tuple[str, str]) -> None:
    given = {"data": {"train": [{"files": list(corpus)}]}, "train": {"max_updates": 9}}
    config = make_config([given], overrides=[], valid=[], display=NoDisplay())
    assert config.train.validate_every == 500  # the section is given, so its other fields have their defaults
    assert config.tokenizer.vocab_size == 500
    named = make_config([given], overrides=["model.preset=transformer-small"], valid=[], display=NoDisplay())
    assert (named.model["model_dim"], named.model["norm"]) == (256, "pre")


def test_validation_files_and_tables(tmp_path: Path, corpus: tuple[str, str]) -> None:
    config = make_config(list(corpus), overrides=SMALL, valid=list(corpus), display=NoDisplay())
    assert config.data.valid[0].files == corpus
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"word{i}\tWORT{i}\n" for i in range(30)))
    config = make_config([str(table)], overrides=SMALL, valid=[], display=NoDisplay())
    assert config.data.train[0].files == (str(table),)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "nothing to train on"),
        (["missing.en", "missing.de"], "missing.en: there is no such file"),
        ([{"train": {}}], "data: this section is required"),
        ([{}, {}], "has to be the only source"),
    ],
)
def test_mistakes_are_one_sentence(sources: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_config(sources, overrides=[], valid=[], display=NoDisplay())


def test_files_and_overrides_come_mixed(tmp_path: Path) -> None:
    odd = tmp_path / "a=b.txt"
    odd.write_text("x")
    files, overrides = split_arguments(
        ["a.en", "seed=3", "a.de", "model.num_layers=4", str(odd), "train.device=cuda:0"]
    )
    assert files == ["a.en", "a.de", str(odd)]
    assert overrides == ["seed=3", "model.num_layers=4", "train.device=cuda:0"]


def test_a_plan_writes_no_run_and_changes_no_result(
    tmp_path: Path, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    plan = make_plan(list(corpus), Plain(), out=out, overrides=SMALL)
    assert not out.exists()
    assert plan.estimate is not None
    assert plan.estimate.updates == 6
    assert plan.estimate.seconds is not None
    assert plan.estimate.seconds > 0
    rows = dict(plan.rows())
    assert rows["model"].startswith("Transformer, 1 + 1 layers")
    assert "timing a few updates" in capsys.readouterr().out
    measured = train(*corpus, out=out, overrides=SMALL, quiet=True)
    plain = Run.create(tmp_path / "plain", plan.config, plan.prepared)
    train_run(plain, NoDisplay())
    files = [run.checkpoints / "0000006" / "model.safetensors" for run in (measured, plain)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_estimate_without_a_known_end(make_config: MakeConfig, prepared: Prepared) -> None:
    cpu = torch.device("cpu")
    config = make_config("train.max_updates=null", "train.max_minutes=2")
    assert estimate(config, prepared, cpu).seconds == 120
    config = make_config("train.max_updates=null", "train.patience=2")
    assert estimate(config, prepared, cpu).seconds is None


# --- the commands ------------------------------------------------------------------------------------


def command(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(train_command)
    app.command()(resume_command)
    return CliRunner().invoke(app, arguments)


def test_the_commands_from_end_to_end(
    tmp_path: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dry = command("train", *corpus, *SMALL, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "en → de" in dry.output
    assert not (tmp_path / "runs" / "en-de").exists()
    done = command("train", *corpus, *SMALL)
    assert done.exit_code == 0, done.output
    assert "dragoman translate runs/en-de" in done.output
    more = command("resume", "runs/en-de", "train.max_updates=8")
    assert more.exit_code == 0, more.output
    assert "update 8/8" in more.output
    wrong = command("resume", "runs/en-de", "train.max_update=8")
    assert isinstance(wrong.exception, UserError)
    assert "train.max_update: unknown field; did you mean 'max_updates'?" in str(wrong.exception)
    assert Run.open(tmp_path / "runs" / "en-de").last == "0000008"


def test_a_stopped_command_has_the_status_of_its_signal(
    tmp_path: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.learn

    def learn_and_stop(training: Training, data: UpdateBatch) -> loop.Learnt:
        if training.progress.update == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(training, data)

    monkeypatch.setattr(loop, "learn", learn_and_stop)
    out = str(tmp_path / "run")
    stopped = command("train", *corpus, *SMALL, "--out", out)
    assert stopped.exit_code == 143
    assert f"continue with:  dragoman resume {shlex.quote(str(out))}" in stopped.output
    assert Run.open(out).last == "0000004"
    monkeypatch.undo()
    assert command("resume", out, "--quiet").output == ""
    assert Run.open(out).last == "0000006"


def test_resume_takes_a_run(tmp_path: Path, corpus: tuple[str, str]) -> None:
    run = train(*corpus, out=tmp_path / "run", overrides=SMALL, quiet=True)
    again = resume(run, {"train.max_updates": 7}, quiet=True)
    assert again.outcome is not None
    assert again.outcome.update == 7
