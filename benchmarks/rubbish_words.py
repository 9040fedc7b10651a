"""What `rubbish.py` makes its requests of."""

from typing import Any

POST = """/translate /detect /translate_file /suggest /v2/translate /v2/languages /v2/glossaries
/v3/glossaries /v2/document /v2/document/x /v2/document/x/result /api/v1/translate /api/v1/detect
/api/v1/documents /api/v1/explain"""
GET = """/ /translate /languages /frontend/settings /health /download_file/x /identifyLang /listPairs
/listLanguageNames /v2/languages /v3/languages /v2/usage /v2/glossary-language-pairs /v2/glossaries
/v2/glossaries/x /v2/glossaries/x/entries /v3/glossaries /v3/glossaries/x /v3/glossaries/x/entries
/tm/en/de/unit/a /tm/x/y/unit/ /tm/languages/ /api/v1/health /api/v1/ready /api/v1/languages /api/v1/memory
/metrics /openapi.json /favicon.ico"""
OTHER = "PATCH /v3/glossaries/x PUT /v3/glossaries/x/dictionaries DELETE /v2/glossaries/x"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW", "get", "PROPFIND")
_OTHER = OTHER.split()
ROUTES = [
    *(("POST", path) for path in POST.split()),
    *(("GET", path) for path in GET.split()),
    *zip(_OTHER[::2], _OTHER[1::2], strict=True),
]
RIGHT: dict[str, Any] = {"q": "Hello.", "text": ["Hello."], "source": "en", "target": "de"}
RIGHT |= {"langpair": "en|de", "source_lang": "EN", "target_lang": "DE", "name": "g", "entries": "a\tb"}
OWN: dict[str, Any] = {"texts": ["Hello."], "source": "en", "target": "de"}
EXPLAIN: dict[str, Any] = {"text": "Hello.", "source": "en", "target": "de"}
_NAMES = """
q text texts source target langpair source_lang target_lang name entries format alternatives details
memory glossary split tag_handling ignore_tags split_sentences splitting_tags outline_detection glossary_id
glossary_ids entries_format dictionaries formality type file min_similarity max_candidates resource model_type
document_key api_key auth_key key least most translation context style_id markUnknown __proto__
"""
NAMES = _NAMES.split()
_WORDS = """
en de EN DE EN-GB auto en|de de|en | html xml text tsv csv nonewlines 0 1 -1 1e999 NaN true null ../x
%s {0} </s> <b> <x/> &amp; ﬁ ß İ 日本語 שלום 👩‍👧 é \u202e \u2028 \ufeff \x00 \x1b \x7f \ufffd
"""
WORDS = _WORDS.split()
TEXTS = [
    "Hello <b>you</b>. See https://example.org/a?b=c {0} %(name)s!",
    "<p>a<b>",
    "<x>" * 30,
    "&#0; &bogus; ]]>",
    "a\tb\na\tc",
    "…" * 50,
    "a\r\nb\rc\n\n\nd",
    " ",
    "",
    "\n",
    "." * 400,
    "no end " * 80,
    "\u0301" * 60,
    "a" * 5001,
]
_KINDS = """
application/json application/x-www-form-urlencoded multipart/form-data text/plain application/xml
application/octet-stream application/json;charset=utf-16 text/html;charset=bogus multipart/mixed */* ; / x
"""
KINDS = _KINDS.split()
FILES = {
    "a.txt": b"Hello. How are you?\n\nFine.\n",
    "a.html": b"<html><body><p title='x'>Hello <b>you</b></p><script>x</script></body></html>",
    "a.md": b"# Title\n\n* one\n* `two`\n\n```\ncode\n```\n",
    "a.po": b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Hello %s"\nmsgstr ""\n',
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nHello.\n",
    "a.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n",
    "a.tsv": b"Hello.\tHallo.\nBye.\t\n",
    "a.jsonl": b'{"src": "Hello.", "tgt": ""}\n',
    "a.xliff": b'<xliff version="1.2"><file source-language="en" target-language="de" original="x" '
    b'datatype="plaintext"><body>'
    b'<trans-unit id="1"><source>Hello <g id="1">you</g></source></trans-unit></body>'
    b"</file></xliff>",
    "a.tmx": b'<tmx version="1.4"><header srclang="en"/><body>'
    b'<tu><tuv xml:lang="en"><seg>Hello</seg></tuv></tu>'
    b"</body></tmx>",
    "../../a.xliff": b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>',
    "a.exe": bytes(range(256)),
    "": b"",
}
