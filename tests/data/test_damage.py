"""A damaged store is refused in one sentence or gives what was written: never anything else."""

import errno
import multiprocessing
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.damage import KINDS, copy_store, damage, files_of, make_earlier, make_store, read_all, reseal
from dragoman.data import verified_files
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.prepared import Prepared, mend, overlap, verify_prepared
from dragoman.data.verified_files import DamagedStore
from dragoman.errors import UserError

BLOCK = 512
CASES = 75


class Made:
    """A store of which copies are damaged."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind, self.root = kind, root
        self.directory = make_store(kind, root)
        self.contents = read_all(kind, self.directory)
        self.bytes = {path: path.read_bytes() for path in files_of(self.directory)}
        self._copies = 0

    def restore(self) -> None:
        for path, data in self.bytes.items():
            if path.is_dir():
                path.rmdir()
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)

    def copy(self) -> Path:
        self._copies += 1
        return copy_store(self.root, self.directory, self.root.with_name(f"{self.kind}-{self._copies}"))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """One of each kind, of many small blocks."""
    root = tmp_path_factory.mktemp("stores").resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified_files, "BLOCK_BYTES", BLOCK)
        return {kind: Made(kind, root / kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, stores: dict[str, Made]) -> Made:
    return stores[request.param]


def test_damage_is_never_taken_for_data(made: Made) -> None:
    rng = random.Random(made.kind)
    refused = 0
    for _ in range(CASES):
        what = damage(made.directory, rng)
        changed = any(not path.is_file() or path.read_bytes() != data for path, data in made.bytes.items())
        assert bool(verify_prepared(made.directory)) == changed, what
        try:
            assert read_all(made.kind, made.directory) == made.contents, what
        except UserError as error:
            assert str(made.directory) in str(error)
            assert "\n" not in str(error)
            refused += 1
        made.restore()
    assert refused > 0.9 * CASES


def test_every_block_of_every_file_is_verified(made: Made) -> None:
    """One byte in each of them."""
    copy = made.copy()
    for path in files_of(copy):
        data = path.read_bytes()
        for at in range(0, len(data), BLOCK):
            changed = bytearray(data)
            changed[min(at + 7, len(data) - 1)] ^= 1
            path.write_bytes(changed)
            (found,) = verify_prepared(copy)
            assert path.name in found
            if path.name not in ("meta.json", "hashes"):
                assert f"bytes {at:,} to {min(at + BLOCK, len(data)):,} are damaged" in found
        path.write_bytes(data)
    assert verify_prepared(copy) == []


def test_neighbouring_damage_is_one_finding(stores: dict[str, Made]) -> None:
    copy = stores["pairs"].copy()
    path = copy / "train.src.ids"
    data = bytearray(path.read_bytes())
    for block in (1, 2, 3, 6):
        data[block * BLOCK + 1] ^= 255
    path.write_bytes(data)
    (copy / "seen.src").unlink()
    found = verify_prepared(copy)
    assert len(found) == 3
    assert "seen.src: damaged: expected" in found[0] and "the file is missing" in found[0]
    assert f"{path}: bytes 512 to 2,048 are damaged" == found[1]
    assert f"{path}: bytes 3,072 to 3,584 are damaged" == found[2]


def _damage_last_block(directory: Path, name: str) -> Path:
    path = directory / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return path


def _read_last(directory: str) -> str:
    store = Prepared.open(Path(directory)).train
    try:
        store.src(len(store) - 1)
    except UserError as error:
        return str(error)
    return "read"


def test_a_block_is_verified_when_it_is_first_used(stores: dict[str, Made]) -> None:
    made = stores["shards"]  # a shard has few pairs, which are verified together
    copy = made.copy()
    number = len(made.contents["train"]["ids"]) - 1
    path = _damage_last_block(copy, "train-00002.src.ids")
    store = Prepared.open(copy).train  # that costs nothing
    assert [store.src(n).tolist() for n in range(40)] == [
        ids[0] for ids in made.contents["train"]["ids"][:40]
    ]
    for _ in range(2):  # it does not become right by being asked for twice
        with pytest.raises(
            DamagedStore, match=rf"{path} \(.*\): bytes [\d,]+ to [\d,]+ are damaged; give the command"
        ):
            store.src(number)
    found: list[str] = []
    store = Prepared.open(copy).train

    def read() -> None:
        try:
            store.src(number)
        except UserError as error:
            found.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found.append(pool.apply(_read_last, (str(copy),)))
    assert len(found) == 5
    assert len(set(found)) == 1
    assert "are damaged" in found[0]


def test_a_disk_that_fails_is_not_damage(stores: dict[str, Made], monkeypatch: pytest.MonkeyPatch) -> None:
    copy = stores["pairs"].copy()
    store = Prepared.open(copy).train

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(UserError, match=r"bytes 0 to 512 cannot be read \(Input/output error\)") as found:
        store.src(0)
    assert not isinstance(found.value, DamagedStore)
    assert "cannot be read" in verify_prepared(copy)[0]


def test_what_is_no_file_does_not_block(made: Made) -> None:
    copy = made.copy()
    for path in [*list(copy.iterdir())[::4], copy / "meta.json", copy / "hashes"]:
        path.rename(copy / "aside")
        os.mkfifo(path)
        assert path.name in verify_prepared(copy)[0]
        with pytest.raises(UserError, match=path.name):
            read_all(made.kind, copy)
        (copy / "aside").rename(path)
    assert not verify_prepared(copy)


HOSTILE: dict[str, Any] = {
    "no files": {"files": {}},
    "files of another kind": {"files": ["train.lines"]},
    "a size that is none": {"files": {"train.lines": -1}},
    "a size that is no number": {"files": {"train.lines": "1"}},
    "a huge file": {"files": {"train.lines": 1 << 59}},
    "a name that leads away": {"files": {"../train.lines": 1}},
    "a name that no file has": {"files": {"a\0b": 1}},
    "no block": {"block": 0},
    "an odd block": {"block": 1000},
    "a huge block": {"block": 1 << 40},
    "a block that is no number": {"block": "512"},
    "another table": {"hashes": "0" * 64},
}
HOSTILE_PAIRS: dict[str, Any] = {
    "a later version": {"version": 3},
    "an earlier version": {"version": 1},
    "no version": {"version": None},
    "three tokenizers": {"tokenizers": ["0" * 64] * 3},
    "another tokenizer": {"tokenizers": ["0" * 64]},
    "counts of text": {"dropped": {"copy": "many"}},
    "too much": {"extra": 1},
    **{
        f"train {name}={value!r}": {"train": {name: value}}
        for name, value in [
            ("pairs", 10**15),
            ("pairs", -1),
            ("pairs", 1.5),
            ("src_dtype", "object"),
            ("src_dtype", "uint64"),
            ("tgt_dtype", "float16"),
            ("names", []),
            ("corpora", []),
            ("corpora", [{"start": 0, "end": 10**12}]),
            ("corpora", [{"start": 5, "end": 0}]),
            ("shards", [{"pairs": 10**12, "tgt_tokens": 1}]),
            ("shards", [{"pairs": 0, "tgt_tokens": 0}] * 1000),
        ]
    },
}
HOSTILE_LABELLED: dict[str, Any] = {
    "a later version": {"labelled": 3},
    "other corpora": {"corpora": [{"start": 0, "end": 3}]},
    "corpora of another kind": {"corpora": 1},
}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(kind, change, id=f"{kind}: {name}")
        for kind, cases in (("pairs", HOSTILE | HOSTILE_PAIRS), ("labelled", HOSTILE | HOSTILE_LABELLED))
        for name, change in cases.items()
    ],
)
def test_what_somebody_has_made_up_is_refused(
    kind: str, change: dict[str, Any], stores: dict[str, Made]
) -> None:
    copy = stores[kind].copy()

    def edit(plain: dict[str, Any]) -> None:
        for name, value in change.items():
            plain[name] = plain[name] | value if value and isinstance(value, dict) else value

    reseal(copy, edit)
    assert verify_prepared(copy)
    with pytest.raises(UserError):
        read_all(kind, copy)


def test_numbers_are_held_against_one_another(stores: dict[str, Made]) -> None:
    """That is all there is in a store without hashes."""
    prepared = Prepared.open(stores["pairs"].directory)
    pieces = prepared.tgt_tokenizer.size
    for name, dtype, at, value in (
        ("train.src.lengths", np.int32, 3, -1),
        ("train.src.lengths", np.int32, 3, 500),
        ("train.links.lengths", np.int32, 3, 1),
        ("train.tgt.offsets", np.int64, 70, 1 << 40),
        ("train.tgt.offsets", np.int64, 0, 1),
        ("train.tgt.offsets", np.int64, -1, 1 << 40),
        ("train.tgt.ids", np.uint16, 5, pieces),
        ("train.dropped", np.int64, 0, 7),
        ("train.dropped", np.int64, 2, 77),
    ):
        copy = stores["pairs"].copy()
        numbers = np.fromfile(copy / name, dtype=dtype)
        numbers[at] = value
        numbers.tofile(copy / name)
        make_earlier(copy)  # without hashes
        assert name.split(".")[1] in verify_prepared(copy)[0], (name, at, value)
        with pytest.raises(UserError, match="damaged"):
            read_all("pairs", copy)


# --- stores of the version before hashes ---------------------------------------------------------------


def test_a_store_without_hashes_can_be_read(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    copy = made.copy()
    make_earlier(copy)
    assert read_all(made.kind, copy) == made.contents
    assert caplog.messages == [
        f"{copy}: prepared by an earlier version, without hashes of all files: it cannot be verified"
    ]
    assert verify_prepared(copy) == caplog.messages


def test_a_damaged_store_without_hashes_gives_no_traceback(made: Made) -> None:
    rng = random.Random(made.kind)
    for _ in range(CASES // 2):
        make_earlier(made.directory)
        damage(made.directory, rng)
        assert verify_prepared(made.directory)
        try:
            read_all(made.kind, made.directory)
        except UserError as error:
            assert "\n" not in str(error)
        made.restore()


# --- mending ---------------------------------------------------------------------------------------------


def test_the_data_of_a_run_are_taken_from_the_cache_again(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    twin = made.copy()
    kind = PreparedTask if made.kind == "labelled" else Prepared
    run = twin.parents[1] / "run" / "data"
    kind.open(twin).link_into(run)
    mend(run, twin)
    assert not caplog.messages
    for path in sorted(run.iterdir()):
        if path.is_symlink() or not path.stat().st_size:  # a shard that both point to
            continue
        data = path.read_bytes()
        path.unlink()  # what lies in the cache is another file
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        caplog.clear()
        mend(run, twin)
        (told,) = caplog.messages
        assert told.startswith(f"{path}: ")
        assert told.endswith(f"; replaced by the same data of {twin}, which are whole")
        assert read_all(made.kind, run) == made.contents
    assert [path.name for path in run.parent.iterdir()] == ["data"]


def test_damage_to_run_and_cache_is_told(stores: dict[str, Made]) -> None:
    twin = stores["pairs"].copy()
    run = twin.parents[1] / "run" / "data"
    Prepared.open(twin).link_into(run)
    _damage_last_block(run, "train.src.ids")  # a hard link: it is the same file
    with pytest.raises(
        DamagedStore, match=rf"data/train\.src\.ids: bytes .* are damaged, and the same data in {twin}"
    ):
        mend(run, twin)
    with pytest.raises(
        DamagedStore, match=r"are damaged, and .+ does not have these data any more; give the"
    ):
        mend(run, twin.with_name("gone"))
    assert verify_prepared(run)


def test_overlap_reads_no_damaged_hashes(stores: dict[str, Made]) -> None:
    copy = stores["pairs"].copy()
    _damage_last_block(copy, "seen.tgt")
    assert overlap(copy, ["house"], "src") == [False]
    with pytest.raises(DamagedStore, match=r"seen\.tgt: bytes"):
        overlap(copy, ["house"], "tgt")
