"""Texts that scanners choke on: repeated, nested and unclosed pieces of everything that begins something."""

from collections.abc import Callable
from html import escape
from json import dumps

SPANS = """
< <a_ <a_b= <a_b=' <a_b=c </ <!-- { {{a_ {_, ${a $ $a % %( %0 %h &a &# a. a@ a@b a@b.c 1. 1- -1 1' http:// a://.
%(a www. www.( ) http://) 5px 1a.
"""
SENTENCES = ["\n", ". ", ".", "a. ", ".)", "aaaa", " ", "a b ", "A. b", "。", "</a>", ".</a", "a\u0301"]
MARKUP = """
<a_=" <b> </i> <b>a</b> <b>a a</b> <b><i> </b></i> <p>a <br>_ <pre> </pre> <!a <!a>a <? &amp; <p_translate=no>
<p_class='a <!--_-->a <g1> <ggg {k1} <x>a</x>
"""
MARKDOWN = """
[ ![ ` `` *a_ ** ***bold**_ **a* ~~a~~_ [a](b)_ [a]( [[a] ![a](b) [a](b(c) <a@b> \\* \\ >_ -_ |_a_ |- *_*
[^a] `a `a| ``a`
"""
LINES = ["# a\n", "> a\n", "- a\n", "|a|b|\n", "|-|-|\n", "```\n", "    a\n", "[a]: b\n", "a  \n", "---\n"]
AFTER = ["<", "<a", "# a", "|-", "[a](", "`", "{\\", "<a b='", "www.", "a@", "\\", "| a | b |\n|---|---|\n| "]
"""What a long run of one character is put behind."""
RUNS = ["a", " ", "-", "#", "=", "*", "g", "1"]


def _words(table: str) -> list[str]:
    """`_` stands for a space."""
    return [word.replace("_", " ") for word in table.split()]


PIECES = [*_words(SPANS), *SENTENCES, *_words(MARKUP), *_words(MARKDOWN), *LINES]
Frame = Callable[[str], str]


def _xliff(version: str) -> Frame:
    inner = {
        "1.2": '<body><trans-unit id="1"><source>{}</source></trans-unit></body>',
        "2.0": "<unit><segment><source>{}</source></segment></unit>",
        "units": "<body>{}</body>",
        "segments": "<body><trans-unit><source>a</source><seg-source>{}</seg-source></trans-unit></body>",
    }[version]
    number = "2.0" if version == "2.0" else "1.2"
    return lambda text: f'<xliff version="{number}"><file>{inner.format(text)}</file></xliff>'


def _tmx(text: str) -> str:
    unit = f'<tu><tuv xml:lang="en"><seg>{text}</seg></tuv></tu>'
    return f'<tmx version="1.4"><header srclang="en"/><body>{unit}</body></tmx>'


def _po(text: str) -> str:
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(char, escaped)
    return f'msgid "{text}"\nmsgstr ""\n'


FRAMES: dict[str, Frame] = {
    "a.txt": str,
    "a.md": str,
    "a.html": str,
    "a.tsv": str,
    "a.srt": lambda text: f"1\n00:00:01,000 --> 00:00:02,000\n{text}",
    "a.vtt": lambda text: f"WEBVTT\n\n00:01 --> 00:02\n{text}",
    "a.po": _po,
    "a.jsonl": lambda text: f'{{"src": {dumps(text)}}}',
    "a.xliff": lambda text: _xliff("1.2")(escape(text, quote=False)),
    "a.tmx": lambda text: _tmx(escape(text, quote=False)),
}
"""How a hostile text becomes the text of a document of each format."""

STRUCTURES: list[tuple[str, str, Frame]] = [
    *(
        ("a.xliff", piece, _xliff(version))
        for version in ("1.2", "2.0")
        for piece in (
            '<g id="1">a</g>', '<x id="1"/>', '<bpt id="1">b</bpt>', '<ept id="1">b</ept>', "<!-- a -->",
            "<![CDATA[a]]>", "&amp;", '<mrk mtype="seg" mid="1">a</mrk>', "<?a?>", '<g id="1">', "a<ph/> ",
        )
    ),
    *(
        ("a.xliff", piece, _xliff("units"))
        for piece in (
            '<trans-unit id="1"><source>a</source></trans-unit>',
            '<trans-unit id="1"><source>a</source><target/></trans-unit>',
            '<trans-unit a="b"/>', "<group>", "\n", "<note>a</note>",
        )
    ),
    ("a.xliff", '<mrk mtype="seg" mid="{}">a</mrk>', _xliff("segments")),
    ("a.tmx", '<tu><tuv lang="en"><seg>a</seg></tuv></tu>', lambda text: f"<tmx><body>{text}</body></tmx>"),
    ("a.tmx", "<hi>a</hi>", _tmx),
    ("a.tmx", '<bpt i="{}">a</bpt><ept i="{}">b</ept>', _tmx),
    *(
        ("a.po", piece, str)
        for piece in ('msgid "a"\nmsgstr ""\n\n', "#, fuzzy\n", "# a\n", '#~ msgid "a"\n', "\n")
    ),
    ("a.po", '"a"\n', lambda text: f'msgid ""\n{text}msgstr ""\n'),
    ("a.jsonl", '{"src": "a"}\n', str),
    ("a.jsonl", '{"src": "a", "tgt": ""}\n', str),
    ("a.jsonl", '"k{}": {"tgt": "", "src": "a"}, ', lambda text: f'{{{text}"src": "a"}}'),
    ("a.vtt", "00:01 --> 00:02\na b\n\n", lambda text: f"WEBVTT\n\n{text}"),
    ("a.html", "<x{} translate=no>", str),
    ("a.html", '<a ="<a" ', str),
    ("a.md", "[a{}]: b\n", str),
]  # fmt: skip
"""Pieces of the formats themselves. `{}` is the number of the piece."""


def repeated(piece: str, count: int) -> str:
    if "{}" not in piece:
        return piece * count
    return "".join(piece.replace("{}", str(number)) for number in range(count))
