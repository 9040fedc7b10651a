import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.formats import lines as lines_module
from dragoman.data.formats import read_lines
from dragoman.errors import UserError

SEPARATORS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\x1f"
EVIL = f"{SEPARATORS}\r\t \u00a0\u3000\u200b\u200d\ufeff\u0301\u202e\U0001f600aé|▁<>\\\"'"


def test_only_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.en"
    path.write_bytes(f"a{SEPARATORS}b\nc\rd\r\n\n e ".encode())
    assert list(read_lines(path)) == [f"a{SEPARATORS}b", "c\rd", "", " e "]


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.text(alphabet=EVIL, max_size=12), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    zipped=st.booleans(),
    chunk=st.sampled_from([1, 2, 3, 7, 1 << 20]),
)
def test_lines_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, bom: bool, zipped: bool, chunk: int
) -> None:
    data = ("\ufeff" * bom + "".join(line + end for line in lines)).encode("utf-8")
    path = tmp_path_factory.mktemp("lines") / "a"
    path.write_bytes(gzip.compress(data) if zipped else data)
    expected = [line.removesuffix("\r") if end == "\n" else line for line in lines]
    if not bom:
        expected[0] = expected[0].removeprefix("\ufeff")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_CHUNK", chunk)
        assert list(read_lines(path)) == expected


@settings(max_examples=200, deadline=None)
@given(
    data=st.lists(st.one_of(st.binary(max_size=4), st.sampled_from([b"\n", b"\r\n", b"\x1f\x8b"]))).map(
        b"".join
    )
)
def test_any_bytes_give_all_lines_or_a_user_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "a"
    path.write_bytes(data)
    try:
        lines = list(read_lines(path))
    except UserError as error:
        assert str(error).startswith(str(path))
        return
    assert len(lines) == data.count(b"\n") + (not data.endswith(b"\n"))
    text = data.decode("utf-8").removeprefix("\ufeff")
    assert lines == [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"fine\nb\xffd\n", r":2: not valid UTF-8 \(0xFF at byte 6\); convert"),
        (b"fine\n\ntrunc\xe2\x82", r":3: not valid UTF-8 \(0xE2 at byte 11\)"),
        (b"a\nb\nc\x00d\n", r":3: NUL at byte 5"),
        (b"\xff\xfea\x00\n\x00", r":1: the file is UTF-16 \(byte 0\); convert it to UTF-8"),
        (b"", r": the file is empty$"),
        (b"\xef\xbb\xbf", r": the file is empty$"),
        (gzip.compress(b"", mtime=0), r": the file is empty$"),
        (gzip.compress(b"fine\nb\xffd\n", mtime=0), r":2: not valid UTF-8 \(0xFF at byte 6\)"),
    ],
)
def test_bad_bytes_are_located(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "a.en"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        list(read_lines(path))


def test_the_place_is_right_beyond_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_CHUNK", 16)
    path = tmp_path / "a.en"
    good = b"".join(b"line %d\n" % n for n in range(100))
    path.write_bytes(good + b"oh \xc3\x28\n" + good)
    with pytest.raises(UserError, match=rf"^{path}:101: not valid UTF-8 \(0xC3 at byte {len(good) + 3}\)"):
        list(read_lines(path))


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.en: there is no such file$"):
        list(read_lines(tmp_path / "nothing.en"))
    with pytest.raises(UserError, match=r"this is a directory, expected a file$"):
        list(read_lines(tmp_path))
    with pytest.raises(UserError, match=r"not a name that a file can have$"):
        list(read_lines("a\0b"))
    secret = tmp_path / "secret"
    secret.write_text("x\n")
    secret.chmod(0)
    if not os.access(secret, os.R_OK):  # the superuser may read everything
        with pytest.raises(UserError, match=r"secret: cannot be opened \(Permission denied\)$"):
            list(read_lines(secret))


def test_gzip_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"sentence number %d\n" % n for n in range(500)))
    path = tmp_path / "a.en.gz"
    for cut in range(2, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match=rf"^{path}: the gzip file is (cut off|damaged)"):
            list(read_lines(path))


def test_gzip_damaged_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    text = b"".join(b"sentence number %d\n" % (n * n) for n in range(200))
    whole = gzip.compress(text, mtime=0)
    expected = text.decode().splitlines()
    path = tmp_path / "a.en.gz"
    refused = 0
    for place in range(2, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        try:
            assert list(read_lines(path)) == expected  # bytes of the header that nobody reads
        except UserError as error:
            assert str(error).startswith(str(path))
            refused += 1
    assert refused > len(range(2, len(whole), 3)) - 10


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n"))
    assert list(read_lines(path)) == ["a", "bc", "d"]


def test_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress((b"a" * 999 + b"\n") * 40_000))
    assert path.stat().st_size < 100_000
    assert sum(1 for _ in read_lines(path)) == 40_000  # small enough to be harmless
    monkeypatch.setattr(lines_module, "_RATIO_GRACE", 10 << 20)
    with pytest.raises(UserError, match=r"bomb\.gz: unpacks to more than 200 times its size"):
        list(read_lines(path))


def test_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 3 << 20)
    path = tmp_path / "a.en"
    path.write_bytes(b"ok\n" + b"x" * (5 << 20))
    with pytest.raises(UserError, match=r"a\.en:2: the line is longer than 3 MiB"):
        list(read_lines(path))


def test_a_long_line_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.en"
    path.write_bytes(b"ok\n" + b"x" * (5 << 20) + b"\nend")
    assert [len(line) for line in read_lines(path)] == [2, 5 << 20, 3]


def test_formats_import_without_torch() -> None:
    code = "import sys, dragoman.data.formats; sys.exit('torch' in sys.modules or 'jaxtyping' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
