"""Word, PowerPoint, OpenDocument and EPUB: text changes, everything else is kept; traps are refused."""

import io
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import pytest

from dragoman.data.documents import OpenArchive, head_of, parse_document
from dragoman.data.documents import archive as module
from dragoman.data.documents.translate import translate_units
from dragoman.errors import UserError
from steps import counting, steps_of

Through = Callable[[str, str], None]
W = '<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="w"><w:body>{}</w:body></w:document>'
A = '<p:sld xmlns:p="p" xmlns:a="a"><a:p>{}</a:p></p:sld>'
ODF = '<office:document-content xmlns:office="o" xmlns:text="t">{}</office:document-content>'
X = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'


def packed(parts: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def upper(text: str) -> str:
    return "".join(part if part.startswith("<") else part.upper() for part in re.split("(<[^>]*>)", text))


def shouted(name: str, part: str, content: str) -> str:
    """A document with one part of text, in capitals; everything else stays byte for byte."""
    others: dict[str, str | bytes] = {"mimetype": "x", "media/image.png": bytes(range(256)), part: content}
    opened = parse_document(packed(others), name)
    outcome = translate_units(opened.units, lambda texts: [upper(text) for text in texts])
    assert outcome.left == []
    assert unpacked(opened.written({})) == unpacked(packed(others))
    found = unpacked(opened.written(outcome.texts))
    assert list(found) == list(others) and found["media/image.png"] == others["media/image.png"]
    ElementTree.fromstring(found[part])
    return found[part].decode()


def run(text: str, format: str = "") -> str:
    return f'<w:r>{format}<w:t xml:space="preserve">{text}</w:t></w:r>'


BOLD, ITALIC = "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"<w:pPr/>{run('Click ')}{run('here', BOLD)}{run(' now')}",
         f"<w:pPr/>{run('CLICK ')}{run('HERE', BOLD)}{run(' NOW')}"),
        # Runs of one format are one; what a spelling checker left behind goes.
        (f"{run('He')}<w:proofErr w:type='x'/>{run('llo &amp; ')}{run('you')}", run("HELLO &amp; YOU")),
        # The format of most of the text is that of the whole.
        (f"{run('Everything is bold', BOLD)}{run(' but', ITALIC)}",
         f"{run('EVERYTHING IS BOLD', BOLD)}{run(' BUT', ITALIC)}"),
        (f"<w:r>{BOLD}<w:t>a</w:t><w:tab/><w:t>b</w:t></w:r>",
         f"{run('A', BOLD)}<w:r>{BOLD}<w:tab/></w:r>{run('B', BOLD)}"),
        (f'<w:hyperlink r="1">{run("link", ITALIC)}</w:hyperlink>{run(" and text")}',
         f'<w:hyperlink r="1">{run("LINK", ITALIC)}</w:hyperlink>{run(" AND TEXT")}'),
        ("<w:del><w:r><w:delText>old</w:delText></w:r></w:del>" + run("new"),
         "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>" + run("NEW")),
        (run("12 345"), run("12 345")),
        ("", ""),
    ],
)  # fmt: skip
def test_runs_of_word(content: str, expected: str) -> None:
    found = shouted("a.docx", "word/document.xml", W.format(f"<w:p>{content}</w:p>"))
    assert found == W.format(f"<w:p>{expected}</w:p>")


def test_a_text_box_inside_a_paragraph() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>"
    found = shouted(
        "a.docx", "word/document.xml", W.format(f"<w:p>{run('a b')}{box.format(run('in'))}{run('c')}</w:p>")
    )
    assert found == W.format(f"<w:p>{run('A B')}{box.format(run('IN'))}{run('C')}</w:p>")


def test_slides() -> None:
    source = "<a:r><a:rPr b='1'/><a:t>Bold </a:t></a:r><a:r><a:t>and plain</a:t></a:r><a:endParaRPr/>"
    found = shouted("a.pptx", "ppt/slides/slide1.xml", A.format(source))
    assert found == A.format(source.replace("Bold", "BOLD").replace("and plain", "AND PLAIN"))


def test_open_document() -> None:
    source = (
        "<text:h>Head</text:h><text:p>Some <text:span>bold &amp; words</text:span><text:s/>and"
        "<text:note><text:p>a note</text:p></text:note> more<text:line-break/></text:p><text:p/>"
    )
    found = shouted("a.odt", "content.xml", ODF.format(source))
    expected = source
    for text in ("Head", "Some", "bold", "words", "and<", "a note", "more"):
        expected = expected.replace(text, text.upper())
    assert found == ODF.format(expected)


def test_books() -> None:
    found = shouted(
        "a.epub", "OEBPS/c.xhtml", X.format("<p>It was&#160;a <b>dark</b> night</p><pre>kept</pre>")
    )
    assert found == X.format("<p>IT WAS&#160;A <b>DARK</b> NIGHT</p><pre>kept</pre>")
    assert shouted("a.epub", "toc.ncx", "<ncx><text>One</text></ncx>") == "<ncx><text>ONE</text></ncx>"


def test_a_translation_may_say_anything() -> None:
    data = packed({"word/document.xml": W.format(f"<w:p>{run('Click ')}{run('here', BOLD)}</w:p>")})
    opened = parse_document(data, "a.docx")
    written = unpacked(opened.written({0: "<g1>\0f9\0hier</g1> & <da>"}))["word/document.xml"].decode()
    assert f"{run('f9hier', BOLD)}{run(' &amp; &lt;da&gt;')}" in written


def test_the_head_of_a_document() -> None:
    data = packed({"word/document.xml": W.format(f"<w:p>{run('Guten Tag')}</w:p>" * 2000)})
    assert head_of(data, "a.docx").startswith("Guten Tag Guten Tag") and len(head_of(data, "a.docx")) == 2000
    assert head_of(b"abc", "a.txt") == "abc"


def encrypted(data: bytes) -> bytes:
    """Both headers of the first part say that it is encrypted."""
    for sign, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = data.index(sign) + at
        data = data[:start] + struct.pack("<H", 1) + data[start + 2 :]
    return data


WORD = {"word/document.xml": W.format(f"<w:p>{run('text')}</w:p>")}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.docx", b"PK", "not a whole zip archive"),
        ("a.docx", packed(WORD)[:-40], "not a whole zip archive"),
        ("a.docx", packed({"x.xml": "<a/>"}), "no part with text in it"),
        ("a.docx", encrypted(packed(WORD)), "encrypted"),
        ("a.docx", packed(WORD, zipfile.ZIP_LZMA), "packed in a way"),
        ("a.docx", packed({"word/document.xml": W.format(" " * (3 << 20))}), "200 times its size"),
        ("a.docx", packed({"word/document.xml": "<w:p>"}), "cut off"),
        (
            "a.docx",
            packed({"word/document.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}),
            "DOCTYPE declares",
        ),
        ("a.docx", packed({"word/document.xml": "<a>" * 300 + "</a>" * 300}), "nested more than 256"),
        ("a.docx", packed({"word/document.xml": b"\xff\xfe\xff"}), "word/document.xml"),
        ("a.pdf", b"%PDF", "convert it to DOCX or ODT"),
        ("a.xlsx", b"PK", "save its sheet as .tsv"),
    ],
)
def test_traps_are_refused(name: str, data: bytes, told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        parse_document(data, name)


def test_a_flipped_bit_is_noticed() -> None:
    data = bytearray(packed(WORD, zipfile.ZIP_STORED))
    data[60] ^= 1
    with pytest.raises(UserError, match="not a whole zip archive"):
        parse_document(bytes(data), "a.docx")


def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 50)
    with pytest.raises(UserError, match="unpack to more than"):
        OpenArchive(packed(WORD), "a.docx")
    monkeypatch.setattr(module, "MOST_PARTS", 0)
    with pytest.raises(UserError, match="parts in the archive"):
        OpenArchive(packed(WORD), "a.docx")
    with pytest.warns(UserWarning, match="Duplicate"), pytest.raises(UserError):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("word/document.xml", "<a/>")
            archive.writestr("word/document.xml", "<a/>")
        parse_document(file.getvalue(), "a.docx")


PIECES = {
    "a.docx": [
        "<w:r><w:t>a</w:t></w:r>", "<w:r><w:t>a</w:t><w:tab/></w:r>", "</w:p><w:p>", "<w:r/>",
        "<w:hyperlink><w:r><w:t>a</w:t></w:r></w:hyperlink>",
        "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r><w:r><w:t>b</w:t></w:r>",
    ],
    "a.odt": ["a<text:s/>", "<text:span>a</text:span> ", "<text:note><text:p>a</text:p></text:note>b"],
}  # fmt: skip
FRAMES = {
    "a.docx": ("word/document.xml", W.replace("{}", "<w:p>{}</w:p>")),
    "a.odt": ("content.xml", ODF.replace("{}", "<text:p>{}</text:p>")),
}


@pytest.fixture(scope="module")
def through() -> Iterator[Through]:
    """A document read, translated and written, with all steps counted but those of the zip."""
    with counting("dragoman.text", "dragoman.data.formats", "dragoman.data.documents") as load:
        archive, unit = load("dragoman.data.documents.archive"), load("dragoman.data.documents.unit")
        translate = load("dragoman.data.documents.translate").translate_units

        def through(name: str, text: str) -> None:
            part, frame = FRAMES[name]
            parse = next(iter(archive.ARCHIVES[name[1:]].values()))
            opened = parse(frame.format(text), part, unit.unchecked)
            found = translate(opened.units, lambda texts: [f"Z {text}" for text in texts])
            unit.apply(frame.format(text), opened.edits(found.texts))

        yield through


@pytest.mark.parametrize(("name", "piece"), [(name, piece) for name, own in PIECES.items() for piece in own])
def test_twice_the_text_takes_twice_the_steps(through: Through, name: str, piece: str) -> None:
    assert steps_of(through, name, piece * 60) <= 2.3 * steps_of(through, name, piece * 30)
