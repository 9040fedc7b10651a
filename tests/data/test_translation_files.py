"""Memories, catalogues and files of translators in the dialects that are found, written by hand."""

import gzip
import struct
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.formats import detect_format, guess_languages, read_pairs
from dragoman.errors import UserError

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="{srclang}" segtype="sentence"/><body>
{units}
</body></tmx>
"""


def read(
    path: Path, src_lang: str = "en", tgt_lang: str = "de", **options: str
) -> list[tuple[str, str, int]]:
    source = SourceConfig((str(path),), **options)  # type: ignore[arg-type]
    return [(pair.src, pair.tgt, pair.line) for pair in read_pairs(source, src_lang, tgt_lang)]


def texts(found: Sequence[tuple[str, str, int]]) -> list[tuple[str, str]]:
    return [(src, tgt) for src, tgt, _ in found]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def memory(path: Path, units: str, srclang: str = "en", encoding: str = "utf-8") -> Path:
    return write(path, TMX.format(units=units, srclang=srclang, encoding=encoding), encoding)


def unit(*variants: tuple[str, str], attribute: str = "xml:lang") -> str:
    inside = "".join(f'<tuv {attribute}="{lang}"><seg>{text}</seg></tuv>' for lang, text in variants)
    return f"<tu>{inside}</tu>"


INLINE = [
    ('Click <bpt i="1" x="1">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept>.', "Click here."),
    ('One<ph x="1">&lt;br/&gt;</ph>two', "One two"),
    ('See <ph x="1">{1}</ph> for more', "See for more"),
    ("End <ph>a<sub>a subflow</sub>b</ph>.", "End ."),
    ('<it pos="begin">&lt;i&gt;</it>Open', "Open"),
    ("A <hi>bright</hi> idea", "A bright idea"),
    ("Fish &amp; chips &#x2014; &lt;now&gt;", "Fish & chips — <now>"),
    ("<![CDATA[a < b]]>", "a < b"),
    ("  spaces \n around ", "spaces \n around"),
]


@pytest.mark.parametrize(("markup", "text"), INLINE)
def test_inline_codes_are_no_text(tmp_path: Path, markup: str, text: str) -> None:
    path = memory(tmp_path / "m.tmx", unit(("en", markup), ("de", "x")))
    assert texts(read(path)) == [(text, "x")]


def test_old_lang_attributes_regions_and_missing_languages(tmp_path: Path) -> None:
    units = "\n".join([
        unit(("EN-US", "one"), ("de-DE", "eins"), attribute="lang"),
        unit(("en_GB", "two"), ("en", "two!"), ("DE", "zwei")),
        unit(("en", "three"), ("fr", "trois")),
        "<tu><note>n</note><tuv xml:lang='de'><prop type='x'>p</prop><seg>vier</seg></tuv></tu>",
    ])  # fmt: skip
    path = memory(tmp_path / "m.tmx", units)
    expected = [("one", "eins", 4), ("two!", "zwei", 5), ("three", "", 6), ("", "vier", 7)]
    assert read(path) == expected
    assert texts(read(path, "en-GB")) == [("one", "eins"), ("two", "zwei"), ("three", ""), ("", "vier")]
    assert texts(read(path, "de", "en-US"))[0] == ("eins", "one")
    assert texts(read(path, "src", "tgt"))[0] == ("one", "eins")
    assert texts(read(path, "x", "y", src="en", tgt="fr"))[2] == ("three", "trois")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "utf-8"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = TMX.format(units=unit(("en", "year"), ("de", "Jähr")), srclang="en", encoding=declared)
    path = write(tmp_path / "m.dat", text, encoding)
    assert detect_format([str(path)]) == "tmx"
    assert texts(read(path)) == [("year", "Jähr")]
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert texts(read(path)) == [("year", "Jähr")]


@pytest.mark.parametrize(
    ("units", "srclang", "expected"),
    [
        (unit(("de-DE", "a"), ("en-US", "b")), "en-US", ("en", "de")),
        (unit(("de-DE", "a"), ("en-US", "b")), "*all*", ("de", "en")),
        (unit(("en", "a")) + unit(("en", "a"), ("fr", "b")), "en", ("en", "fr")),
        (unit(("pt-PT", "a"), ("pt-BR", "b")), "pt-PT", ("pt-PT", "pt-BR")),
        (unit(("en-US", "a"), ("en-GB", "b"), ("de", "c")), "en-US", ("en", "de")),
        (unit(("en", "a")), "en", None),
    ],
)
def test_a_memory_tells_its_languages(
    tmp_path: Path, units: str, srclang: str, expected: tuple[str, str] | None
) -> None:
    path = memory(tmp_path / "m.tmx", units, srclang)
    assert guess_languages(SourceConfig((str(path),))) == expected


XLIFF_12 = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-US" target-language="de-DE" original="a"><header><note>x</note></header><body>
<group id="g"><trans-unit id="1"><source>Open <g id="1">the <x id="2"/>file</g></source>
  <target state="translated">Öffne <g id="1">die Datei</g></target><note>n</note>
  <alt-trans><source>Old</source><target>Alt</target></alt-trans></trans-unit></group>
<trans-unit id="2"><source>New</source></trans-unit>
<trans-unit id="3"><source>Doubt</source>
  <target state="needs-review-translation">Zweifel</target></trans-unit>
<trans-unit id="4"><source>A. B.</source>
  <seg-source><mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2">B.</mrk></seg-source>
  <target><mrk mtype="seg" mid="1">Ä.</mrk> <mrk mtype="seg" mid="2">ß.</mrk></target>
  <sdl:seg-defs xmlns:sdl="urn:sdl"><sdl:seg id="1" conf="Translated">
  <sdl:value key="k">v</sdl:value></sdl:seg>
  <sdl:seg id="2" conf="Draft"/></sdl:seg-defs></trans-unit>
<trans-unit id="5" mq:status="NotStarted" xmlns:mq="urn:mq"><source>Not</source>
  <target>Nicht</target></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="u"><originalData><data id="d">code</data></originalData>
<segment id="s" state="final"><source>Hello <pc id="1">big <ph id="2"/>world</pc></source>
<target>Hallo <pc id="1">große Welt</pc></target></segment>
<ignorable><source> </source></ignorable>
<segment state="initial"><source>Later</source><target>Später</target></segment></unit></file></xliff>
"""


def test_xliff(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sdlxliff", XLIFF_12)
    expected = [
        ("Open the file", "Öffne die Datei"),
        ("New", ""),
        ("Doubt", ""),
        ("A.", "Ä."),
        ("B.", ""),
        ("Not", ""),
    ]
    assert texts(read(path)) == expected
    assert texts(read(path, "de", "en")) == [(tgt, src) for src, tgt in expected]
    assert texts(read(path, "src", "tgt")) == expected
    assert guess_languages(SourceConfig((str(path),))) == ("en", "de")
    prefixed = XLIFF_2.replace("</", "</x:").replace("<", "<x:").replace("<x:/x:", "</x:")
    again = write(tmp_path / "b.xlf", prefixed.replace("xmlns=", "xmlns:x="))
    assert texts(read(again))[0] == ("Hello big world", "Hallo große Welt")
    with pytest.raises(UserError, match=r"no segment is from 'en' to 'fr'; they are en-US → de-DE"):
        read(path, "en", "fr")
    path = write(tmp_path / "a.xlf", XLIFF_2)
    assert texts(read(path)) == [("Hello big world", "Hallo große Welt"), ("Later", "")]
    assert guess_languages(SourceConfig((str(path),))) == ("en", "de")


PO = r"""# Translator
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
msgctxt "menu"
msgid "Op\ten \"it\"\n"
msgstr ""
"Öff\tne "
"\"es\"\n"

#, fuzzy, c-format
#| msgid "old"
msgid "unsure"
msgstr "unsicher"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"
msgid "untranslated"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""
PAIRS_OF_PO = [
    ('Op\ten "it"\n', 'Öff\tne "es"\n', 8),
    ("unsure", "", 16),
    ("%d file", "%d Datei", 20),
    ("%d files", "%d Dateien", 20),
    ("untranslated", "", 24),
]


def test_po(tmp_path: Path) -> None:
    path = write(tmp_path / "a.po", PO)
    assert read(path) == PAIRS_OF_PO
    assert read(write(tmp_path / "b.po", PO.replace("\n", "\r\n"))) == PAIRS_OF_PO
    assert read(write(tmp_path / "nosuffix", PO)) == PAIRS_OF_PO
    assert guess_languages(SourceConfig((str(path),))) == ("en", "de")
    one_form = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Dosya"\n'
    assert read(write(tmp_path / "tr.po", one_form)) == [("%d files", "%d Dosya", 1)]


def mo_file(messages: dict[str, str], order: str = "<", charset: str = "utf-8") -> bytes:
    keys = sorted(messages)
    blobs = [text.encode(charset) for key in keys for text in (key, messages[key])]
    at = 28 + 16 * len(keys)
    places = []
    for blob in blobs:
        places.append((len(blob), at))
        at += len(blob) + 1
    tables = [number for part in (places[::2], places[1::2]) for place in part for number in place]
    head = [0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, 0]
    return struct.pack(f"{order}{7 + len(tables)}I", *head, *tables) + b"".join(
        blob + b"\0" for blob in blobs
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_mo(tmp_path: Path, order: str) -> None:
    messages = {"": "Language: de\nContent-Type: text/plain; charset=UTF-8\n", "menu\4Open": "Öffnen"}
    messages["%d file\0%d files"] = "%d Datei\0%d Dateien"
    path = tmp_path / "a.mo"
    path.write_bytes(mo_file(messages, order))
    expected = [("%d file", "%d Datei"), ("%d files", "%d Dateien"), ("Open", "Öffnen")]
    assert texts(read(path)) == expected
    assert guess_languages(SourceConfig((str(path),))) == ("en", "de")
    for cut in (3, 20, 40, len(path.read_bytes()) - 8):
        (tmp_path / "cut.mo").write_bytes(path.read_bytes()[:cut])
        with pytest.raises(UserError, match=r"cut\.mo"):
            read(tmp_path / "cut.mo")


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "cp1252", "koi8-r"])
def test_a_catalogue_is_read_in_the_encoding_that_its_header_names(tmp_path: Path, charset: str) -> None:
    word = "дом" if charset == "koi8-r" else "Bär"
    header = f"Last-Translator: {word}\nLanguage: de\nContent-Type: text/plain; charset={charset}\n"
    compiled = tmp_path / "a.mo"
    compiled.write_bytes(mo_file({"": header, "bear": word}, charset=charset))
    assert texts(read(compiled)) == [("bear", word)]
    lines = "".join(f'"{line}\\n"\n' for line in header.splitlines())
    text = write(tmp_path / "a.po", f'msgid ""\nmsgstr ""\n{lines}\nmsgid "bear"\nmsgstr "{word}"\n', charset)
    assert texts(read(text)) == [("bear", word)]
    assert guess_languages(SourceConfig((str(text),))) == ("en", "de")


def test_an_encoding_that_nobody_knows_is_utf8(tmp_path: Path) -> None:
    header = "Language: de\nContent-Type: text/plain; charset=CHARSET\n"
    path = tmp_path / "a.mo"
    path.write_bytes(mo_file({"": header, "bear": "Bär"}))
    assert texts(read(path)) == [("bear", "Bär")]


def test_text_that_is_not_in_the_encoding_of_its_header(tmp_path: Path) -> None:
    po = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ascii\\n"\n\nmsgid "bear"\nmsgstr "Bär"\n'
    with pytest.raises(UserError, match=r"a\.po: its header says ascii"):
        read(write(tmp_path / "a.po", po))


def test_mo_as_gettext_compiles_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.po", PO)
    try:
        subprocess.run(["msgfmt", "-o", str(tmp_path / "a.mo"), str(path)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("gettext is not installed")
    assert sorted(texts(read(tmp_path / "a.mo"))) == sorted((s, t) for s, t, _ in PAIRS_OF_PO if t)


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_opus_zip(tmp_path: Path) -> None:
    members = {"README": b"r", "LICENSE": b"l", "X.en-de.de": "Jähr\n".encode(), "X.en-de.en": b"year\n"}
    path = zipped(tmp_path / "en-de.txt.zip", members)
    assert read(path) == [("year", "Jähr", 1)]
    assert texts(read(path, "src", "tgt")) == [("year", "Jähr")]
    assert guess_languages(SourceConfig((str(path),))) == ("en", "de")
    with pytest.raises(UserError, match=r"no file for 'en' and one for 'fr' in the zip; .* de, en"):
        read(path, "en", "fr")
    with pytest.raises(UserError, match=r"X\.en has 2 lines but .*X\.de has 1"):
        read(zipped(tmp_path / "b.zip", {"X.en": b"a\nb\n", "X.de": b"a\n"}))
    with pytest.raises(UserError, match=r"no two files named after languages"):
        read(zipped(tmp_path / "c.zip", {"README": b""}))
    (tmp_path / "d.zip").write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"d\.zip: the zip is damaged"):
        read(tmp_path / "d.zip")


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.zip", {"X.en": (b"a" * 9999 + b"\n") * 8000, "X.de": b"b\n"})
    with pytest.raises(UserError, match="decompression bomb"):
        read(path)


BAD = [
    ("a.tmx", TMX.format(units=unit(("en", "a"), ("fr", "b")), srclang="en", encoding="utf-8"),
     r"a\.tmx: no unit has both 'en' and 'de'; the languages in it are en, fr"),
    ("a.tmx", TMX.format(units="<tu><tuv><seg>a</seg></tuv></tu>", srclang="en", encoding="utf-8"),
     r"a\.tmx:4: a tuv without xml:lang"),
    ("a.tmx", TMX.format(units="", srclang="en", encoding="utf-8"),
     r"a\.tmx: the file has no translation units"),
    ("a.tmx", TMX.format(units=unit(("en", "a")), srclang="en", encoding="utf-8")[:150],
     r"a\.tmx:4: .*cut off"),
    ("a.tmx", "<tmx>\n<body></tmx>", r"a\.tmx:2: not well-formed XML \(mismatched tag"),
    ("a.tmx", "<html/>", r"a\.tmx:1: expected <tmx> as the root, found <html>"),
    ("a.tmx", "", r"a\.tmx:1: the file is cut off"),
    ("a.tmx", "<tmx><body>\n<tu>\xff", r"a\.tmx:\d: "),
    ("a.tmx", '<?xml version="1.0" encoding="no-such"?><tmx/>', r"a\.tmx:1: "),
    ("a.xlf", "<xliff><file/></xliff>", r"a\.xlf: the file has no segments"),
    ("a.po", 'msgid "a"\n', r"a\.po:1: .* no msgstr"),
    ("a.po", 'msgid "a\nmsgstr "b"\n', r"a\.po:1: .* closing quote"),
    ("a.po", 'msgid "a" b"\nmsgstr ""\n', r"a\.po:1: .* a quote inside"),
    ("a.po", 'msgid "a"\nmsgid "b"\nmsgstr ""\n', r"a\.po:2: .* msgid comes twice"),
    ("a.po", '\nhello world\n', r"a\.po:2: .* found 'hello'"),
    ("a.po", '"x"\n', r"a\.po:1: .* belongs to no keyword"),
    ("a.po", '# only a comment\n', r"a\.po: the file has no entries"),
    ("a.po", 'msgid "\\q"\nmsgstr ""\n', r"a\.po:1: .* escape \\q is not known"),
    ("a.mo", "nothing of the kind", r"a\.mo: not an MO file"),
    ("a.zip", "PK\3\4 no", r"a\.zip: the zip is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_errors_name_file_and_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = write(tmp_path / name, content, "latin-1")
    with pytest.raises(UserError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)
