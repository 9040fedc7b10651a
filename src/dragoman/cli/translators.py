"""The translator of run directories, or of a directory that `dragoman export` wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import UserError


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]
    exported: bool


def open_translator(
    directory: Path, also: Sequence[Path], checkpoint: str, device: str, precision: str = "float32"
) -> Opened:
    """An export needs no torch, and translates alone; runs can be asked together."""
    from dragoman.engines.manifest import is_export

    for path in (directory, *also):
        if is_export(path) and also:
            raise UserError(f"{path}: this is an export, which translates alone; leave out --with")
    if not is_export(directory):
        from dragoman.runs.directory import Run
        from dragoman.runs.opening import open_translator

        runs = [Run.open(path) for path in (directory, *also)]
        data = runs[0].config.data
        translator = open_translator(runs, checkpoint, device, precision)
        return Opened(translator, (data.src_lang, data.tgt_lang), exported=False)
    if precision != "float32":
        raise UserError(f"--precision: an export has its own (export --quantize); leave out {precision}")
    from dragoman.engines.ctranslate2 import open_export

    translator = open_export(directory, checkpoint, device)
    return Opened(translator, translator.languages, exported=True)
