"""Runs whose training data are damaged: nothing is learnt from them, served from them, or lost with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.damage import make_earlier
from dragoman.data.fingerprint import CACHE
from dragoman.data.prepared import verify_prepared
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.serve.memory import open_memories
from dragoman.training.api import resume, train
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from killing import assert_same_checkpoint, train_until_killed

MakeConfig = Callable[..., RunConfig]
OVERRIDES = {"train.max_updates": 12, "train.save_every": 4, "train.validate_every": 12}


@pytest.fixture
def whole(tmp_path: Path, plain: dict[str, Any]) -> Run:
    """A run that was never stopped, beside its cache."""
    return train(plain, out=tmp_path / "whole", overrides=OVERRIDES, quiet=True)


@pytest.fixture
def stopped(whole: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same, killed in the middle."""
    run = Run.create(whole.directory.with_name("stopped"), whole.config, whole.prepared())
    train_until_killed(run, 6, monkeypatch)
    return run


def damage(path: Path) -> None:
    """As a disk does it: in place, so that whoever has a hard link to it has the damage too."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    with path.open("r+b") as file:
        file.write(data)


def detach(path: Path) -> Path:
    """A file of its own, where it was a hard link."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    return path


def test_damage_to_a_run_alone_is_mended_on_resume(
    whole: Run, stopped: Run, caplog: pytest.LogCaptureFixture
) -> None:
    damage(detach(stopped.directory / "data" / "train.src.ids"))
    run = resume(stopped.directory, quiet=True)
    assert_same_checkpoint(run, whole, "0000012")
    (told,) = caplog.messages
    assert "train.src.ids: bytes 0 to" in told
    assert "replaced by the same data of" in told
    assert verify_prepared(stopped.directory / "data") == []


def test_damage_to_run_and_cache_is_refused_and_mended_by_training_again(
    whole: Run, stopped: Run, plain: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    damage(stopped.directory / "data" / "train.tgt.offsets")
    assert verify_prepared(stopped.directory.parent / CACHE / stopped.fingerprint)  # it is the same file
    before = stopped.last
    with pytest.raises(
        UserError, match=r"train\.tgt\.offsets: bytes .* are damaged, and the same data in .+"
    ):
        resume(stopped.directory, quiet=True)
    assert stopped.last == before
    assert not caplog.messages
    run = train(plain, out=stopped.directory, overrides=OVERRIDES, quiet=True)
    assert_same_checkpoint(run, whole, "0000012")
    assert ["prepared anew" in told for told in caplog.messages] == [True, False]
    assert "replaced by the same data of" in caplog.messages[1]


def test_without_a_cache_damage_is_refused(stopped: Run) -> None:
    damage(stopped.directory / "data" / "valid.lines")
    (stopped.directory.parent / CACHE).rename(stopped.directory.parent / "moved")
    with pytest.raises(
        UserError, match=r"valid\.lines: .*, and .+\.prepared does not have these data any more; give"
    ):
        resume(stopped.directory, quiet=True)


def test_a_run_of_an_earlier_version_goes_on_bit_for_bit(
    whole: Run, stopped: Run, caplog: pytest.LogCaptureFixture
) -> None:
    data = stopped.directory / "data"
    for name in ("meta.json", "hashes"):
        detach(data / name)
    make_earlier(data)
    assert_same_checkpoint(resume(stopped.directory, quiet=True), whole, "0000012")
    assert "cannot be verified" in caplog.messages[0]


def test_training_stops_at_damage_that_comes_later(stopped: Run) -> None:
    """Data are verified when a session begins; hours later a block is read for the first time."""
    damage(stopped.directory / "data" / "train.src.ids")
    with pytest.raises(UserError, match=r"train\.src\.ids: bytes 0 to [\d,]+ are damaged; give the command"):
        train_run(stopped, NoDisplay())
    assert stopped.last == "0000004"
    assert "stopped: " in (stopped.directory / "log.txt").read_text()


def test_no_damaged_sentence_is_served_from_memory(stopped: Run) -> None:
    pair = (stopped.config.data.src_lang, stopped.config.data.tgt_lang)
    memory, store = open_memories([stopped.directory], [pair])[pair], stopped.prepared().train
    src, tgt = (Path(file).read_text("utf-8").splitlines() for file in stopped.config.data.train[0].files)
    for number in (0, 1, len(store) - 1):  # it has every pair that is learnt from
        line = int(store.origin(number).rpartition(":")[2]) - 1
        assert memory.exact(src[line]) == tgt[line]
    damage(stopped.directory / "data" / "train.tgt.ids")
    with pytest.raises(UserError, match=r"train\.tgt\.ids: bytes 0 to [\d,]+ are damaged"):
        open_memories([stopped.directory], [pair])
