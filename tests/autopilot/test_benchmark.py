"""The benchmark's table, and which settings by hand it tries."""

import argparse
import base64
import re
from itertools import islice
from pathlib import Path

import pytest

from autopilot import Job, Kept, lines
from autopilot_made import HELD_BACK, RULES, _in_words, pairs, writer
from autopilot_numbers import roman
from autopilot_table import table
from autopilot_tasks import TASKS, by_hand
from autopilot_unseen import UNSEEN_RULES

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


@pytest.mark.parametrize("name", [*RULES, *UNSEEN_RULES])
def test_made_up_tasks_are_the_same_every_time_and_nothing_is_in_two_parts(name: str, tmp_path: Path) -> None:
    writer(name)(tmp_path, tmp_path)
    parts = {
        part: list(zip(*(lines(str(tmp_path / f"{part}.{side}")) for side in ("src", "tgt")), strict=True))
        for part in ("train", "dev", "test")
    }
    assert [len(rows) for rows in parts.values()] == [
        {**RULES, **UNSEEN_RULES}[name][1],
        HELD_BACK,
        HELD_BACK,
    ]
    assert len({row for rows in parts.values() for row in rows}) == sum(map(len, parts.values()))
    assert [row for rows in parts.values() for row in rows] == list(pairs(name))
    assert all(src and tgt for rows in parts.values() for src, tgt in rows)


def test_made_up_pairs_follow_their_rules() -> None:
    assert all(sum(map(int, src.split(" + "))) == int(tgt) for src, tgt in islice(pairs("sums 8k"), 50))
    assert all(
        sorted(map(int, src.split())) == list(map(int, tgt.split()))
        for src, tgt in islice(pairs("sorting 8k"), 50)
    )
    words = {int(src): tgt for src, tgt in pairs("number words 5k")}
    for number, told in words.items():
        if number % 1000 == 0:
            assert told.endswith(" thousand")
        elif number > 1000:
            assert " thousand " in told
    assert {_in_words(n) for n in (7, 40, 99, 100, 101, 1000, 12_013)} == {
        *("seven", "forty", "ninety-nine", "one hundred", "one hundred and one", "one thousand"),
        "twelve thousand thirteen",
    }


def test_formats_and_codes_follow_their_rules() -> None:
    assert [roman(n) for n in (4, 9, 14, 40, 1994, 3999)] == ["IV", "IX", "XIV", "XL", "MCMXCIV", "MMMCMXCIX"]
    for src, tgt in islice(pairs("differences 10k"), 50):
        first, second = map(int, src.split(" minus "))
        assert first - second == int(tgt)
    for src, tgt in islice(pairs("run lengths 5k"), 50):
        assert src == "".join(letter * int(times) for letter, times in re.findall(r"([a-d])(\d+)", tgt))
    for src, tgt in islice(pairs("base64 10k"), 50):
        assert base64.b64decode(src).decode() == tgt
    for src, tgt in islice(pairs("truth 2k"), 50):
        assert tgt in ("true", "false") and src.count("(") == src.count(")")
    times = dict(pairs("clock 300"))
    assert times["at quarter past 3 pm"] == "15:15"
    assert times["20 minutes to 12 am"] == "11:40"
