"""XML from strangers: what is a trap is refused at once, in one sentence and little memory."""

import itertools
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.data.formats.xml import MAX_DEPTH
from dragoman.errors import UserError
from steps import counting, steps_of

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
SUBSETS = {
    "billion laughs": f'<!ENTITY l0 "ha">{LAUGHS}',
    "quadratic": f'<!ENTITY l9 "{"a" * 100_000}">',
    "external file": '<!ENTITY l9 SYSTEM "file:///etc/passwd">',
    "external address": '<!ENTITY l9 SYSTEM "http://localhost:1/x">',
    "parameter entity": '<!ENTITY % p SYSTEM "http://localhost:1/x"> %p;',
    "attribute list": '<!ATTLIST tmx a CDATA "x">',
    "notation": '<!NOTATION n SYSTEM "x">',
    "element": "<!ELEMENT tmx ANY>",
    "nothing": "",
}
ROOTS = {"tmx": "a.tmx", "xliff": "a.xlf"}
SPREAD = {
    "at once": "<!DOCTYPE {root} [{subset}]>",
    "after an address": '<!DOCTYPE {root} SYSTEM "x.dtd" [{subset}]>',
    "after a comment": "<!-- {pad} --><!DOCTYPE {root} [{subset}]>",
    "after an instruction": "<?pi {pad}?>\n\n<!DOCTYPE {root} PUBLIC 'p' 's' [{subset}]>",
}
ENCODINGS = ["utf-8", "utf-16", "iso-8859-1"]
ATTACKS = list(itertools.product(ROOTS, SUBSETS, SPREAD, ENCODINGS))


def read(path: Path) -> None:
    for _ in read_pairs(SourceConfig((str(path),)), "en", "de"):
        pass


def refused(path: Path, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=message) as error:
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(error.value) and path.name in str(error.value)
    assert peak < 32 << 20


def test_two_hundred_doctypes(tmp_path: Path) -> None:
    assert len(ATTACKS) >= 200
    for root, subset, spread, encoding in ATTACKS:
        doctype = SPREAD[spread].format(root=root, subset=SUBSETS[subset], pad="x" * 5000)
        text = f'<?xml version="1.0" encoding="{encoding}"?>\n{doctype}\n<{root}><b>&l9;</b></{root}>'
        path = tmp_path / ROOTS[root]
        path.write_bytes(text.encode(encoding))
        with pytest.raises(UserError, match=r"the DOCTYPE declares entities or elements of its own"):
            read(path)


def test_nothing_is_lost_where_a_dtd_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(
        '<!DOCTYPE tmx SYSTEM "http://localhost:1/tmx14.dtd">\n<tmx><body>\n&eacute;</body></tmx>'
    )
    refused(path, r"a\.tmx:3: the entity &eacute; is not defined")
    path.write_text("<tmx><body>\n&eacute;</body></tmx>")
    refused(path, r"a\.tmx:2: not well-formed XML \(undefined entity")


def test_depth_size_and_bombs(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text("<tmx>" + "<a>" * 200_000)
    refused(path, f"nested more than {MAX_DEPTH} deep")
    path.write_text("<tmx>\n<a b='" + "x" * (8 << 20))
    refused(path, r"a\.tmx:2: a tag or comment of more than 4 MiB")
    path.write_text("<tmx>\n<!--" + "x" * (8 << 20))
    refused(path, r"a\.tmx:2: a tag or comment of more than 4 MiB")
    path.write_text("<tmx><a " + " ".join(f"a{n}='1'" for n in range(20_000)) + "/>")
    refused(path, "cut off|no unit")


def test_a_segment_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text("<tmx><body><tu><tuv xml:lang='en'><seg>" + "x " * (9 << 20))
    with pytest.raises(UserError, match="a segment of more than 16 million characters"):
        read(path)


@pytest.mark.parametrize(
    "piece", ["a", "&amp;", "\n", "<ph/>", "a<ph/> ", "<!-- a -->", "<hi>a</hi>", "<hi>"]
)
def test_steps_grow_with_the_length_alone(tmp_path: Path, piece: str) -> None:
    """Counted, not timed."""
    path = tmp_path / "a.tmx"

    with counting("dragoman.text", "dragoman.data.formats") as load:
        read_all = load("dragoman.data.formats").read_pairs

        def steps(count: int) -> int:
            unit = (
                f"<tu><tuv lang='en'><seg>{piece * count}</seg></tuv><tuv lang='de'><seg>b</seg></tuv></tu>"
            )
            path.write_text(f"<tmx><header srclang='en'/><body>{unit}</body></tmx>")
            return steps_of(consumed, read_all(SourceConfig((str(path),)), "en", "de"))

        assert steps(200) <= 2.2 * steps(100)


def consumed(pairs: Iterator[object]) -> None:
    with suppress(UserError):
        for _ in pairs:
            pass


PIECES = st.lists(
    st.sampled_from([
        *("<tmx>", "</tmx>", "<body>", "</body>", "<tu>", "</tu>", "<tuv xml:lang='en'>", "<tuv lang='de'>"),
        *("</tuv>", "<seg>", "</seg>", "<ph>", "</ph>", "<bpt i='1'>", "</bpt>", "text", "&amp;", "&x;"),
        *("<![CDATA[", "]]>", "<xliff>", "</xliff>", "<file source-language='en'>", "<trans-unit id='1'>"),
        *("</trans-unit>", "<source>", "</source>", "<target>", "</target>", "<mrk mtype='seg' mid='1'>"),
        *("</mrk>", "<seg-source>", "<segment>", "</segment>", "</file>", "<!-- ", " -->", "<?pi", "?>"),
        *("\0", "é", "\n", "<sdl:seg id='1'/>"),
    ]),
    max_size=25,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(pieces=PIECES, root=st.sampled_from(["tmx", "xliff"]), closed=st.booleans())
def test_any_markup_gives_pairs_or_a_user_error(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], root: str, closed: bool
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / ROOTS[root]
    path.write_text(f"<{root}>{''.join(pieces)}" + (f"</{root}>" if closed else ""), encoding="utf-8")
    try:
        read(path)
    except UserError as error:
        assert str(path) in str(error) and "\n" not in str(error)
