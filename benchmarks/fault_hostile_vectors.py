"""Hostile images, arrays and series."""

import gzip
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fault_attacks import Attack, written

_TRAIN = "train.device=cpu train.max_updates=1 --dry-run -q --out runs/h"
_SERIES = "task.series.horizon=4 task.series.window=16"
_READ = {
    "image": ("images.npy", f"finetune x.images.npy --task image {_TRAIN}"),
    "forecast": ("npy", f"finetune x.npy --task forecast {_TRAIN}"),
}


def vector_attacks() -> Iterator[Attack]:
    for what, data in {**_headers(), **_bombs()}.items():
        for kind, (name, text) in _READ.items():
            yield Attack("array", f"{kind}: {what}", _labelled(f"x.{name}", data), tuple(text.split()))
    zipped = gzip.compress(b"\x93NUMPY" + bytes(300 << 20), 9)
    for kind, (name, text) in _READ.items():
        arguments = tuple(text.replace(".npy", ".npy.gz").split())
        yield Attack("array", f"{kind}: gzip bomb", _labelled(f"x.{name}.gz", zipped), arguments)
    for what, image in _pictures().items():
        yield Attack("image", what, _table(image), tuple(f"finetune x.csv --task image {_TRAIN}".split()))
    for what, text in _series().items():
        for kind in ("series", "forecast"):
            arguments = tuple(f"finetune x.csv --task {kind} {_TRAIN} {_SERIES}".split())
            yield Attack("series", f"{kind}: {what}", written("x.csv", text.encode()), arguments)
    yield Attack(
        "series",
        "Parquet dictionary",
        _parquet,
        tuple(f"finetune x.parquet --task forecast {_TRAIN}".split()),
    )


def _headers() -> dict[str, bytes]:
    """Arrays whose header is a lie."""
    shapes = (
        "(1000000000000,)",
        "(9223372036854775807, 3)",
        "(-1, 4, 6)",
        "(60, 4, 6" + ", 1" * 40 + ")",
        "(0, 4, 6)",
    )
    found = {
        f"shape {shape[:30]}": _npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}")
        for shape in shapes
    }
    for kind in ("|O", "<U1000000000", "|V999999999999", "x", "<f99"):
        found[f"type {kind}"] = _npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (60, 4, 6)}}")
    found["code in the header"] = _npy("__import__('os').system('touch was-here')")
    found["deep header"] = _npy("[" * 60_000)
    found["long header"] = struct.pack("<6sBBI", b"\x93NUMPY", 2, 0, (1 << 32) - 1) + bytes(100)
    return found


def _bombs() -> dict[str, bytes]:
    return {
        "images of one pixel": _array(np.zeros((3000, 1, 1), np.uint8)),
        "one image of 20,000 × 20,000 bits": _npy(
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 20000, 20000)}"
        ),
    }


def _npy(header: str) -> bytes:
    text = header.encode() + b"\n"
    return struct.pack("<6sBBI", b"\x93NUMPY", 2, 0, len(text)) + text + bytes(64)


def _array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def _labelled(name: str, data: bytes) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(data)
        np.save(directory / "x.labels.npy", np.arange(60) % 3)

    return write


def _pictures() -> dict[str, bytes]:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def png(width: int, height: int, data: bytes) -> bytes:
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + head + data + chunk(b"IEND", b"")

    body = chunk(b"IDAT", zlib.compress(bytes(4 * 5)))
    return {
        "100,000 × 100,000 pixels": png(100_000, 100_000, body),
        "2,147,483,647 pixels in a row": png((1 << 31) - 1, 1, body),
        "no pixels": png(0, 0, body),
        "more data than pixels": png(4, 4, chunk(b"IDAT", zlib.compress(bytes(200 << 20), 9))),
        "a text of 200 MiB": png(4, 4, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(200 << 20), 9)) + body),
        "cut": png(4, 4, body)[:40],
        "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9999 9999\n",
        "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    }


def _table(image: bytes) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / "x.png").write_bytes(image)
        (directory / "x.csv").write_text("image,label\n" + "x.png,1\nx.png,2\n" * 30)

    return write


def _series() -> dict[str, str]:
    return {
        "numbers of 100,000 digits": "a,b\n" + f"{'9' * 100_000},1\n" * 40,
        "20,000 columns": ",".join(f"c{n}" for n in range(20_000)) + "\n" + ("1," * 19_999 + "1\n") * 40,
        "infinite": "a,b\n" + "inf,-inf\n" * 60,
        "nothing but gaps": "a,b\n" + ",nan\n" * 60,
        "one value": "a,b\n" + "1,1\n" * 60,
        "1e308": "a,b\n" + "1e308,-1e308\n" * 60,
        "one name twice": "a,a\n" + "1,2\n" * 60,
    }


def _parquet(directory: Path) -> None:
    """One number in a dictionary, and 20 million rows that are it."""
    import pyarrow
    import pyarrow.parquet

    places = pyarrow.array(np.zeros(20_000_000, np.int8))
    column = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array([1.0]))
    pyarrow.parquet.write_table(pyarrow.table({"a": column}), directory / "x.parquet")
