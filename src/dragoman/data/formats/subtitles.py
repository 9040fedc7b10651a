"""Two files of subtitles, SRT or WebVTT, of the same film: cues that begin at the same time are pairs."""

import html
import re
from collections.abc import Iterator

from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.errors import UserError

SUFFIXES = (".srt", ".vtt")
Cue = tuple[int, int, str]
"""When it begins, in milliseconds, its line, and its text."""
_TIMES = re.compile(r"\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,6})\s*-->.*")
_CODE = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")


def read(src_path: str, tgt_path: str) -> Iterator[Pair]:
    """A cue without a counterpart is a pair with an empty side, so that it is counted and not lost."""
    src_cues, tgt_cues = _cues(src_path), _cues(tgt_path)
    src, tgt = next(src_cues, None), next(tgt_cues, None)
    together = False
    while src is not None or tgt is not None:
        has_src = src is not None and (tgt is None or src[0] <= tgt[0])
        has_tgt = tgt is not None and (src is None or tgt[0] <= src[0])
        together = together or (has_src and has_tgt)
        line = src[1] if has_src and src is not None else tgt[1] if tgt is not None else 0
        yield Pair(src[2] if has_src and src else "", tgt[2] if has_tgt and tgt else "", line)
        src = next(src_cues, None) if has_src else src
        tgt = next(tgt_cues, None) if has_tgt else tgt
    if not together:
        raise UserError(f"{src_path}: no subtitle begins at the same time as one of {tgt_path}")


def _cues(path: str) -> Iterator[Cue]:
    cue: tuple[int, int] | None = None
    spoken: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        times = _TIMES.fullmatch(line)
        if cue is not None and (times or not line.strip()):
            yield *cue, _text(spoken)
            cue = None
        if times:
            hours, minutes, seconds, rest = times.groups()
            begin = 3600 * int(hours or 0) + 60 * int(minutes) + int(seconds)
            cue, spoken = (1000 * begin + int(rest[:3].ljust(3, "0")), number), []
        elif cue is not None:
            spoken.append(line)
    if cue is not None:
        yield *cue, _text(spoken)


def _text(lines: list[str]) -> str:
    return html.unescape(_CODE.sub("", " ".join(line.strip() for line in lines))).strip()
