"""Encoding in processes of its own gives the same corpus, byte for byte, and leaves no process behind."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data import encode, report, workers
from dragoman.data.config import DataConfig
from dragoman.data.corpus import prepare
from dragoman.data.workers import open_workers, tokenizers_of
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


@pytest.mark.parametrize("joint", [True, False])
def test_the_same_files_with_and_without(
    joint: bool,
    write_corpus: Callable,
    make_pairs: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encode, "_CHUNK_PAIRS", 37)
    data = DataConfig(train=(write_corpus(make_pairs(500)),), valid_size=20)
    config = TokenizerConfig(vocab_size=400, joint=joint)
    alone = prepare(data, config, seed=1, cache=tmp_path / "alone")
    monkeypatch.setattr(workers, "WORTH_WORKERS", 1)
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: {0, 1, 2})
    together = prepare(data, config, seed=1, cache=tmp_path / "together")
    names = sorted(path.name for path in alone.directory.iterdir())
    assert names == sorted(path.name for path in together.directory.iterdir())
    for name in names:
        assert (alone.directory / name).read_bytes() == (together.directory / name).read_bytes(), name


def test_the_same_report_with_and_without(
    write_corpus: Callable, make_pairs: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_CHUNK", 37)
    corpus = write_corpus([*make_pairs(300), ("x " * 9000, "y")])
    alone = report.analyse([corpus])
    monkeypatch.setattr(workers, "WORTH_WORKERS", 1)
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: {0, 1})
    assert report.analyse([corpus]) == alone


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    Tokenizer.train(["a few words, äöü"], TokenizerConfig(vocab_size=300)).save(path)
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen]:
    """The processes that are started."""
    processes: list[subprocess.Popen] = []
    real = subprocess.Popen

    def start(*arguments: object, **options: object) -> subprocess.Popen:
        processes.append(real(*arguments, **options))  # type: ignore[call-overload]
        return processes[-1]

    monkeypatch.setattr(workers.subprocess, "Popen", start)
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: {0, 1})
    return processes


def test_no_process_is_left(tokenizer_file: Path, started: list[subprocess.Popen]) -> None:
    with open_workers([tokenizer_file], 10**6) as pool:
        assert pool is not None
        (ids, lengths), _ = pool.encode(["a few words", "", "äöü\n\u2028 x"], [])
    tokenizer = Tokenizer.load(tokenizer_file)
    expected = [tokenizer.encode(text) for text in ("a few words", "", "äöü\n\u2028 x")]
    assert lengths.tolist() == [len(row) for row in expected]
    assert ids.tolist() == [i for row in expected for i in row]
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_a_worker_that_dies_is_an_error_not_a_hang(
    tokenizer_file: Path, started: list[subprocess.Popen]
) -> None:
    with open_workers([tokenizer_file], 10**6) as pool:
        assert pool is not None
        for process in started:
            process.kill()
            process.wait()
        with pytest.raises(UserError, match="has ended"):
            pool.encode(["a few words"], ["a few words"])


def test_small_corpora_start_none(tokenizer_file: Path, started: list[subprocess.Popen]) -> None:
    with open_workers([tokenizer_file], 10) as pool:
        assert pool is None
    assert started == []


def test_one_tokenizer_for_both_sides_is_loaded_once(tmp_path: Path) -> None:
    """Each has a table of its own that grows with the text."""
    paths = [tmp_path / name for name in ("src.json", "tgt.json", "other.json")]
    for path in paths[:2]:
        Tokenizer.train(["a b c"], TokenizerConfig(vocab_size=300)).save(path)
    Tokenizer.train(["x y z z"], TokenizerConfig(vocab_size=300)).save(paths[2])
    alike, apart = tokenizers_of(paths[:2]), tokenizers_of(paths[::2])
    assert alike["s"] is alike["t"]
    assert apart["s"].sha256 != apart["t"].sha256
