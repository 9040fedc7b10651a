"""The translator of run directories, or of a directory that `dragoman export` wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.data.directions import Directions, chosen_languages
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.decode.confidence import Calibration


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]
    exported: bool
    zero_shot: bool = False
    """Whether the direction was trained without pairs of its own."""

    def calibration(self, directory: Path, checkpoint: str) -> "Calibration | None":
        """That of its confidences, if there is one: `translate --confidence` makes it."""
        if self.exported:
            return self.translator.calibration
        from dragoman.evaluate.confidence import stored_calibration
        from dragoman.runs.directory import Run

        return stored_calibration(Run.open(directory), checkpoint)


def open_translator(
    directory: Path,
    also: Sequence[Path],
    checkpoint: str,
    device: str,
    precision: str = "float32",
    to: str | None = None,
    source: str | None = None,
    zero_shot: bool = False,
) -> Opened:
    """An export needs no torch, and translates alone; runs can be asked together. `to` and `source` choose a
    direction of a model of several languages."""
    whole, directions, only, exported = _open(directory, also, checkpoint, device, precision)
    asked = directions is not None or to is not None or source is not None
    languages = chosen_languages(directions, only, to, source, zero_shot) if asked else only
    return _directed(whole, directions, languages, exported)


def open_directions(directory: Path, checkpoint: str, device: str, zero_shot: bool) -> list[Opened]:
    """Translators of all directions of a run or an export, which share the model."""
    whole, directions, only, exported = _open(directory, [], checkpoint, device, "float32")
    if directions is None:
        return [Opened(whole, only, exported)]
    pairs = [*directions.trained, *(directions.zero_shot if zero_shot else ())]
    return [_directed(whole, directions, languages, exported) for languages in pairs]


def _directed(
    whole: Any, directions: Directions | None, languages: tuple[str, str], exported: bool
) -> Opened:
    if directions is None:
        return Opened(whole, languages, exported)
    opening = whole.src_tokenizer.control_ids(directions.opening(languages))
    return Opened(
        whole.with_opening(opening), languages, exported, zero_shot=languages in directions.zero_shot
    )


def _open(
    directory: Path, also: Sequence[Path], checkpoint: str, device: str, precision: str
) -> tuple[Any, Directions | None, tuple[str, str], bool]:
    """The translator without a direction, its directions where it has several, else its languages, and
    whether it is an export."""
    from dragoman.engines.manifest import is_export

    for path in (directory, *also):
        if is_export(path) and also:
            raise UserError(f"{path}: this is an export, which translates alone; leave out --with")
    if not is_export(directory):
        from dragoman.runs.directory import Run
        from dragoman.runs.opening import open_translator

        runs = [Run.open(path) for path in (directory, *also)]
        data = runs[0].config.data
        translator = open_translator(runs, checkpoint, device, precision, undirected=True)
        return translator, data.directions, (data.src_lang, data.tgt_lang), False
    if precision != "float32":
        raise UserError(f"--precision: an export has its own (export --quantize); leave out {precision}")
    from dragoman.engines.ctranslate2 import open_export

    translator = open_export(directory, checkpoint, device)
    return translator, translator.directions, translator.languages, True
