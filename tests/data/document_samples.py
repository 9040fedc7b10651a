"""Documents of every format, each with what it becomes when it is shouted; and stand-ins for models."""

from collections.abc import Callable, Collection, Sequence

from dragoman.text.protect import carried, protect, restore
from dragoman.text.spans import DEFAULT_KINDS, SpanKind


def with_spans_restored(
    translate: Callable[[list[str]], Sequence[str]], kinds: Collection[SpanKind]
) -> Callable[[list[str]], list[str]]:
    """A stand-in for a translator: spans go where the order of words puts them."""

    def translated(texts: list[str]) -> list[str]:
        cut = [protect(text, kinds) for text in texts]
        found = list(translate([each.text for each in cut]))
        return [
            text if carried(each, text) else restore(text, each)[0]
            for each, text in zip(cut, found, strict=True)
        ]

    return translated


shout = with_spans_restored(lambda texts: [text.upper() for text in texts], DEFAULT_KINDS)
turn = with_spans_restored(lambda texts: [" ".join(text.split()[::-1]) for text in texts], DEFAULT_KINDS)

PO = r"""# c
msgid ""
msgstr "Language: de\n"

#, c-format
msgctxt "m"
msgid "open %s now"
msgstr ""

msgid "one\n"
"two %d\n"
msgstr ""

#: x.c
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#, fuzzy
msgid "doubt"
msgstr "Zweifel"

#~ msgid "old"
#~ msgstr ""
"""
PO_SHOUTED = r"""# c
msgid ""
msgstr "Language: de\n"

#, fuzzy, c-format
msgctxt "m"
msgid "open %s now"
msgstr "OPEN %s NOW"

#, fuzzy
msgid "one\n"
"two %d\n"
msgstr ""
"ONE\n"
"TWO %d\n"

#: x.c
#, fuzzy
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d FILE"
msgstr[1] "%d FILES"
msgstr[2] "%d FILES"

#, fuzzy
msgid "doubt"
msgstr "Zweifel"

#~ msgid "old"
#~ msgstr ""
"""
XLIFF = """<?xml version='1.0' encoding="UTF-8"?>
<!-- é --><xliff version="1.2"><file source-language="en" target-language="de"><body>
  <trans-unit id="1">
    <source>Click <g id="1">here &amp; there</g> <x id="2"/>é now</source>
  </trans-unit>
  <trans-unit id='2'><source>A <bpt id="1">&lt;b></bpt>bold<ept id="1">&lt;/b></ept> move</source
  ><target state='new' /></trans-unit>
  <trans-unit id="3"><source>done</source><target>fertig</target></trans-unit>
  <trans-unit id="4" translate="no"><source>no</source></trans-unit>
  <trans-unit id="5"><source>A one. B.</source><seg-source><g id="9"><mrk mtype="seg" mid="1">A one.</mrk>
<mrk mtype="seg" mid="2">B.</mrk></g></seg-source><sdl:seg-defs
 xmlns:sdl="u"><sdl:seg id="1"/></sdl:seg-defs></trans-unit>
  <trans-unit id="6"><source>C. D.</source><seg-source><mrk mtype="seg" mid="1">C.</mrk> <mrk mtype="seg"
 mid="2">Dd.</mrk></seg-source><target><mrk mtype="seg" mid="1">x</mrk> <mrk mtype="seg" mid="2"/></target
></trans-unit>
  <trans-unit id="7" mq:status="NotStarted" xmlns:mq="u">
<source><![CDATA[a < b]]> &#233;</source></trans-unit>
</body></file></xliff>
"""
REVIEW = '<target state="needs-review-translation">'
XLIFF_EDITS = [
    (
        "é now</source>\n",
        f'é now</source>\n    {REVIEW}CLICK <g id="1">HERE &amp; THERE</g> <x id="2"/>É NOW</target>\n',
    ),
    (
        "<target state='new' />",
        f'{REVIEW}A <bpt id="1">&lt;b></bpt>BOLD<ept id="1">&lt;/b></ept> MOVE</target>',
    ),
    (
        "</g></seg-source>",
        f'</g></seg-source>{REVIEW}<g id="9"><mrk mtype="seg" mid="1">A ONE.</mrk>\n'
        '<mrk mtype="seg" mid="2">B.</mrk></g></target>',
    ),
    ('<sdl:seg id="1"/>', '<sdl:seg id="1" conf="Draft"/>'),
    ('<target><mrk mtype="seg" mid="1">x', f'{REVIEW}<mrk mtype="seg" mid="1">x'),
    ('<mrk mtype="seg" mid="2"/>', '<mrk mtype="seg" mid="2">DD.</mrk>'),
    ('mq:status="NotStarted"', 'mq:status="Pretranslated"'),
    ("&#233;</source>", f"&#233;</source>\n{REVIEW}A &lt; B É</target>"),
]
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="u">
<segment id="s"><source>Hello <pc id="1">big <ph id="2"/>world</pc> x</source></segment>
<segment state="initial"><source>Two</source><target></target></segment>
<segment state="final"><source>Two</source><target>Zwei</target></segment></unit></file></xliff>
"""
REVIEW_2 = 'state="translated" subState="dragoman:needs-review"'
XLIFF_2_EDITS = [
    ('<segment id="s">', f'<segment id="s" {REVIEW_2}>'),
    ("</pc> x</source>", '</pc> x</source><target>HELLO <pc id="1">BIG <ph id="2"/>WORLD</pc> X</target>'),
    ('<segment state="initial">', f"<segment {REVIEW_2}>"),
    ("<target></target>", "<target>TWO</target>"),
]
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US"/><body>
<tu tuid="1">
  <tuv xml:lang="en-US"><seg>Hello <bpt i="1">&lt;b></bpt>w<ept i="1">x</ept> end</seg></tuv>
</tu>
<tu><tuv xml:lang="en-US"><seg>b</seg></tuv><tuv xml:lang="de-DE"><seg/></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>c</seg></tuv><tuv xml:lang="de-DE"><seg>d</seg></tuv></tu>
</body></tmx>
"""
TMX_EDITS = [
    (
        "end</seg></tuv>\n",
        'end</seg></tuv>\n  <tuv xml:lang="de-DE"><prop type="x-state">needs-review</prop><seg>HELLO '
        '<bpt i="1">&lt;b></bpt>W<ept i="1">x</ept> END</seg></tuv>\n',
    ),
    ("<seg/>", "<seg>B</seg>"),
]
HTML = """<!DOCTYPE html>
<html><head><title>A title</title><style>p > a {}</style><script>if (a<b) x("</p>")</script></head>
<body class="x">
<p>Hello <b>big</b>
   world &amp; <a href="x?a>b">a link</a>.</p>
<ul><li>One<li>Two <code>x &lt; y</code> three<br>four</ul>
<p translate="no">Keep me</p><p>See <span class="notranslate">Foo</span> is&nbsp;ok</p>
<!-- c --><pre>raw  text</pre> 1 < 2
<div><b>All bold.</b></div><p>123</p>
</body></html>
"""
HTML_EDITS = [
    ("A title", "A TITLE"),
    ("Hello <b>big</b>\n   world &amp; <a", "HELLO <b>BIG</b> WORLD &amp; <a"),
    ("a link", "A LINK"),
    ("<li>One<li>Two ", "<li>ONE<li>TWO "),
    (" three<br>four", " THREE<br>FOUR"),
    ("<p>See ", "<p>SEE "),
    ("is&nbsp;ok", "IS&nbsp;OK"),
    ("All bold.", "ALL BOLD."),
]
MARKDOWN = """---
title: x
---
# A *title* here #

Para with **bold text** and `code`
second [a link](http://x.y "t") snake_case.
Hard break\\
next one

- item one
  goes on
- [ ] task
1. numbered \\* star

> quote me
> more

```py
code = 1
```

    indented code

| Name | Value |
|------|:-----:|
| cell a | 3 |

<div>
html stays
</div>

[ref]: http://x
Setext
======
![img](a.png) See [ref] and <b>inline</b> 2 * 3.
"""
MARKDOWN_EDITS = [
    ("A *title* here", "A *TITLE* HERE"),
    (
        "Para with **bold text** and `code`\nsecond [a link]",
        "PARA WITH **BOLD TEXT** AND `code` SECOND [A LINK]",
    ),
    ("snake_case.\nHard break", "SNAKE_CASE. HARD BREAK"),
    ("next one", "NEXT ONE"),
    ("item one\n  goes on", "ITEM ONE GOES ON"),
    ("task", "TASK"),
    ("numbered \\* star", "NUMBERED \\* STAR"),
    ("quote me\n> more", "QUOTE ME MORE"),
    ("Name | Value", "NAME | VALUE"),
    ("cell a", "CELL A"),
    ("Setext", "SETEXT"),
    ("See [ref] and <b>inline</b> 2 * 3.", "SEE [REF][ref] AND <b>INLINE</b> 2 \\* 3."),
]
SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,000\r\nHello <i>big\r\nworld</i>, how are you?\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}- Yes.\r\n\r\n"
    "3\r\n00:00:05,000 --> 00:00:06,000\r\n- Yes.\r\n- No."
)
SRT_EDITS = [
    ("Hello <i>big\r\nworld</i>, how are you?", "HELLO <i>BIG WORLD</i>,\r\nHOW ARE YOU?"),
    ("- Yes.", "- YES."),
    ("- No.", "- NO."),
]
VTT = (
    "WEBVTT\n\nSTYLE\n::cue {}\n\nNOTE a note\n\nid1\n00:01.000 --> 00:02.000 align:start\n"
    "<v Bob>Fish &amp; chips\n\n00:03.000 --> 00:04.000\nA <c.x>b</c> <00:03.500>c\n"
)
VTT_EDITS = [
    ("Fish &amp; chips", "FISH &amp; CHIPS"),
    ("A <c.x>b</c> <00:03.500>c", "A <c.x>B</c> <00:03.500>C"),
]
PLAIN = "  Hello there. How are you?\n\nSee http://x.org/a now.\r\nlast\u2028line"
PLAIN_EDITS = [
    ("Hello there. How are you?", "HELLO THERE. HOW ARE YOU?"),
    ("See http://x.org/a now.", "SEE http://x.org/a NOW."),
    ("last\u2028line", "LAST\u2028LINE"),
]
JSONL = (
    '{"id": 1, "src": "hi \\"x\\"", "tgt": ""}\n\n{"src":"no", "n": {"tgt": ""}}\n'
    '{"translation": {"en": "a b"}}\n'
)
JSONL_EDITS = [
    ('"tgt": ""}\n\n', '"tgt": "HI \\"X\\""}\n\n'),
    ('"src":"no"', '"src":"no", "tgt": "NO"'),
    ('"en": "a b"', '"en": "a b", "de": "A B"'),
]


def edited(text: str, edits: list[tuple[str, str]]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


SAMPLES = {
    "a.po": (PO, PO_SHOUTED),
    "crlf.po": (PO.replace("\n", "\r\n"), PO_SHOUTED.replace("\n", "\r\n")),
    "a.xliff": (XLIFF, edited(XLIFF, XLIFF_EDITS)),
    "two.xlf": (XLIFF_2, edited(XLIFF_2, XLIFF_2_EDITS)),
    "a.tmx": (TMX, edited(TMX, TMX_EDITS)),
    "a.html": (HTML, edited(HTML, HTML_EDITS)),
    "a.md": (MARKDOWN, edited(MARKDOWN, MARKDOWN_EDITS)),
    "a.srt": (SRT, edited(SRT, SRT_EDITS)),
    "a.vtt": (VTT, edited(VTT, VTT_EDITS)),
    "a.txt": (PLAIN, edited(PLAIN, PLAIN_EDITS)),
    "a.tsv": ("src\ttgt\nhello\t\nyes\tja\n", "src\ttgt\nhello\tHELLO\nyes\tja\n"),
    "b.tsv": ("hello\t\r\nyes", "hello\tHELLO\r\nyes\tYES"),
    "a.jsonl": (JSONL, edited(JSONL, JSONL_EDITS)),
}
