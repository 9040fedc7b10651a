"""Translation memories from files and runs, for the language pairs that are served."""

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dragoman.config import load_yaml
from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.data.formats.bitext import UNKNOWN
from dragoman.data.languages import languages_of
from dragoman.data.memory import (
    LEAST_SIMILAR,
    FuzzyMatch,
    TextPair,
    TranslationMemory,
    same_spaces,
    similarity,
)
from dragoman.data.prepared import Prepared
from dragoman.errors import UserError
from dragoman.serve.languages import resolve

__all__ = [
    "LEAST_SIMILAR",
    "FuzzyMatch",
    "TextPair",
    "TranslationMemory",
    "open_memories",
    "same_spaces",
    "similarity",
]

_log = logging.getLogger("dragoman")


def open_memories(
    paths: Iterable[Path],
    served: Iterable[TextPair],
    warn: Callable[[str], None] = _log.warning,
) -> dict[TextPair, TranslationMemory]:
    """Open files of pairs, and run directories, which stand for their training data. Each must belong to a
    served language pair.

    A broken row of a table is skipped and reported with `warn`. In any other file, only the pairs before a
    bad line are used, since the sides may be misaligned after it.
    """
    pairs = list(served)
    gathered: dict[TextPair, list[TextPair]] = {}
    for path in paths:
        skipped: list[str] = []
        pair, found = _read(path, pairs, skipped)
        own = gathered.setdefault(pair, [])
        before = len(own)
        try:
            own.extend(found)
        except UserError as error:
            if path.is_dir():  # damaged data of a run
                raise
            warn(f"--memory {error}; the {len(own) - before:,} pairs before that are used, the rest is not")
        if skipped:
            lines = "1 line was" if len(skipped) == 1 else f"{len(skipped):,} lines were"
            warn(f"--memory {path}: {lines} left out; the first: {skipped[0]}")
    return {pair: TranslationMemory(found) for pair, found in gathered.items()}


def _read(path: Path, served: list[TextPair], skipped: list[str]) -> tuple[TextPair, Iterator[TextPair]]:
    source = SourceConfig((str(path),))
    told = _languages_of_run(path) if path.is_dir() else languages_of(source)
    told = told or (served[0] if len(served) == 1 else None)
    if told is not None and served == [UNKNOWN]:
        return UNKNOWN, _pairs_of(path, source, told, False, skipped)
    if told is None:
        raise UserError(f"--memory {path}: it does not say which languages it holds; give a TMX file")
    for pair in served:
        for src, tgt in (told, told[::-1]):
            if (resolve(src, pair[:1]), resolve(tgt, pair[1:])) == pair:
                return pair, _pairs_of(path, source, told, (src, tgt) != told, skipped)
    raise UserError(f"--memory {path}: it holds {told[0]} and {told[1]}, which no run here translates")


def _pairs_of(
    path: Path, source: SourceConfig, told: TextPair, turned: bool, skipped: list[str]
) -> Iterator[TextPair]:
    if path.is_dir():
        read = _trained_on(path)
    else:
        read = ((one.src, one.tgt) for one in read_pairs(source, *told, skipped))
    return ((tgt, src) for src, tgt in read) if turned else read


def _languages_of_run(directory: Path) -> TextPair:
    try:
        plain = load_yaml(directory / "config.yaml")
        languages = str(plain["data"]["src_lang"]), str(plain["data"]["tgt_lang"])
        learnt_pairs = plain.get("purpose", "translate") == "translate"
    except (UserError, KeyError, TypeError) as error:
        why = f" ({error})" if isinstance(error, UserError) else ""
        raise UserError(
            f"--memory {directory}: this is no run directory; give a run or a file{why}"
        ) from None
    if not learnt_pairs:
        raise UserError(f"--memory {directory}: this run has not learnt from pairs; give one that translates")
    return languages


def _trained_on(directory: Path) -> Iterator[TextPair]:
    prepared = Prepared.open(directory / "data")
    store = prepared.train
    for number in range(len(store)):
        yield (
            prepared.src_tokenizer.decode(store.src(number).tolist()),
            prepared.tgt_tokenizer.decode(store.tgt(number).tolist()),
        )
