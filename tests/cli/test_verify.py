"""`dragoman verify`: what is whole is said to be, and what is not is named, with what to do."""

import json
import os
import shlex
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import dragoman
from dragoman import checkpoint
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.files import new_directory
from dragoman.runs.directory import Run
from dragoman.training.verify import find_leftovers, is_leftover
from dragoman.unfinished import unfinished_name
from toy import toy_config, toy_pairs, write_pairs


def verify(path: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["verify", str(path), *options])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained for real, with exports beside it."""
    root = tmp_path_factory.mktemp("verify")
    config = toy_config(write_pairs(root, toy_pairs(80)))
    config["model"]["position_layout"] = "halves"
    run = dragoman.train(config, out=root / "runs" / "t", quiet=True).directory
    for to, out in (("ctranslate2", "ct2"), ("huggingface", "hf"), ("argos", "m.argosmodel")):
        done = CliRunner().invoke(app, ["export", str(run), "--to", to, "--out", str(root / out)])
        assert done.exit_code == 0, done.output
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "root")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


PLACES = {
    "runs/t": "run",
    "runs/t/checkpoints/0000020": "checkpoint",
    "runs/t/data": "prepared data",
    "runs/.prepared": "directory",
    "runs": "directory",
    "ct2": "CTranslate2 export",
    "hf": "Hugging Face directory",
    "m.argosmodel": "package of Argos",
    "runs/t/tokenizer.json": "tokenizer",
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_whole_is_said_to_be(made: Path, place: str) -> None:
    done = verify(made / place)
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{made / place}: {PLACES[place]}")
    assert "checked " in done.output
    assert done.output.endswith("all is whole\n")


DAMAGED = {
    "runs/t/config.yaml": "runs/t",
    "runs/t/tokenizer.json": "runs/t/tokenizer.json",
    "runs/t/checkpoints/0000020/optim.safetensors": "runs/t/checkpoints/0000020",
    "runs/t/checkpoints/0000020/manifest.json": "runs/t",
    "runs/t/best.json": "runs/t",
    "runs/t/data/train.src.ids": "runs/t/data",
    "runs/t/data/train.lines": "runs/t",
    "runs/t/data/meta.json": "runs",
    "ct2/model.bin": "ct2",
    "hf/model.safetensors": "hf",
    "m.argosmodel": "m.argosmodel",
}


def test_a_package_is_whole_or_named(root: Path) -> None:
    """Whatever is cut off or left out; a text that is no archive is no tokenizer either."""
    path = root / "m.argosmodel"
    content = path.read_bytes()
    for damaged in (content[:-30], content[: len(content) // 2], b"", b"no archive"):
        path.write_bytes(damaged)
        done = verify(path)
        assert done.exit_code == 1 and f"{path}: not a zip archive that can be read (" in done.output
        assert f"dragoman export RUN --to argos --out {path}" in done.output
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/metadata.json", "{}")
    assert "model/model.bin is missing" in verify(path).output


@pytest.mark.parametrize("file", DAMAGED)
def test_a_flipped_bit_is_found_and_named(root: Path, file: str) -> None:
    flip(root / file)
    done = verify(root / DAMAGED[file])
    assert done.exit_code == 1, done.output
    assert Path(file).parent.name in done.output
    assert done.output.splitlines()[-1].endswith(("fault", "faults"))


@pytest.mark.parametrize(
    "file",
    [
        *("runs/t/manifest.json", "runs/t/tokenizer.json", "runs/t/checkpoints/0000020/state.json"),
        *("runs/t/data/meta.json", "runs/t/data/seen.src", "ct2/export.json", "ct2/model.bin"),
        *("hf/config.json", "hf/model.safetensors", "hf/tokenizer.json"),
    ],
)
def test_a_missing_file_is_found(root: Path, file: str) -> None:
    (root / file).unlink()
    done = verify(root / "/".join(file.split("/")[: 2 if file.startswith("runs") else 1]))
    assert done.exit_code == 1, done.output


def test_a_lost_best_is_not_replaced_by_the_last(root: Path) -> None:
    run = root / "runs" / "t"
    saved = checkpoint.load_checkpoint(run / "checkpoints" / "0000020")
    best = {"name": "0000020", "metric": "loss", "value": 1.0, "loss": 1.0}
    state = saved.state | {"progress": saved.state["progress"] | {"best": best}}
    checkpoint.save(run / "checkpoints", "0000025", {"model": saved.read("model")}, state)
    (run / "best.json").unlink(missing_ok=True)
    done = verify(run)
    assert done.exit_code == 1
    assert "best.json: missing, though 0000020 was the best checkpoint" in done.output


def test_it_says_where_the_run_goes_on(root: Path) -> None:
    run = root / "runs" / "t"
    flip(run / "checkpoints" / "0000020" / "optim.safetensors")
    done = verify(run)
    assert "0000020/optim.safetensors: damaged" in done.output
    before = sorted(path.name for path in (run / "checkpoints").iterdir())[-2]
    assert f"the run resumes from {before}:  dragoman resume {shlex.quote(str(run))}" in done.output
    assert CliRunner().invoke(app, ["resume", str(run), "-q"]).exit_code == 0
    assert verify(run).exit_code == 0


def test_without_a_whole_checkpoint_nothing_goes_on(root: Path) -> None:
    run = root / "runs" / "t"
    for path in (run / "checkpoints").iterdir():
        flip(path / "state.json")
    assert "no checkpoint is whole" in verify(run).output


def test_a_tokenizer_is_taken_from_the_data(root: Path) -> None:
    run = root / "runs" / "t"
    (run / "tokenizer.json").write_text("{}")
    done = verify(run)
    assert done.exit_code == 1
    (run / "tokenizer.json").write_bytes((run / "data" / "tokenizer.json").read_bytes())
    assert verify(run).exit_code == 0


def test_exports_inside_a_run_are_checked(root: Path) -> None:
    run = root / "runs" / "t"
    (root / "ct2").rename(run / "ctranslate2-float32")
    assert "CTranslate2 export" in verify(run).output
    flip(run / "ctranslate2-float32" / "model.bin")
    assert verify(run).exit_code == 1


def test_a_pipe_is_named_and_not_waited_for(root: Path) -> None:
    for place in ("hf/config.json", "runs/t/checkpoints/0000020/state.json"):
        (root / place).unlink()
        os.mkfifo(root / place)
    for place in ("hf", "runs/t"):
        done = verify(root / place)
        assert done.exit_code == 1
        assert "not a file but a named pipe" in done.output


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _path: None, "there is no such file"),
        (lambda path: path.mkdir(), "this is no run"),
        (lambda path: os.mkfifo(path), "not a file but a named pipe"),
    ],
)
def test_what_is_nothing_of_ours_is_refused(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "x"
    make(path)
    done = verify(path)
    assert isinstance(done.exception, UserError)
    assert message in str(done.exception)


# --- leftovers ---------------------------------------------------------------------------------------


def leave(run: Path) -> list[Path]:
    """What processes that were killed leave, in today's names and in those of earlier versions."""
    places = [run / "checkpoints" / ".saving-0000025", run.parent / ".prepared" / ".unfinished-abc12345"]
    places += [run.parent / f".{run.name}.creating", run.parent / f".{run.name}.0123abcd.unfinished"]
    for place in places:
        place.mkdir()
        (place / "part").write_text("half")
    single = run / ".best.json.0123abcd.unfinished"
    single.write_text("{")
    return [*places, single]


def test_leftovers_are_listed_and_removed(root: Path) -> None:
    run = root / "runs" / "t"
    left = leave(run)
    done = verify(root / "runs")
    assert done.exit_code == 0, done.output
    assert all(f"leftover of a process that died: {path}" in done.output for path in left)
    assert all(path.exists() for path in left)
    assert "(removed)" in verify(root / "runs", "--clean").output
    assert not any(path.exists() for path in left)
    assert "a process that died" not in verify(root / "runs").output


def test_beside_a_run_only_its_own_are_listed(root: Path) -> None:
    run = root / "runs" / "t"
    for target in ("other", "t", "t.other"):
        (root / "runs" / f".{target}.0123abcd.unfinished").mkdir()
    assert find_leftovers(run) == [root / "runs" / ".t.0123abcd.unfinished"]


@pytest.mark.parametrize("name", ["n" * 101, "n" * 240, "ü" * 110, "two\nlines"])
def test_leftovers_beside_a_directory_of_any_name_are_found(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    left = unfinished_name(directory)
    left.mkdir()
    assert find_leftovers(directory) == [left]


def test_what_a_living_process_writes_is_no_leftover(tmp_path: Path) -> None:
    with new_directory(tmp_path / "out") as unfinished:
        assert is_leftover(unfinished)
        assert find_leftovers(tmp_path) == []


# --- the manifest of a run ---------------------------------------------------------------------------


def edit_manifest(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads((run / "manifest.json").read_text())
    change(data)
    (run / "manifest.json").write_text(json.dumps(data, indent=1))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(fingerprint=data["fingerprint"][::-1]),
        lambda data: data["files"].pop("tokenizer.json"),
        lambda data: data.update(seam=data.pop("seal")),
        lambda data: data.update(seal=data["seal"][::-1]),
    ],
)
def test_a_manifest_that_was_edited_is_refused(
    root: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    edit_manifest(root / "runs" / "t", change)
    with pytest.raises(UserError, match=r"manifest.json: damaged"):
        Run.open(root / "runs" / "t")


def test_a_manifest_of_an_earlier_version_has_no_seal(root: Path) -> None:
    edit_manifest(root / "runs" / "t", lambda data: data.pop("seal"))
    assert verify(root / "runs" / "t").exit_code == 0
