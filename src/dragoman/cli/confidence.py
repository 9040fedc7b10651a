"""`--confidence` and `--flag-below` of `dragoman translate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragoman.errors import UserError
from dragoman.text.segment import one_line

if TYPE_CHECKING:
    from dragoman.cli.translators import Opened
    from dragoman.decode.confidence import Calibration


def calibration(run: Path, opened: "Opened", checkpoint: str, device: str) -> "Calibration":
    """The calibration of an export or a run. A run computes its own at the first request."""
    found = opened.calibration(checkpoint)
    if found is not None:
        return found
    if opened.run is None:
        raise UserError(f"--confidence: {run} has no calibration; use it with the run once, and export again")
    from dragoman.cli.progress import progress_bar
    from dragoman.evaluate.confidence import SENTENCES, calibration_of

    with progress_bar(SENTENCES) as progress:
        return calibration_of(opened.run, checkpoint, device, progress)


class Trust:
    """`--confidence` and `--flag-below`."""

    def __init__(self, calibration: "Calibration", below: float | None) -> None:
        self._calibration, self._below = calibration, below
        self._asked = 0
        self._flagged: list[tuple[float, str, str]] = []

    def of(self, source: str, hypothesis: Any) -> float:
        return round(self._calibration.confidence(source, hypothesis), 4)

    def note(self, source: str, hypothesis: Any) -> tuple[float, bool]:
        """Its confidence, and whether that is too little."""
        self._asked += 1
        sure = self.of(source, hypothesis)
        low = self._below is not None and sure < self._below
        if low:
            self._flagged.append((sure, source, hypothesis.text))
        return sure, low

    @property
    def flagged(self) -> int:
        return len(self._flagged)

    def tell(self, listed: bool = False) -> None:
        """How many need a look; `listed`: and which."""
        if self._below is None:
            return
        tell_flagged(self.flagged, self._asked, self._below)
        for sure, source, text in self._flagged if listed else ():
            typer.echo(f"  {sure:.2f}\t{one_line(source)}\t{one_line(text)}", err=True)


def tell_flagged(flagged: int, asked: int, below: float) -> None:
    typer.echo(f"{flagged} of {asked} translations below {below:g}", err=True)
