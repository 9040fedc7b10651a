"""The picture is a valid PNG and a valid SVG that says in text what it shows, and the same bytes again."""

import struct
import sys
import xml.etree.ElementTree as ElementTree
import zlib

import matplotlib
import pytest

from dragoman.errors import UserError
from dragoman.evaluate.lengths import Comparison, compare_by_length, make_buckets
from dragoman.evaluate.plot import COLOURS, draw_lengths

REFERENCES = [
    f"{'a small red cat sat here now ' * size}number {size}" for size in (1, 2, 3) for _ in range(6)
]
LABELS = ["LSTM & co", "_hidden", "a $x$ b"]


def comparison(bootstrap: int = 20, labels: list[str] = LABELS) -> Comparison:
    texts = [
        [text.replace("cat", "dog") if i % (n + 2) else text for i, text in enumerate(REFERENCES)]
        for n in range(len(labels))
    ]
    buckets = make_buckets([len(text.split()) for text in REFERENCES], [10, 20])
    return compare_by_length(dict(zip(labels, texts, strict=True)), REFERENCES, buckets, bootstrap=bootstrap)


def png_chunks(data: bytes) -> dict[bytes, bytes]:
    """Names and contents, each held against its checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, place = {}, 8
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        (checksum,) = struct.unpack(">I", data[place + 8 + size : place + 12 + size])
        assert checksum == zlib.crc32(name + content)
        found[name] = found.get(name, b"") + content
        place += 12 + size
    return found


def svg_texts(data: bytes) -> list[str]:
    return [
        "".join(node.itertext()) for node in ElementTree.fromstring(data).iter() if node.tag.endswith("}text")
    ]


def test_a_valid_png_of_printable_size() -> None:
    chunks = png_chunks(draw_lengths(comparison())["png"])
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    assert width >= 1000 and height >= 600
    assert len(zlib.decompress(chunks[b"IDAT"])) == height * (1 + 4 * width)  # red, green, blue, alpha
    assert b"IEND" in chunks and b"tEXt" not in chunks


def test_the_svg_says_in_text_what_it_shows() -> None:
    texts = svg_texts(draw_lengths(comparison())["svg"])
    for label in (*LABELS, "≤ 10", "11–20", "> 20"):
        assert label in texts, texts
    assert texts.count("n = 6") == 3
    assert "length of the source in words" in texts
    assert "(n: number of sentences; bars: 95% bootstrap intervals)" in texts
    assert "BLEU (0 to 100)" in texts


def test_every_run_has_its_own_colour_and_bars_only_with_a_bootstrap() -> None:
    svg = draw_lengths(comparison())["svg"].decode().lower()
    assert all(colour.lower() in svg for colour in COLOURS[:3])
    assert not any("bootstrap" in text for text in svg_texts(draw_lengths(comparison(bootstrap=0))["svg"]))


def test_the_axis_begins_at_zero_where_scores_come_near_it() -> None:
    buckets = make_buckets([len(text.split()) for text in REFERENCES], [10, 20])
    right, wrong = list(REFERENCES), ["nothing of it"] * len(REFERENCES)
    far = draw_lengths(compare_by_length({"right": right, "wrong": wrong}, REFERENCES, buckets))
    near = draw_lengths(compare_by_length({"right": right, "again": right}, REFERENCES, buckets))
    assert "0" in svg_texts(far["svg"])
    assert "0" not in svg_texts(near["svg"])


def test_many_runs_and_long_labels() -> None:
    labels = [f"{'a long label of a run ' * 3}{number}" for number in range(9)]
    texts = svg_texts(draw_lengths(comparison(2, labels))["svg"])
    assert set(labels) <= set(texts)


def test_the_same_bytes_again_whatever_the_users_settings() -> None:
    first = draw_lengths(comparison())
    with matplotlib.rc_context({"lines.linewidth": 9, "svg.fonttype": "path", "savefig.dpi": 20}):
        assert draw_lengths(comparison()) == first
        assert matplotlib.rcParams["lines.linewidth"] == 9
    assert b"<dc:date>" not in first["svg"]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"\[plots\]"):
        draw_lengths(comparison(bootstrap=0))
