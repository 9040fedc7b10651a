"""How often a corpus is read before training, and what becomes of odd ones."""

import gzip
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.fingerprint import CACHE
from dragoman.data.formats import lines as lines_module
from dragoman.errors import UserError
from dragoman.training import plan as plan_module
from dragoman.training.display import NoDisplay
from dragoman.training.plan import Plan, make_plan

PAIRS = [(f"this is the sentence number {n}", f"dies ist der satz nummer {n}") for n in range(4000)]
SMALL = {
    "train.max_updates": 1,
    "model.model_dim": 16,
    "model.num_layers": 1,
    "tokenizer.vocab_size": 500,
    "train.device": "cpu",
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """Plans training on pairs, without timing it."""
    monkeypatch.setattr(plan_module, "estimate", lambda *_: None)

    def make(pairs: list[tuple[str, str]], **overrides: Any) -> Plan:
        files = [str(tmp_path / name) for name in ("a.en", "a.de")]
        for side, file in enumerate(files):
            Path(file).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        return make_plan(files, NoDisplay(), out=tmp_path / "run", overrides={**SMALL, **overrides})

    return make


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes that are read of each file."""
    found: Counter[str] = Counter()

    class Counted:
        def __init__(self, file: BufferedReader, name: str) -> None:
            self._file, self._name = file, name

        def read(self, size: int = -1) -> bytes:
            chunk = self._file.read(size)
            found[self._name] += len(chunk)
            return chunk

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    opened = lines_module.open_binary

    @contextmanager
    def counting(path: str | Path) -> Iterator[Any]:
        with opened(path) as file:
            yield Counted(file, Path(path).name)

    monkeypatch.setattr(lines_module, "open_binary", counting)
    monkeypatch.setattr("dragoman.data.fingerprint.open_binary", counting)
    monkeypatch.setattr(lines_module, "_CHUNK", 4096)
    return found


def test_a_corpus_is_read_twice(plan: Callable[..., Plan], read: Counter[str], tmp_path: Path) -> None:
    plan(PAIRS)
    for name in ("a.en", "a.de"):
        size = (tmp_path / name).stat().st_size
        peeks = 3 * 4096
        assert 2 * size <= read[name] <= 2 * size + peeks
    read.clear()
    plan(PAIRS)  # prepared already
    assert read["a.en"] <= (tmp_path / "a.en").stat().st_size + 3 * 4096


def test_a_packed_corpus_is_read_twice(
    tmp_path: Path, read: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "estimate", lambda *_: None)
    file = tmp_path / "a.tsv.gz"
    chance = random.Random(1)
    rows = (f"{chance.getrandbits(200)} {n}\t{chance.getrandbits(200)}\n" for n in range(16_000))
    file.write_bytes(gzip.compress("".join(rows).encode()))
    make_plan([str(file)], NoDisplay(), out=tmp_path / "run", overrides=SMALL)
    # Beginnings of it are looked at too, in pieces of up to 128 KiB.
    assert read["a.tsv.gz"] < 2.8 * file.stat().st_size


def test_the_fingerprint_does_not_depend_on_who_hashed(plan: Callable[..., Plan], tmp_path: Path) -> None:
    first = plan(PAIRS).prepared
    again = plan(PAIRS).prepared
    assert first.fingerprint == again.fingerprint
    assert [entry.name for entry in (tmp_path / CACHE).iterdir()] == [first.fingerprint]


@pytest.mark.parametrize(
    "pairs",
    [
        [("one", "eins")],
        [(f"same {n}", f"same {n}") for n in range(60)],
        [(str(n), str(n * n)) for n in range(60)],
        [(str(n), "1") for n in range(60)],
        [("a" * n, "b") for n in range(1, 60)],
        [("word " * 50_000, "short"), ("word", "short"), ("other", "long")],
        [("", ""), ("a", "b"), ("", "c"), ("d", "")],
    ],
    ids=["one pair", "equal sides", "numbers", "one target", "one letter", "a long line", "empty sides"],
)
def test_odd_corpora_have_a_plan(plan: Callable[..., Plan], pairs: list[tuple[str, str]]) -> None:
    found = plan(pairs)
    assert len(found.prepared.train) >= 1
    assert dict(found.rows())["training"].endswith("on the CPU")


def test_a_corpus_without_text_is_refused_in_one_sentence(plan: Callable[..., Plan]) -> None:
    with pytest.raises(UserError, match=r"a\.de: there is no pair to learn from"):
        plan([("a", ""), ("", "b")])


def test_a_line_that_fills_the_memory_is_refused_in_one_sentence(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 1 << 20)
    with pytest.raises(UserError, match=r"a\.en:2: the line is longer than 1 MiB; is this a text file\?"):
        plan([("a", "b"), ("a" * (5 << 20), "b")])
