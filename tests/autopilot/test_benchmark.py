"""The benchmark's table, and which settings by hand it tries."""

import argparse
from pathlib import Path

import pytest

from autopilot import Job, Kept
from autopilot_table import table
from autopilot_tasks import TASKS, by_hand

ROW = {
    "task": "g2p fr 3.6k",
    "setting": 0,
    "device": "cpu",
    "cores": 2,
    "minutes": 8.5,
    "train_seconds": 500.0,
}


def test_the_best_by_hand_is_chosen_on_the_validation_set() -> None:
    rows = [
        {**ROW, "arm": "default", "exact": 60.0, "best_valid": 61.0, "last_valid": 60.0},
        {**ROW, "arm": "hand", "exact": 70.0, "best_valid": 50.0, "last_valid": 50.0},
        {**ROW, "arm": "hand", "setting": 1, "exact": 58.0, "best_valid": 62.0, "last_valid": 40.0},
    ]
    told = table(rows)
    assert "| g2p fr 3.6k | exact | 60.0 | 58.0 | 94 |" in told
    assert "g2p fr 3.6k (hand): 62.0 → 40.0" in told
    assert "8.5 minutes a task on 2 cores of a CPU" in told


def test_what_is_done_is_not_run_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "results.jsonl")
    assert kept.all() == [] and kept.done() == set()
    kept.add({**ROW, "arm": "hand", "setting": 1})
    own = argparse.Namespace(device="cpu", cores=2, minutes=8.5, work=tmp_path)
    jobs = [Job("g2p fr 3.6k", "hand", n, TASKS["g2p fr 3.6k"], own, deadline=0.0) for n in range(2)]
    assert [job.key in kept.done() for job in jobs] == [False, True]
    assert not jobs[0].fits  # the wall has come
    assert jobs[0].directory != jobs[1].directory


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_task_has_settings_by_hand(device: str) -> None:
    assert all(1 <= len(by_hand(task, device)) <= 3 for task in TASKS.values())
