"""The translator of run directories, or of a directory that `dragoman export` wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.runs.directory import Run

_ARGOS = ".argosmodel"


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]
    run: "Run | None" = None
    """The first run; an export has none."""
    fast: bool = False
    """CTranslate2 searches, with rules of its own."""


def open_translator(
    directory: Path, also: Sequence[Path], checkpoint: str, device: str, precision: str = "float32"
) -> Opened:
    """An export for CTranslate2 needs no torch. Exports translate alone; runs can be asked together."""
    from dragoman.engines.manifest import is_export

    for path in (directory, *also):
        if path.suffix == _ARGOS:
            raise UserError(
                f"{path}: a package for Argos Translate holds the same model as an export for CTranslate2, "
                "which can be used here: dragoman export RUN --to ctranslate2"
            )
        if also and (is_export(path) or is_published(path)):
            raise UserError(f"{path}: this is an export, which translates alone; leave out --with")
    if is_export(directory):
        if precision != "float32":
            raise UserError(f"--precision: an export has its own (export --quantize); leave out {precision}")
        from dragoman.engines.manifest import CTRANSLATE2
        from dragoman.engines.opening import open_export

        translator = open_export(directory, checkpoint, device)
        return Opened(translator, translator.languages, fast=translator.export.engine == CTRANSLATE2)
    if is_published(directory):
        from dragoman.runs.opening import open_published

        if checkpoint != "best" or precision != "float32":
            raise UserError(
                f"{directory}: this is a Hugging Face model, which has one checkpoint and one number format"
            )
        return Opened(open_published(directory, device), ("src", "tgt"))
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import open_translator

    runs = [Run.open(path) for path in (directory, *also)]
    data = runs[0].config.data
    translator = open_translator(runs, checkpoint, device, precision)
    return Opened(translator, (data.src_lang, data.tgt_lang), runs[0])


def is_published(directory: Path) -> bool:
    """Whether it is laid out as Hugging Face's models are, and is no run."""
    names = ("manifest.json", "export.json")
    return (directory / "config.json").is_file() and not any((directory / name).exists() for name in names)
