"""The translator of a run directory, or of a directory that `dragoman export` wrote."""

from pathlib import Path
from typing import Any, NamedTuple


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]


def open_translator(directory: Path, checkpoint: str, device: str) -> Opened:
    """An export needs no torch."""
    from dragoman.engines.manifest import is_export

    if not is_export(directory):
        from dragoman.train.run import Run

        run = Run.open(directory)
        languages = run.config.data.src_lang, run.config.data.tgt_lang
        return Opened(run.translator(checkpoint, device), languages)
    from dragoman.engines.ctranslate2 import open_export

    translator = open_export(directory, checkpoint, device)
    return Opened(translator, translator.languages)
