"""What a run writes down.

metrics.jsonl   numbers that depend on nothing but the run: the same bytes after a kill and resume
samples.jsonl   some sentences of the validation set as the model translated them, validation by validation
timing.jsonl    what depends on the machine and the hour: speeds and times
log.txt         what a person saw
tensorboard/    the same numbers for TensorBoard, where asked for
"""

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from dragoman.errors import missing_extra
from dragoman.runs.records import Sample
from dragoman.training.display import Display, Quiet, Status, status_line, validation_line


class ScalarWriter(Protocol):
    """The part of TensorBoard's SummaryWriter that is used here."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


class Log:
    def __init__(self, directory: Path, display: Display, scalars: ScalarWriter | None = None) -> None:
        self.directory, self.display, self.scalars = directory, display, scalars
        self.metrics_path = directory / "metrics.jsonl"
        self.timing_path = directory / "timing.jsonl"
        self.samples_path = directory / "samples.jsonl"
        self.text_path = directory / "log.txt"
        self.elapsed_before = _last_elapsed(self.timing_path)
        self._metrics = self.metrics_path.open("ab")
        _end_last_line(self.timing_path)
        self._timing = self.timing_path.open("a", encoding="utf-8")
        self._text = self.text_path.open("a", encoding="utf-8")
        self._started = time.monotonic()

    def cut_metrics(self, length: int) -> None:
        """Forget what was written after the checkpoint that the run goes on from."""
        found = self.metrics_path.stat().st_size
        if found < length:
            self.warn(
                f"{self.metrics_path}: {length - found} bytes are missing; the run goes on without them"
            )
        elif found > length:
            self._metrics.truncate(length)
        self._metrics.seek(0, os.SEEK_END)

    def sync_metrics(self) -> int:
        """Force the metrics to disk; a checkpoint that counts on them may be written afterwards."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        return self._metrics.tell()

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resume counted in."""
        return self.elapsed_before + time.monotonic() - self._started

    def train(self, record: Mapping[str, Any], status: Status) -> None:
        self._record("train", record)
        speed = {"tokens_per_second": round(status.tokens_per_second, 1)}
        self._time("train", status.update, speed)
        self._scalar("train/tokens_per_second", status.tokens_per_second, status.update)
        self.note(status_line(status))
        self.display.status(status)

    def valid(
        self,
        update: int,
        metrics: dict[str, float],
        better: bool,
        samples: Sequence[Sample],
        seconds: float,
        kind: str = "valid",
    ) -> None:
        self._record(kind, {"update": update, **metrics})
        self._time(kind, update, {"seconds": round(seconds, 3)})
        self._sample(kind, update, samples)
        self.note(validation_line(update, metrics, better))
        self.display.validation(update, metrics, better, samples)

    def saved(self, update: int, seconds: float) -> None:
        self._time("save", update, {"seconds": round(seconds, 3)})

    def say(self, text: str) -> None:
        self.note(text)
        self.display.line(text)

    def note(self, text: str) -> None:
        """For log.txt alone. A disk that is full is told by what has to be written."""
        with suppress(OSError):
            self._text.write(time.strftime("%Y-%m-%d %H:%M:%S  ") + text + "\n")
            self._text.flush()

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    def close(self) -> None:
        for file in (self._metrics, self._timing, self._text):
            with suppress(OSError):  # every line was flushed when it was written
                file.close()
        if self.scalars:
            self.scalars.close()

    def _record(self, kind: str, record: Mapping[str, Any]) -> None:
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
        self._metrics.write(json.dumps({"kind": kind, **finite}, allow_nan=False).encode() + b"\n")
        self._metrics.flush()
        for name, value in finite.items():
            if name != "update" and value is not None:
                self._scalar(f"{kind}/{name}", value, record["update"])

    def _sample(self, kind: str, update: int, samples: Sequence[Sample]) -> None:
        """A run goes on without them where the disk is full; what has to be written will tell."""
        entry = {"kind": kind, "update": update, "samples": [asdict(sample) for sample in samples]}
        if samples:
            with suppress(OSError):
                _end_last_line(self.samples_path)
                with self.samples_path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def _time(self, kind: str, update: int, record: Mapping[str, float]) -> None:
        entry = {"kind": kind, "update": update, **record, "elapsed": round(self.elapsed, 3)}
        self._timing.write(json.dumps(entry) + "\n")
        self._timing.flush()

    def _scalar(self, tag: str, value: float, update: int) -> None:
        if self.scalars:
            self.scalars.add_scalar(tag, value, update)


class NoLog(Log):
    """Of the processes beside the first: it says the same for all of them."""

    def __init__(self) -> None:
        self.display, self.scalars = Quiet(), None
        self.elapsed_before, self._started = 0.0, time.monotonic()

    def cut_metrics(self, length: int) -> None: ...
    def train(self, record: Mapping[str, Any], status: Status) -> None: ...
    def valid(
        self,
        update: int,
        metrics: dict[str, float],
        better: bool,
        samples: Sequence[Sample],
        seconds: float,
        kind: str = "valid",
    ) -> None: ...
    def saved(self, update: int, seconds: float) -> None: ...
    def note(self, text: str) -> None: ...
    def close(self) -> None: ...


def open_tensorboard(directory: Path) -> ScalarWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise missing_extra("tensorboard", "tensorboard", "train.tensorboard") from None
    return SummaryWriter(str(directory))


def _end_last_line(path: Path) -> None:
    """A kill may leave half a line; what is written next must not be glued to it."""
    data = path.read_bytes() if path.exists() else b""
    if data and not data.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def _last_elapsed(path: Path) -> float:
    """Seconds of training that earlier sessions wrote down; a line that was cut short is passed over."""
    if not path.exists():
        return 0.0
    for line in reversed(path.read_bytes().split(b"\n")):
        try:
            return float(json.loads(line)["elapsed"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0.0
