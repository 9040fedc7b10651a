"""Dialogues, one per line: turns separated by `__eou__`, or a JSON object with the list `turns`. A turn is a
text, or an object with `text` and optionally `speaker`. Every turn but the first is a reply to the preceding
ones:

    Hi . __eou__ Hello , how are you ? __eou__ Fine .

    Hi .                             →  Hello , how are you ?
    Hi . ‖ Hello , how are you ?     →  Fine .
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.data.config import SourceConfig
from dragoman.data.formats.jsonl import parse
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair, check_text
from dragoman.errors import UserError

END = "__eou__"
_FIELD = "turns"
_BETWEEN = " ‖ "


def is_dialogue(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return END in line
    try:
        return isinstance(parse(line, "").get(_FIELD), list)
    except UserError:  # the reader of JSON lines reports the error
        return False


def context(turns: Sequence[str], most: int) -> str:
    """The source of a reply: the last turns, in the form that a model reads."""
    return _BETWEEN.join(turns[-most:])


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:  # noqa: ARG001
    path = source.files[0]
    for number, line in enumerate(read_lines(path), start=1):
        turns = _turns(line, f"{path}:{number}")
        if len(turns) < 2:
            yield Pair("", "", number)  # counted as empty
        for place in range(1, len(turns)):
            yield Pair(context(turns[:place], source.turns), turns[place], number)


def _turns(line: str, where: str) -> list[str]:
    if not line.lstrip().startswith("{"):
        turns = [turn.strip() for turn in line.split(END)]
    else:
        found = parse(line, where).get(_FIELD)
        if not isinstance(found, list):
            raise UserError(f"{where}: expected a list of turns in the field '{_FIELD}'")
        turns = [_turn(turn, where) for turn in found]
    return [turn for turn in turns if turn]


def _turn(turn: Any, where: str) -> str:
    if not isinstance(turn, dict):
        return check_text(turn, where, _FIELD).strip()
    text, speaker = check_text(turn.get("text"), where, "text").strip(), turn.get("speaker")
    return f"{check_text(speaker, where, 'speaker').strip()}: {text}" if speaker and text else text
