"""One JSON object per line: {"src", "tgt"}, {"translation": {"en", "de"}}, {"en", "de"}, or named fields."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages
from dragoman.data.formats.columns import find_sides
from dragoman.data.formats.headers import DOCUMENT_NAMES, language_in
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair, check_text
from dragoman.errors import UserError

FieldNames = tuple[str, ...]
"""The way to a value: ("translation", "en")."""
_AS_LINES = "write one object per line, such as with  jq -c '.[]'"


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
    sides = _sides(_first(path), *UNKNOWN)
    return None if sides is None else as_pair_of_languages(*(language_in(side[-1]) for side in sides))


def describe(source: SourceConfig, src_lang: str, tgt_lang: str) -> str:
    """The fields that are read, and all there are."""
    path = source.files[0]
    record = _first(path)
    src, tgt = _choose(record, source, src_lang, tgt_lang, path)
    names = src[-1], tgt[-1]
    nested = record.get(src[0]) if len(src) > 1 else None
    return f"{' → '.join(names)} of {', '.join(nested if isinstance(nested, dict) else record)}"


def _first(path: str) -> dict[str, Any]:
    line = next((line for line in read_lines(path) if line.strip()), "{}")
    return parse(line, f"{path}:1")


def parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        if line.lstrip().startswith("["):
            raise UserError(
                f"{where}: not valid JSON on one line, but the beginning of an array; {_AS_LINES}"
            ) from None
        raise UserError(f"{where}: not valid JSON ({error.msg} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: JSON that cannot be read ({error})") from None
    if not isinstance(record, dict):
        advice = f"; {_AS_LINES}" if isinstance(record, list) else ""
        raise UserError(f"{where}: expected a JSON object, found {type(record).__name__}{advice}")
    return record


def _choose(
    record: Mapping[str, Any], source: SourceConfig, src_lang: str, tgt_lang: str, where: str
) -> tuple[FieldNames, FieldNames]:
    if source.src is not None or source.tgt is not None:
        if source.src is None or source.tgt is None:
            raise UserError(f"{where}: name both fields, src and tgt, or neither")
        return _keys(record, source.src), _keys(record, source.tgt)
    sides = _sides(record, src_lang, tgt_lang)
    if sides is None:
        nested = record.get("translation")
        names = list(nested if isinstance(nested, dict) else record)
        languages = "" if (src_lang, tgt_lang) == UNKNOWN else f", {src_lang} and {tgt_lang}"
        raise UserError(
            f"{where}: expected the fields src and tgt{languages}, or source and target; found "
            f"{', '.join(map(repr, names)) or 'none'}; name two of them, with --columns or as src and tgt"
        )
    return sides


def _sides(record: Mapping[str, Any], src_lang: str, tgt_lang: str) -> tuple[FieldNames, FieldNames] | None:
    nested = record.get("translation")
    parent, holder = (("translation",), nested) if isinstance(nested, dict) else ((), record)
    names = list(holder)
    found = find_sides(names, src_lang, tgt_lang, [[str(value) for value in holder.values()]])
    return None if found is None else ((*parent, names[found[0]]), (*parent, names[found[1]]))


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
