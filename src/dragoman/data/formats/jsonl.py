"""One JSON object per line: {"src", "tgt"}, {"translation": {"en", "de"}}, {"en", "de"}, or named fields."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import as_pair_of_languages
from dragoman.data.formats.columns import DOCUMENT_NAMES, find_sides, language_columns
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair, check_text
from dragoman.errors import UserError

FieldNames = tuple[str, ...]
"""The way to a value: ("translation", "en")."""


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    """Pairs of the file; which fields are the sides is settled by the first object, then demanded of all."""
    path = source.files[0]
    fields: tuple[FieldNames, FieldNames] | None = None
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            yield Pair("", "", number)
            continue
        where = f"{path}:{number}"
        record = parse(line, where)
        if fields is None:
            fields = _choose(record, source, src_lang, tgt_lang, where)
        src, tgt = fields
        own = _document(record, source.document, where)
        yield Pair(_value(record, src, where), _value(record, tgt, where), number, document=own)


def languages_of(path: str) -> tuple[str, str] | None:
    """The languages that the fields of the first object are named after."""
    line = next((line for line in read_lines(path) if line.strip()), "{}")
    record = parse(line, path)
    nested = record.get("translation")
    codes = list(language_columns(list(nested if isinstance(nested, dict) else record)).values())
    return as_pair_of_languages(*codes[:2]) if codes else None


def parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not valid JSON ({error.msg} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: JSON that cannot be read ({error})") from None
    if not isinstance(record, dict):
        raise UserError(f"{where}: expected a JSON object, found {type(record).__name__}")
    return record


def _choose(
    record: Mapping[str, Any], source: SourceConfig, src_lang: str, tgt_lang: str, where: str
) -> tuple[FieldNames, FieldNames]:
    if source.src is not None or source.tgt is not None:
        if source.src is None or source.tgt is None:
            raise UserError(f"{where}: name both fields, src and tgt, or neither")
        return _keys(record, source.src), _keys(record, source.tgt)
    nested = record.get("translation")
    parent, names = (("translation",), list(nested)) if isinstance(nested, dict) else ((), list(record))
    found = find_sides(names, src_lang, tgt_lang)
    if found is None:
        languages = "" if (src_lang, tgt_lang) == ("src", "tgt") else f", {src_lang} and {tgt_lang}"
        raise UserError(
            f"{where}: expected the fields src and tgt{languages}, or source and target; found "
            f"{', '.join(map(repr, names)) or 'none'}; name two of them, with --columns or as src and tgt"
        )
    src, tgt = found
    return (*parent, names[src]), (*parent, names[tgt])


def _document(record: Mapping[str, Any], wanted: str | None, where: str) -> str:
    """The name of the document: text or a number."""
    if wanted is None:
        found = next((record[name] for name in DOCUMENT_NAMES if name in record), "")
        return str(found) if isinstance(found, str | int) else ""
    if not isinstance(record.get(wanted), str | int):
        raise UserError(f"{where}: there is no field '{wanted}' with the name of a document")
    return str(record[wanted])


def _keys(record: Mapping[str, Any], name: str) -> FieldNames:
    """The keys of a field name: the name itself if it exists, else a dotted path (translation.en)."""
    return (name,) if name in record else tuple(name.split("."))


def _value(record: Mapping[str, Any], keys: FieldNames, where: str) -> str:
    value: object = record
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise UserError(f"{where}: there is no field '{'.'.join(keys)}'")
        value = value[key]
    return check_text(value, where, ".".join(keys))
