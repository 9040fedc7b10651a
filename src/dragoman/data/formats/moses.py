"""A zip with two plain files inside, as OPUS publishes its corpora (`Tatoeba.de-en.de`, `Tatoeba.de-en.en`).

It is read as it is: nothing is unpacked to a disk, and what unpacks to far more than text does is refused.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN, as_pair_of_languages, best_match, name_languages
from dragoman.data.formats.language_codes import is_language
from dragoman.data.formats.lines import ExpansionGuard, decoded_lines, open_binary
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.plain import pair_lines
from dragoman.errors import UserError

_MOST_MEMBERS = 1000
_CHUNK = 1 << 20


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    path = source.files[0]
    with _archive(path) as archive:
        members = _sides(archive, path)
        wanted = (source.src or src_lang, source.tgt or tgt_lang)
        if wanted == UNKNOWN:
            wanted = _first_two(members)
        src = best_match(wanted[0], members)
        tgt = best_match(wanted[1], [language for language in members if language != src])
        if src is None or tgt is None:
            raise UserError(
                f"{path}: no file for '{wanted[0]}' and one for '{wanted[1]}' in the zip;"
                f" the languages in it are {name_languages(list(members))}"
            )
        names = (f"{path}/{members[src].filename}", f"{path}/{members[tgt].filename}")
        src_lines = decoded_lines(_chunks(archive, members[src], path), names[0])
        tgt_lines = decoded_lines(_chunks(archive, members[tgt], path), names[1])
        yield from pair_lines(src_lines, tgt_lines, *names)


def languages_of(path: str) -> tuple[str, str] | None:
    with _archive(path) as archive:
        members = _sides(archive, path)
    return as_pair_of_languages(*_first_two(members)) if len(members) >= 2 else None


def _first_two(members: dict[str, zipfile.ZipInfo]) -> tuple[str, str]:
    """The files in the order of the corpus name, `en-de` in `X.en-de.en`, or else of the zip."""
    languages = list(members)
    for info in members.values():
        for part in PurePosixPath(info.filename).name.split("."):
            first, _, second = part.partition("-")
            if {first, second} <= set(languages) and first != second:
                return first, second
    return languages[0], languages[1] if len(languages) > 1 else ""


def _sides(archive: zipfile.ZipFile, path: str) -> dict[str, zipfile.ZipInfo]:
    """The members that are named after a language."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        language = PurePosixPath(info.filename).suffix.removeprefix(".")
        if not is_language(language) or info.is_dir():
            continue
        if language in found:
            raise UserError(
                f"{path}: two files for '{language}' in the zip, {found[language].filename} and"
                f" {info.filename}; unpack it and name the files"
            )
        found[language] = info
    if not found:
        names = ", ".join(info.filename for info in archive.infolist()[:5]) or "nothing"
        raise UserError(f"{path}: no two files named after languages (a.en, a.de) in the zip; it has {names}")
    return found


@contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with open_binary(path) as file, zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) > _MOST_MEMBERS:
                raise UserError(f"{path}: over {_MOST_MEMBERS} files in the zip; unpack it and name the two")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise UserError(
            f"{path}: the zip is damaged or of an unknown kind ({error}); fetch it again"
        ) from None
    except RuntimeError:
        raise UserError(f"{path}: the zip is encrypted; unpack it and name the files") from None


def _chunks(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> Iterator[bytes]:
    guard = ExpansionGuard(f"{path}/{info.filename}")
    with archive.open(info) as file:
        while chunk := file.read(_CHUNK):
            guard.check(len(chunk), info.compress_size)
            yield chunk
