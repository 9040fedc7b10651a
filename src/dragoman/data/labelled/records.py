"""Labelled examples from tables (TSV, CSV) and JSON lines: which column has which role, and its value.

A column is found by `task.text`, `task.second` and `task.label`, or else by a common name. Without a header
the order of the columns is text, second text, label.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.data.formats import csv, jsonl, tsv
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.table import TableRow
from dragoman.data.labelled.config import SCORED, Column, TaskConfig
from dragoman.data.labelled.example import AnswerSpan, Example, Target
from dragoman.errors import UserError

Record = Mapping[str, Any]

_FIRST = ("text", "sentence", "sentence1", "sentence_a", "text1", "text_a", "premise", "#1 string", "review")
_SECOND = ("second", "sentence2", "sentence_b", "text2", "text_b", "hypothesis", "#2 string")
_LABEL = ("label", "class", "category", "gold_label", "entailment_judgment", "quality", "sentiment")
_SCORE = ("score", "relatedness_score", "similarity", "similarity_score", "gold_score", "rating", "label")
_IMAGE = ("image", "path", "file", "file_name", "filename")
_ENDINGS = ("ending", "choice", "option", "alternative", "sol")
_BEGINNING = ("prompt", "context", "question", "premise", "goal", "sent1", *_FIRST)
_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "classify": {"text": _FIRST, "label": _LABEL},
    "pair": {"text": _FIRST, "second": _SECOND, "label": _LABEL},
    "similarity": {"text": _FIRST, "second": _SECOND, "label": _SCORE},
    "regress": {"text": _FIRST, "label": _SCORE},
    "choice": {"text": _BEGINNING, "label": _LABEL},
    "span": {"text": ("question",), "second": ("context", "passage"), "label": ("answers", "answer")},
    "image": {"text": _IMAGE, "label": _LABEL},
    "caption": {"text": _IMAGE, "label": ("caption", "text", "label")},
    "tag": {"text": ("words", "tokens"), "label": ("tags", "labels", "ner_tags", "pos_tags")},
}


def read_table(path: str, format: str, task: TaskConfig, labelled: bool) -> Iterator[Example]:
    rows = tsv.rows(path) if format == "tsv" else csv.rows(path)
    yield from examples_of(_records(rows, path, task, labelled), path, task, labelled)


def read_json_lines(path: str, task: TaskConfig, labelled: bool) -> Iterator[Example]:
    def records() -> Iterator[tuple[int, Record]]:
        for number, line in enumerate(read_lines(path), start=1):
            _refuse_empty(line.strip(), f"{path}:{number}")
            yield number, jsonl.parse(line, f"{path}:{number}")

    yield from examples_of(records(), path, task, labelled)


def examples_of(
    records: Iterable[tuple[int, Record]], path: str, task: TaskConfig, labelled: bool
) -> Iterator[Example]:
    """The first record decides which field has which role; all other records must have the same fields."""
    fields: dict[str, str] | None = None
    for number, record in records:
        where = f"{path}:{number}"
        if fields is None:
            fields = _fields(list(record), task, labelled, where)
        yield Example(_texts(record, fields, task, where), _target(record, fields, task, where), where)


def _records(
    rows: Iterable[TableRow], path: str, task: TaskConfig, labelled: bool
) -> Iterator[tuple[int, dict[str, str]]]:
    names: list[str] = []
    for line, cells in rows:
        where = f"{path}:{line}"
        _refuse_empty(cells, where)
        if not names:
            header = _is_header(cells, task, labelled)
            names = [cell.strip() for cell in cells] if header else _numbers(cells, task, labelled, where)
            if header:
                continue
        if len(cells) != len(names):
            raise UserError(
                f"{where}: expected {len(names)} columns as in the first line, found {len(cells)}"
            )
        yield line, dict(zip(names, cells, strict=True))


def _is_header(cells: Sequence[str], task: TaskConfig, labelled: bool) -> bool:
    """Whether the first line is a header. It must be one if the configuration names a column, and is none if
    the configuration gives column numbers."""
    given = [column for column in (task.text, task.second, task.label) if column is not None]
    if given:
        return any(isinstance(column, str) for column in given)
    needed = [role for role in _NAMES[task.kind] if labelled or role != "label"]
    return all(_known(cells, _NAMES[task.kind][role]) is not None for role in needed)


def _numbers(cells: Sequence[str], task: TaskConfig, labelled: bool, where: str) -> list[str]:
    """Column names for a table without a header: the column numbers."""
    numbers = [str(number) for number in range(1, len(cells) + 1)]
    if any(column is not None for column in (task.text, task.second, task.label)):
        return numbers
    roles = list(_NAMES[task.kind])
    if len(cells) == len(roles) or (not labelled and len(cells) == len(roles) - 1):
        return numbers
    needed = ", ".join(f"task.{role}=NUMBER" for role in roles)
    raise UserError(
        f"{where}: expected a header, or the {len(roles)} columns {', '.join(roles)}; found {len(cells)} "
        f"columns without known names: say which is which with  {needed}"
    )


def _fields(names: Sequence[str], task: TaskConfig, labelled: bool, where: str) -> dict[str, str]:
    """The field of every role. Only the label may be missing, and only if it is not required."""
    given: dict[str, Column] = {"text": task.text, "second": task.second, "label": task.label}
    found: dict[str, str] = {}
    by_number = list(names) == [str(number) for number in range(1, len(names) + 1)]
    for place, (role, known) in enumerate(_NAMES[task.kind].items()):
        column = given[role]
        if column is not None:
            name = str(column) if isinstance(column, str) or by_number else _at(names, column)
        elif by_number:
            name = str(place + 1)
        else:
            name = _known(names, known)
        if name is not None and name in names:
            found[role] = name
        elif role != "label" or labelled:
            wanted = f"'{column}'" if column is not None else "of a known name"
            raise UserError(
                f"{where}: there is no column {wanted} for the {role}; there are "
                f"{', '.join(map(repr, names))}: name it with  task.{role}=COLUMN"
            )
    return found


def _at(names: Sequence[str], number: int) -> str | None:
    return names[number - 1] if number <= len(names) else None


def _known(names: Sequence[str], known: Sequence[str]) -> str | None:
    folded = {name.strip().casefold().replace("-", "_"): name.strip() for name in reversed(names)}
    return next((folded[name] for name in known if name in folded), None)


def _texts(record: Record, fields: Mapping[str, str], task: TaskConfig, where: str) -> tuple[str, ...]:
    first = record.get(fields["text"])
    if task.kind == "tag":
        if not isinstance(first, list) or not first:
            raise UserError(f"{where}: '{fields['text']}': expected a list of words, found {first!r:.40}")
        return tuple(_text(word, fields["text"], where) for word in first)
    texts = [_text(first, fields["text"], where)]
    if task.kind == "choice":
        return (*texts, *_choices(record, where))
    if "second" in fields:
        texts.append(_text(record.get(fields["second"]), fields["second"], where))
    return tuple(texts)


def _text(value: object, field: str, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where}: '{field}': expected text, found {value!r:.40}")
    if not value.strip():
        raise UserError(f"{where}: '{field}': there is no text; fill it in, or remove the line")
    return value


def _choices(record: Record, where: str) -> list[str]:
    """The choices: a list under `choices`, `endings` or `options`, or columns such as `choice1` and
    `ending0`."""
    for name in (f"{stem}s" for stem in _ENDINGS):
        if isinstance(record.get(name), list):
            found = [_text(value, name, where) for value in record[name]]
            break
    else:
        found = [
            _text(value, name, where)
            for name, value in record.items()
            if name.casefold().rstrip("0123456789").rstrip("_") in _ENDINGS and name[-1].isdigit()
        ]
    if len(found) < 2:
        raise UserError(
            f"{where}: there is nothing to choose from; expected columns such as choice1 and choice2, or a "
            "list under choices"
        )
    return found


def _target(record: Record, fields: Mapping[str, str], task: TaskConfig, where: str) -> Target | None:
    if "label" not in fields:
        return None
    field = fields["label"]
    value = record.get(field)
    if task.kind == "tag":
        words = record[fields["text"]]
        if not isinstance(value, list) or len(value) != len(words):
            raise UserError(f"{where}: '{field}': expected a list of {len(words)} labels, one a word")
        return tuple(str(label) for label in value)
    if task.kind == "span":
        return check_answers(_answers(value, record, field, where), str(record[fields["second"]]), where)
    if value is None or isinstance(value, list | dict) or not str(value).strip():
        raise UserError(f"{where}: '{field}': there is no label; fill it in, or remove the line")
    said = str(value).strip()
    if task.kind in SCORED:
        return _score(said, field, where)
    return _choice(said, field, where) if task.kind == "choice" else said


def _score(said: str, field: str, where: str) -> float:
    try:
        score = float(said)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(f"{where}: '{field}': expected a number, found '{said}'")
    return score


def _choice(said: str, field: str, where: str) -> int:
    """The index of a choice, from a number counted from 0 or a letter from A."""
    if said.isascii() and said.isdigit():
        return int(said)
    if len(said) == 1 and "A" <= said.upper() <= "Z":
        return ord(said.upper()) - ord("A")
    raise UserError(
        f"{where}: '{field}': expected the number of the right choice, counted from 0, or its letter, found "
        f"'{said}'"
    )


def _answers(value: object, record: Record, field: str, where: str) -> list[AnswerSpan]:
    """{"text": [...], "answer_start": [...]}, a list of {"text", "answer_start"}, or a text beside a field
    `start`."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        texts, starts = value["text"], value.get("answer_start") or []
        if not isinstance(starts, list) or len(starts) != len(texts):
            raise UserError(
                f"{where}: '{field}': expected as many entries in answer_start as in text, found "
                f"{starts!r:.40} for {len(texts)}"
            )
        value = [{"text": t, "answer_start": s} for t, s in zip(texts, starts, strict=True)]
    if isinstance(value, str):
        value = [{"text": value, "answer_start": record.get("start", record.get("answer_start"))}]
    if not isinstance(value, list):
        raise UserError(
            f"{where}: '{field}': expected answers with text and answer_start, found {value!r:.40}"
        )
    found = []
    for answer in value:
        text = answer.get("text") if isinstance(answer, dict) else None
        start = answer.get("answer_start") if isinstance(answer, dict) else None
        if not isinstance(text, str) or not isinstance(start, int):
            raise UserError(
                f"{where}: '{field}': an answer needs text and answer_start, found {answer!r:.60}"
            )
        found.append(AnswerSpan(start, text))
    return found


def check_answers(answers: Sequence[AnswerSpan], context: str, where: str) -> tuple[AnswerSpan, ...]:
    for answer in answers:
        there = context[max(0, answer.start) : answer.end]
        if not answer.text.strip() or there != answer.text:
            raise UserError(
                f"{where}: the answer {answer.text!r:.60} is not at character {answer.start} of its context, "
                f"where {there!r:.60} stands"
            )
    return tuple(answers)


def _refuse_empty(content: object, where: str) -> None:
    if not content:
        raise UserError(f"{where}: this line is empty; remove it")
