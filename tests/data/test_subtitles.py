"""Subtitles of two languages as pairs."""

from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.formats import Pair, group_files, guess_languages, read_pairs, sources_by_direction
from dragoman.data.formats.subtitles import read
from dragoman.errors import UserError

ENGLISH = """\ufeff1
00:00:01,000 --> 00:00:02,500
<i>Where is it?</i>

2
00:00:03,000 --> 00:00:04,000
{\\an8}I do
not know.

3
01:00:05,000 --> 01:00:06,000
Only here.
"""
GERMAN = """WEBVTT

NOTE made by hand

first
00:01.000 --> 00:02.400 line:80%
Wo ist es?
00:00:03.000 --> 00:00:04.000
Ich weiß es nicht &amp; gehe.

00:00:09.000 --> 00:00:10.000
Nur dort.
"""


def written(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text, "utf-8")
    return [str(folder / name.replace("_", ".")) for name in texts]


def test_cues_that_begin_together_are_pairs(tmp_path: Path) -> None:
    files = written(tmp_path, a_en_srt=ENGLISH, a_de_vtt=GERMAN)
    (source,) = group_files(files)
    assert source.format == "subtitles" and guess_languages(source) == ("en", "de")
    assert list(read_pairs(source, "en", "de")) == [
        Pair("Where is it?", "Wo ist es?", 2),
        Pair("I do not know.", "Ich weiß es nicht & gehe.", 6),
        Pair("", "Nur dort.", 11),
        Pair("Only here.", "", 11),
    ]


def test_all_directions_of_a_film(tmp_path: Path) -> None:
    files = written(tmp_path, a_en_srt=ENGLISH, a_de_srt=ENGLISH, a_fr_srt=ENGLISH)
    found = sources_by_direction(files)
    assert len(found) == 6 and {source.format for source in found} == {"subtitles"}


def test_what_is_no_pair_of_subtitles(tmp_path: Path) -> None:
    english, other, text = written(tmp_path, a_srt=ENGLISH, b_srt=ENGLISH.replace(":0", ":1"), c_txt="a\n")
    for files in ([english], [english, text]):
        with pytest.raises(UserError, match=r"a\.srt: subtitles are read in pairs"):
            list(read_pairs(SourceConfig(tuple(files)), "en", "de"))
    with pytest.raises(UserError, match=r"a\.srt: no subtitle begins at the same time as one of .*b\.srt"):
        list(read(english, other))
