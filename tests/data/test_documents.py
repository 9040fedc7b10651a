"""Documents translated in place, with translators that are not models: upper case, words turned round."""

import io
import random
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from hypothesis import given, settings
from hypothesis import strategies as st

from data.document_samples import SAMPLES, shout, turn
from dragoman.data.config import SourceConfig
from dragoman.data.documents import SUFFIXES, open_document, parse_document
from dragoman.data.documents.inline import Inline, fault, written_unit
from dragoman.data.documents.translate import translate_units
from dragoman.data.documents.tree import parse_tree
from dragoman.data.formats import read_pairs
from dragoman.errors import UserError


@pytest.mark.parametrize("name", SAMPLES)
def test_only_translations_change(name: str) -> None:
    text, expected = SAMPLES[name]
    opened = parse_document(text.encode(), name, ("en", "de"))
    assert opened.written({}) == text.encode()
    outcome = translate_units(opened.units, shout)
    assert outcome.left == []
    written = opened.written(outcome.texts)
    assert written.decode() == expected
    again = parse_document(written, name, ("en", "de"))
    assert len(again.units) == len(opened.units)
    if name.endswith(("po", "xliff", "xlf", "tmx", "tsv", "jsonl")):
        assert all(unit.state == "done" or not unit.source for unit in again.units)


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.srt", "a.vtt", "a.txt"])
def test_what_translates_to_itself_stays_byte_for_byte(name: str) -> None:
    data = SAMPLES[name][0].encode()
    opened = parse_document(data, name)
    assert opened.written(translate_units(opened.units, lambda texts: texts).texts) == data


@pytest.mark.parametrize("name", ["a.xliff", "a.tmx"])
@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_encodings_of_xml(name: str, encoding: str) -> None:
    text = SAMPLES[name][0].replace('encoding="UTF-8"', f'encoding="{encoding.removesuffix("-sig")}"')
    if encoding == "iso-8859-1" and "encoding" not in text:
        text = text.replace('version="1.0"', 'version="1.0" encoding="iso-8859-1"', 1)
    opened = parse_document(text.encode(encoding), name, ("en", "de"))
    assert opened.written({}) == text.encode(encoding)
    written = opened.written({0: opened.units[0].source.replace("l", "Ж")}).decode(encoding)
    assert ("&#1046;" if encoding == "iso-8859-1" else "Ж") in written
    assert len(parse_document(written.encode(encoding), name, ("en", "de")).units) == len(opened.units)


def test_babel_reads_what_is_written() -> None:
    """An independent reader of PO finds the same strings, and all of them fuzzy."""
    text = r"""msgid ""
msgstr "Language: de\nPlural-Forms: nplurals=2; plural=(n != 1);\n"

msgid "one \"quoted\"\n\ttwo \\ three\n"
msgstr ""

msgctxt "c"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
"""
    opened = parse_document(text.encode(), "a.po")
    written = opened.written(translate_units(opened.units, shout).texts)
    catalog = read_po(io.BytesIO(written))
    found = {message.id: (message.string, message.fuzzy) for message in catalog if message.id}
    assert found == {
        'one "quoted"\n\ttwo \\ three\n': ('ONE "QUOTED"\n\tTWO \\ THREE\n', True),
        ("%d file", "%d files"): (("%d FILE", "%d FILES"), True),
    }


def test_a_translated_file_is_read_as_one_that_needs_review(tmp_path: Path) -> None:
    for name, (_, expected) in SAMPLES.items():
        if name.endswith((".po", ".xliff", ".tmx")):
            (tmp_path / name).write_bytes(expected.encode())
            pairs = list(read_pairs(SourceConfig((str(tmp_path / name),)), "en", "de"))
            reviewed = {"a.po": [], "crlf.po": [], "a.xliff": ["fertig"]}.get(name)
            assert reviewed is None or [pair.tgt for pair in pairs if pair.tgt] == reviewed


@pytest.mark.parametrize(
    ("translation", "reason"),
    [
        ("klick hier", "placeholders or inline tags"),
        ("<g1>hier</g1> %s <g1>", "placeholders or inline tags"),
        ("</g1>hier<g1> %s", "placeholders or inline tags"),
        (" ", "empty"),
        ("%s <g1>hier</g1>", None),
    ],
)
def test_faults_leave_a_unit_empty(translation: str, reason: str | None) -> None:
    text = '<xliff><file><trans-unit id="1"><source>a <g id="1">b</g> %s</source></trans-unit></file></xliff>'
    opened = parse_document(text.encode(), "a.xlf")
    outcome = translate_units(opened.units, lambda texts: [translation] * len(texts))
    assert (reason is None) == (outcome.texts != {})
    if reason is not None:
        assert reason in outcome.left[0][1]
        assert opened.written(outcome.texts) == text.encode()


def test_two_thousand_nestings() -> None:
    """Whatever is nested in whatever, every code comes out once, and well-formed."""
    chance = random.Random(1)
    for _ in range(2000):
        inline, opened = Inline(), []
        for number in range(1, chance.randint(2, 13)):
            what = chance.choice("toocacx")
            if what == "t":
                inline.text(chance.choice(["red ", "<g1> is text ", "a&b ", "ß", " "]))
            elif what == "o":
                inline.open(f"[o{number}]", number)
                opened.append(number)
            elif what == "c" and opened:
                inline.close(f"[c{number}]", opened.pop())
            elif what == "x":
                inline.close(f"[c{number}]", chance.choice([*opened, 0]))
            else:
                inline.alone(f"[a{number}]")
        unit = inline.unit("", 1, str)
        whole = written_unit(unit, unit.source, str)
        (translation,) = turn([unit.source])
        assert unit.source.strip() == "" or fault(unit, translation) is None, unit.source
        written = written_unit(unit, translation, str)
        codes = re.compile(r"\[[oca]\d+\]")
        assert sorted(codes.findall(written)) == sorted(codes.findall(whole))


PIECES = [
    *(
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<br>",
        "<!-- ",
        " -->",
        "text ",
        "Ünï ",
        "&amp;",
        "<",
        ">",
        '"',
        "'",
        "=",
    ),
    *(
        "<a href='x'>",
        "</a>",
        "<script>",
        "</script>",
        "`",
        "**",
        "*",
        "_",
        "[",
        "](x)",
        "]",
        "![",
        "\n",
        "\n\n",
    ),
    *(
        "# ",
        "- ",
        "1. ",
        "> ",
        "```",
        "    ",
        "|",
        "---",
        "\\",
        "~~",
        "00:01 --> 00:02\n",
        "%s ",
        "{x} ",
        "\r\n",
    ),
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=30),
    st.sampled_from(["a.html", "a.md", "a.txt", "a.srt", "a.vtt"]),
)
def test_any_text_keeps_its_bytes(pieces: list[str], name: str) -> None:
    data = "".join(pieces).encode()
    try:
        opened = parse_document(data, name)
    except UserError as error:
        assert name.endswith((".srt", ".vtt")) and "\n" not in str(error)
        return
    assert opened.written({}) == data
    assert opened.written(translate_units(opened.units, lambda texts: texts).texts) == data
    opened.written(translate_units(opened.units, shout).texts).decode()


XML_TEXT = st.lists(
    st.sampled_from([
        *("word ", "é", "&amp;", "&lt;b&gt;", "<g id='1'>in</g>", "<x id='2'/>", "\n ", "%s", "&#10;"),
        *('<bpt id="3">c</bpt>', '<ept id="3">d</ept>', "<g id='4'>a <g id='5'>b</g></g>"),
        *("<![CDATA[<]]>", "<!-- n -->"),
    ]),
    max_size=8,
).map("".join)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(XML_TEXT, st.sampled_from(["", "<target/>", "<target> </target>", "<target>t</target>"]))
    )
)
def test_any_xliff_stays_well_formed(units: list[tuple[str, str]]) -> None:
    inside = "\n".join(f"<trans-unit><source>{s}</source>{t}</trans-unit>" for s, t in units)
    text = f"<xliff version='1.2'><file><body>{inside}</body></file></xliff>"
    opened = parse_document(text.encode(), "a.xlf")
    assert opened.written({}) == text.encode()
    written = opened.written(translate_units(opened.units, turn).texts).decode()
    root = parse_tree(written, "a.xlf")
    sources = [written[node.open_end : node.close_start] for node in root.below("source")]
    assert sources == [source for source, _ in units]


BAD = [
    ("a.xlf", b"<xliff><file>", r"a\.xlf:1: the file is cut off"),
    ("a.xlf", b"<html/>", r"a\.xlf:1: expected <xliff> as the root"),
    ("a.xlf", b"<!DOCTYPE xliff [<!ENTITY a 'b'>]><xliff/>", r"a\.xlf:1: the DOCTYPE declares"),
    ("a.xlf", b"<xliff>" + b"<a>" * 300, r"nested more than 256 deep"),
    (
        "a.xlf",
        b'<?xml version="1.0" encoding="utf-7"?><xliff/>',
        r"a\.xlf:1: the encoding utf-7 is not known",
    ),
    ("a.tmx", b"<tmx><header/><body/></tmx>", r"a\.tmx: neither the run nor the memory names the language"),
    ("a.po", b"msgid 1", r"a\.po:1: not a PO file"),
    ("a.po", b'msgid "a"\nmsgstr "\xff"', r"a\.po:2: not valid UTF-8 \(0xFF at byte 18\)"),
    ("a.txt", b"a\nb\0", r"a\.txt:2: NUL in the text"),
    ("a.srt", b"1\nHello\n", r"a\.srt:1: a subtitle without its times"),
    ("a.srt", b"\n", r"a\.srt: there are no subtitles"),
    ("a.jsonl", b'{"src": 1}', r"a\.jsonl:1: expected an object with the text"),
    ("a.jsonl", b"{", r"a\.jsonl:1: not valid JSON"),
    ("a.tsv", b"x\tsrc\ttgt\na\n", r"a\.tsv:2: expected 3 columns, found 1"),
    ("a.xyz", b"", r"a\.xyz: expected a document with one of the suffixes \.po"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_errors_name_file_and_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=message) as error:
        open_document(tmp_path / name)
    assert "\n" not in str(error.value)


def test_every_suffix_has_a_sample() -> None:
    assert set(SUFFIXES.values()) == {SUFFIXES[Path(name).suffix] for name in SAMPLES}
