"""CoNLL: one word per line with its tag, and an empty line between sentences. Columns are separated by tabs
or spaces. The word is the first column and the tag the last, unless `task.text` and `task.label` say
otherwise."""

from collections.abc import Iterator

from dragoman.data.formats.lines import read_lines
from dragoman.data.labelled.config import Column, TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.errors import UserError

_DOCUMENT = "-DOCSTART-"


def read_conll(path: str, task: TaskConfig, labelled: bool) -> Iterator[Example]:
    words: list[str] = []
    tags: list[str] = []
    begins = 1
    for number, line in enumerate((*read_lines(path), ""), start=1):
        if line.strip() and not line.startswith(_DOCUMENT):
            word, tag = _cells(line, task, labelled, f"{path}:{number}")
            begins = begins if words else number
            words.append(word)
            tags.append(tag)
        elif words:
            yield Example(tuple(words), tuple(tags) if labelled else None, f"{path}:{begins}")
            words, tags = [], []


def _cells(line: str, task: TaskConfig, labelled: bool, where: str) -> tuple[str, str]:
    cells = line.rstrip().split("\t") if "\t" in line.rstrip() else line.split()
    if labelled and len(cells) < 2:
        raise UserError(f"{where}: expected a word and its tag, found {line.strip()!r:.40} alone")
    word = _cell(cells, task.text, 1, "text", where)
    return word, _cell(cells, task.label, len(cells), "label", where) if labelled else ""


def _cell(cells: list[str], column: Column, otherwise: int, role: str, where: str) -> str:
    if isinstance(column, str):
        raise UserError(f"task.{role}: the columns of CoNLL have no names; give a number, found '{column}'")
    place = column or otherwise
    if place > len(cells) or not cells[place - 1].strip():
        raise UserError(f"{where}: there is nothing in column {place}; found {len(cells)} columns")
    return cells[place - 1].strip()
