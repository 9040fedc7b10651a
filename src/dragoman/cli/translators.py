"""The translator of a run directory, or of a directory that `dragoman export` wrote."""

from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import UserError


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]


def open_translator(directory: Path, checkpoint: str, device: str) -> Opened:
    """An export needs no torch; it has one checkpoint and runs on the CPU."""
    from dragoman.engines.manifest import is_export

    if not is_export(directory):
        from dragoman.train.run import Run

        run = Run.open(directory)
        languages = run.config.data.src_lang, run.config.data.tgt_lang
        return Opened(run.translator(checkpoint, device), languages)
    if checkpoint != "best":
        raise UserError(f"--checkpoint {checkpoint}: {directory} is an export, which holds one checkpoint")
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: {directory} is an export, which runs on the CPU")
    from dragoman.engines.ctranslate2 import Translator

    translator = Translator.open(directory)
    return Opened(translator, translator.languages)
