"""Several processes train as one does: the same weights, the same stops, one voice.

All runs of several processes but the last two tests' come from one script, `crew_runs.py`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from dragoman import checkpoint
from dragoman.config import apply_overrides
from dragoman.data.corpus import Prepared
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.batches import Batches, deal
from dragoman.training.distributed import Crew

MakeConfig = Callable[..., RunConfig]
ROOT = Path(__file__).parents[2]
LAST = checkpoint.checkpoint_name(20)
SMALL = (
    *("model.bias=false", "train.ema=0.9", "train.accumulate=4"),  # a bias of keys has no gradient but noise
    *("train.validate_every=20", "train.validate_sentences=0", "train.save_every=10"),
)


def environment(directory: Path) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PATH": "", "TMPDIR": str(directory), "OMP_NUM_THREADS": "1", "PYTHONPATH": path}


@pytest.fixture(scope="module")
def crew_runs(plain: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("crew")
    (directory / "config.json").write_text(json.dumps(apply_overrides(plain, SMALL)))
    script = Path(__file__).parent / "crew_runs.py"
    done = subprocess.run(
        [sys.executable, str(script), str(directory), str(directory / "config.json")],
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,  # only a guard
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def told(directory: Path, name: str) -> list[Any]:
    return json.loads((directory / "told.json").read_text())[name]


def farthest(a: Path, b: Path, name: str = LAST) -> float:
    """The largest difference of any number in the last checkpoints of two runs."""
    found = 0.0
    for part in ("model", "optim", "ema"):
        left, right = (load_file(run / "checkpoints" / name / f"{part}.safetensors") for run in (a, b))
        assert left.keys() == right.keys()
        found = max(found, *(float((left[n].double() - right[n].double()).abs().max()) for n in left))
    return found


# --- the same result ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two", "three", "changed"])
def test_any_number_of_processes_gives_what_one_gives(crew_runs: Path, name: str) -> None:
    statuses = {"two": [[0, 0]], "three": [[0, 0, 0]], "changed": [[0, 0], [0], [0, 0]]}
    assert told(crew_runs, name) == statuses[name], (crew_runs / f"{name}.out").read_text()
    assert farthest(crew_runs / "alone", crew_runs / name) <= 1e-12
    assert (crew_runs / f"{name}.out").read_text() == ""


def test_all_processes_use_the_clock_of_the_first_one(crew_runs: Path) -> None:
    alone, two = told(crew_runs, "alone-timed"), told(crew_runs, "two-timed")
    assert (alone[0], two[0]) == ([0], [0, 0]), (crew_runs / "two-timed.out").read_text()
    assert alone[1] == two[1]
    assert farthest(crew_runs / "alone-timed", crew_runs / "two-timed", alone[1]) <= 1e-12
    rates = [r["rate"] for r in Run.open(crew_runs / "two-timed").metrics if r["kind"] == "train"]
    assert len(rates) > 10 and rates[-1] < 0.1 * max(rates)


@pytest.mark.parametrize("name", ["two32", "parts32"])
def test_in_single_precision_they_differ_by_its_rounding(crew_runs: Path, name: str) -> None:
    assert farthest(crew_runs / "alone32", crew_runs / name) <= 1e-6


def test_a_recurrent_model_that_is_fed_its_own_words_can_be_in_parts(crew_runs: Path) -> None:
    assert farthest(crew_runs / "rnn", crew_runs / "rnn-parts", checkpoint.checkpoint_name(5)) <= 1e-12


def test_a_model_in_parts_is_saved_whole(crew_runs: Path) -> None:
    texts = [
        Run.open(crew_runs / name).translator("last", "cpu").translate(["ab c"])
        for name in ("alone32", "parts32")
    ]
    assert texts[0] == texts[1]


def test_the_log_says_that_another_number_goes_on(crew_runs: Path) -> None:
    log = (crew_runs / "changed" / "log.txt").read_text()
    assert "training continues, but not bit for bit as before: processes 2 → 1" in log
    assert "training continues, but not bit for bit as before: processes 1 → 2" in log
    assert (
        "train.accumulate 4 is no multiple of the 3 processes"
        in (crew_runs / "three" / "log.txt").read_text()
    )


# --- who takes what ----------------------------------------------------------------------------------


def test_work_is_dealt_evenly() -> None:
    assert deal([5, 9, 1, 7], 2) == [[1, 2], [0, 3]]
    hands = deal([100 - number for number in range(64)], 8)
    assert sorted(number for hand in hands for number in hand) == list(range(64))
    assert {len(hand) for hand in hands} == {8}
    assert len({sum(100 - number for number in hand) for hand in hands}) == 1
    assert deal([3], 2) == [[0], []]


@pytest.mark.parametrize("size", [2, 3])
def test_the_shares_are_the_updates_of_one_process(
    make_config: MakeConfig, prepared: Prepared, size: int
) -> None:
    config = make_config("train.max_epochs=2", "train.accumulate=4")
    whole = list(Batches(config, prepared, torch.device("cpu")).updates(0, 0))
    crews = [Crew() for _ in range(size)]
    for rank, crew in enumerate(crews):
        crew.rank, crew.size = rank, size
    shares = [list(Batches(config, prepared, torch.device("cpu"), crew).updates(0, 0)) for crew in crews]
    for number, update in enumerate(whole):
        parts = [share[number] for share in shares]
        assert len({len(part.micro_batches) for part in parts}) == 1  # all keep step
        taken = {m.number: m.pairs.tolist() for part in parts for m in part.micro_batches if m.counts}
        assert taken == {micro.number: micro.pairs.tolist() for micro in update.micro_batches}
        assert {(p.epoch, p.next_batch, p.last) for p in parts} == {
            (update.epoch, update.next_batch, update.last)
        }
    assert {len(share) for share in shares} == {len(whole)}


# --- stops and mistakes ------------------------------------------------------------------------------


def test_a_signal_to_one_process_stops_all_with_a_checkpoint(crew_runs: Path) -> None:
    statuses, saved, again = told(crew_runs, "stopped")
    assert statuses == [143, 143]
    assert 4 <= int(saved) < 20
    assert again == [0, 0]
    assert farthest(crew_runs / "two", crew_runs / "stopped") == 0.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "few",
            "train.accumulate: the 1 batches of an update cannot be dealt to 2 processes; start fewer, or",
        ),
        ("locked", "another process is training this run"),
        ("recipe", "no.yaml: there is no such file"),
    ],
)
def test_a_mistake_is_told_once(crew_runs: Path, name: str, message: str) -> None:
    assert told(crew_runs, name) == [[2, 2]]
    said = (crew_runs / f"{name}.out").read_text()
    assert message in said
    assert said.count("\n") == 1


# --- losses -------------------------------------------------------------------------------------------


def test_killed_processes_change_nothing(crew_runs: Path) -> None:
    """Each of two, one after the other, and the store is always the same: what the dead have written into it
    leads nobody astray."""
    statuses, last = told(crew_runs, "killed")
    for kill, pair in enumerate(statuses):
        assert pair[kill % 2] in (-signal.SIGKILL, 0), statuses  # the run may have ended before
        assert pair[1 - kill % 2] in (-signal.SIGTERM, 0, 1), statuses  # by the signal, or by the loss
    assert last == [0, 0]
    assert farthest(crew_runs / "two", crew_runs / "killed") == 0.0


def test_processes_end_when_torchrun_has_gone(crew_runs: Path) -> None:
    """Each process is asked to stop as by SIGTERM. It does so after its update (143), or the store that the
    others would answer through has gone before (1)."""
    said = (crew_runs / "orphaned.out").read_text()
    ((first, second),) = told(crew_runs, "orphaned")
    assert {first, second} <= {1, 128 + signal.SIGTERM}, said
    assert "Traceback" not in said


# --- under torchrun ----------------------------------------------------------------------------------


def test_torchrun_stopped_leaves_a_checkpoint_and_no_process(tmp_path: Path, plain: dict[str, Any]) -> None:
    """While another program has the port that torchrun would ask for first."""
    recipe = apply_overrides(plain, [*SMALL, "train.max_updates=100000", "train.accumulate=1"])
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    out = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "dragoman", "train", str(tmp_path / "recipe.yaml"), "--out", str(out)]
    with (tmp_path / "said").open("w") as said, socket.socket() as taken:
        with suppress(OSError):  # then somebody else has it
            taken.bind(("127.0.0.1", 29500))
            taken.listen()
        torchrun = subprocess.Popen(
            command, env=environment(tmp_path), stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            while not (out / "timing.jsonl").exists() or not (out / "timing.jsonl").read_text():
                assert torchrun.poll() is None, (tmp_path / "said").read_text()
                time.sleep(0.05)
            workers = children(torchrun.pid)
            torchrun.send_signal(signal.SIGTERM)
            torchrun.wait(600)  # only a guard
        finally:
            torchrun.kill()
    assert len(workers) == 2
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    text = (tmp_path / "said").read_text()
    assert text.count("2, 1 of the 2 batches of an update each") == 1
    assert text.count("stopped by SIGTERM after update") == 1
    run = Run.open(out)
    assert run.config.train.accumulate == 2  # of two processes together
    assert f"after update {int(run.last or 0)}; everything is saved" in text


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
