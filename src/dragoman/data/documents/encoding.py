"""The bytes of a document as text, so that the text gives just those bytes again."""

import codecs
import re
from dataclasses import dataclass

from dragoman.errors import UserError

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_KNOWN = re.compile(r"utf-?8|us-ascii|ascii|iso-8859-\d{1,2}|windows-125\d|latin-?1|koi8-[ru]", re.IGNORECASE)


@dataclass(frozen=True)
class Encoding:
    codec: str
    mark: bytes
    is_xml: bool

    def encode(self, text: str) -> bytes:
        """In XML, a character that the encoding lacks becomes a reference."""
        return self.mark + text.encode(self.codec, "xmlcharrefreplace" if self.is_xml else "strict")


def decode(data: bytes, where: str, is_xml: bool) -> tuple[str, Encoding]:
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    codec = _MARKS.get(mark, "utf-8")
    declared = _DECLARED.match(data) if is_xml and not mark else None
    if declared is not None:
        codec = declared[1].decode("ascii")
        if not _KNOWN.fullmatch(codec):
            raise UserError(f"{where}:1: the encoding {codec} is not known here; save the file as UTF-8")
    encoding = Encoding(codec, mark, is_xml)
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, len(mark) + error.start) + 1
        found = f"0x{data[len(mark) + error.start]:02X} at byte {len(mark) + error.start}"
        raise UserError(f"{where}:{line}: not valid {codec.upper()} ({found}); save it as UTF-8") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(f"{where}:{line}: NUL in the text; is this a text file?")
    if encoding.encode(text) != data:
        raise UserError(f"{where}: {codec} that does not come out as it went in; save the file as UTF-8")
    return text, encoding
