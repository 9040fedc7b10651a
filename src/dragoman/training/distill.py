"""Sequence-level knowledge distillation (Kim & Rush 2016): a student learns what its teachers say.

    teacher's data/ ─▶ train-1.src ─▶ teachers, beam ─▶ train-1.tgt ─▶ student's run
                  └──▶ valid.src, valid.tgt: real pairs, which the teacher has not learnt from

The text comes from the teacher's own prepared corpus: cleaned, without duplicates, and without the validation
pairs. Each corpus of the teacher has its own pair of files, so that corpus weights are kept.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import to_dict
from dragoman.data.corpus import Prepared
from dragoman.data.formats import read_lines
from dragoman.data.sampler import CorpusRange
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import SentenceProgress, Translator
from dragoman.errors import UserError
from dragoman.files import explained, new_directory, read_regular, replace_file, write_new
from dragoman.runs.config import RunConfig, to_yaml
from dragoman.runs.corpus_job import CorpusTask, Spread, translate_corpus
from dragoman.runs.directory import Run
from dragoman.runs.journal import Done
from dragoman.text.segment import one_line
from dragoman.text.tokenizer import Tokenizer

RECIPE = "recipe.yaml"
_ORIGIN = "teacher.json"
_ORIGIN_LIMIT = 1 << 20
_LINES = 4096


@dataclass(frozen=True)
class TeacherPart:
    """One corpus of the teacher."""

    src: Path
    synthetic: Path
    original: Path
    pairs: int
    weight: float


@dataclass(frozen=True)
class TeacherText:
    """The teacher's training data as files."""

    directory: Path
    parts: tuple[TeacherPart, ...]
    valid: tuple[Path, Path] | None
    fingerprint: str

    @property
    def pairs(self) -> int:
        return sum(part.pairs for part in self.parts)


def write_text(teacher: Run, directory: Path) -> TeacherText:
    """Write the teacher's corpus into `directory`, unless it is there already."""
    prepared = teacher.prepared()
    wanted = json.dumps({"fingerprint": teacher.fingerprint}).encode()
    with explained(directory):
        origin = directory / _ORIGIN
        known = origin.exists() and read_regular(origin, _ORIGIN_LIMIT) == wanted
        if not known and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UserError(f"{directory}: this is not the text of {teacher.directory}; choose another --out")
        if not known:
            with new_directory(directory) as temporary:
                _write_files(temporary, prepared)
                write_new(temporary / _ORIGIN, (wanted,))
    parts = tuple(
        TeacherPart(*_names(directory, number), pairs=corpus.end - corpus.start, weight=corpus.weight)
        for number, corpus in enumerate(_ranges(prepared), 1)
    )
    return TeacherText(directory, parts, _valid(directory, prepared), teacher.fingerprint)


def _ranges(prepared: Prepared) -> list[CorpusRange]:
    return [corpus for corpus in prepared.train.corpora if corpus.draws]


def _names(directory: Path, number: int) -> tuple[Path, Path, Path]:
    """Source, synthetic target and original target of a part."""
    src, synthetic, original = (f"train-{number}.src", f"train-{number}.tgt", f"original-{number}.tgt")
    return directory / src, directory / synthetic, directory / original


def _valid(directory: Path, prepared: Prepared) -> tuple[Path, Path] | None:
    return (directory / "valid.src", directory / "valid.tgt") if len(prepared.valid) else None


def _write_files(directory: Path, prepared: Prepared) -> None:
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    train, store = prepared.train, prepared.valid
    for number, corpus in enumerate(_ranges(prepared), 1):
        source, _, original = _names(directory, number)
        write_new(source, _texts(train.src, src, corpus.start, corpus.end, train.documents))
        write_new(original, _texts(train.tgt, tgt, corpus.start, corpus.end, train.documents))
    valid = _valid(directory, prepared)
    if valid is not None:
        write_new(valid[0], _texts(store.src, src, 0, len(store), store.documents))
        write_new(valid[1], _texts(store.tgt, tgt, 0, len(store), store.documents))


def _texts(
    ids: Callable[[int], Any], tokenizer: Tokenizer, start: int, end: int, documents: np.ndarray | None
) -> Iterator[bytes]:
    """Decoded lines, some thousand at a time, with a blank line after each known document."""

    def line(number: int) -> str:
        text = one_line(tokenizer.decode(ids(number).tolist()))
        ends = documents is not None and (number + 1 == end or documents[number] != documents[number + 1])
        return f"{text}\n\n" if ends else f"{text}\n"

    for first in range(start, end, _LINES):
        yield "".join(map(line, range(first, min(first + _LINES, end)))).encode()


def translate_text(
    translator: Translator,
    text: TeacherText,
    search: SearchConfig,
    *,
    max_tokens: int,
    batch_tokens: int,
    progress: SentenceProgress | None = None,
    spread: Spread | None = None,
) -> Done:
    """The teachers' translation of every source, part by part. An interrupted run is resumed."""
    before, total = Done(finished=True), text.pairs
    for number, part in enumerate(text.parts):

        def report(now: int, _of: int, begun: int = before.lines) -> None:
            if progress:
                progress(begun + now, total)

        task = CorpusTask(search, f"{text.fingerprint}-{number}", max_tokens)
        lines = read_lines(part.src)
        done = translate_corpus(
            translator,
            lines,
            part.synthetic,
            task,
            batch_tokens=batch_tokens,
            progress=report,
            total=total,
            spread=spread,
        )
        before = before.plus(done)
    return before


def student_recipe(teacher: Run, text: TeacherText, preset: str, keep_original: bool) -> dict[str, Any]:
    """Data, vocabulary and model of the student; how it is trained is chosen as for any other run."""
    config = teacher.config
    train = [_source(part.src, part.synthetic, part.weight) for part in text.parts]
    if keep_original:
        train += [_source(part.src, part.original, part.weight) for part in text.parts]
    data = to_dict(config.data) | {"train": train}
    data |= {"valid": [_source(*text.valid, 1.0)]} if text.valid else {"valid": [], "valid_size": 0}
    return {
        "seed": config.seed,
        "data": data,
        "tokenizer": to_dict(config.tokenizer),
        "model": {"preset": preset},
    }


def write_recipe(text: TeacherText, config: RunConfig) -> Path:
    path = text.directory / RECIPE
    with explained(path):
        replace_file(path, to_yaml(config).encode())
    return path


def _source(src: Path, tgt: Path, weight: float) -> dict[str, Any]:
    return {"files": [str(src), str(tgt)], "format": "plain", "weight": weight}
