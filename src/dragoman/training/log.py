"""The log files of a run.

metrics.jsonl   numbers that depend on nothing but the run: the same bytes after a kill and resume
samples.jsonl   some sentences of the validation set as the model translated them, validation by validation
timing.jsonl    what depends on the machine and the hour: speeds and times
log.txt         what a person saw
tensorboard/    the same numbers for TensorBoard, where asked for
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from dragoman.errors import missing_extra
from dragoman.files import open_to_append, sync_directory, sync_file
from dragoman.runs.records import Sample, read_file
from dragoman.training.budget import Clock
from dragoman.training.display import Display, NoDisplay, UpdateStatus, status_line, validation_line


class ScalarWriter(Protocol):
    """The part of TensorBoard's SummaryWriter that is used here."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


class Log:
    def __init__(
        self,
        directory: Path,
        display: Display,
        scalars: ScalarWriter | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.directory, self.display, self.scalars = directory, display, scalars
        self.clock = clock or Clock()
        self.metrics_path = directory / "metrics.jsonl"
        self.timing_path = directory / "timing.jsonl"
        self.samples_path = directory / "samples.jsonl"
        self.text_path = directory / "log.txt"
        self.elapsed_before = _last_elapsed(self.timing_path)
        self._metrics = open_to_append(self.metrics_path)
        self._timing = open_to_append(self.timing_path)
        _end_last_line(self.timing_path, self._timing)
        self._text = open_to_append(self.text_path)
        sync_directory(directory)  # checkpoints count on the metrics

    def cut_metrics(self, length: int) -> None:
        """Cut the metrics back to the checkpoint from which the run resumes."""
        found = self.metrics_path.stat().st_size
        if found < length:
            self.warn(
                f"{self.metrics_path}: {length - found} bytes are missing; training continues without them"
            )
        elif found > length:
            self._metrics.truncate(length)

    def sync_metrics(self) -> int:
        """Force the metrics to disk; a checkpoint that counts on them may be written afterwards."""
        sync_file(self._metrics)
        return self.metrics_path.stat().st_size

    @property
    def elapsed(self) -> float:
        """Seconds since the command began, those of earlier sessions counted in."""
        return self.elapsed_before + self.clock.seconds()

    def train(self, record: Mapping[str, Any], status: UpdateStatus) -> None:
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
        """Write to log.txt only. A full disk is ignored here; writing a checkpoint will report it."""
        with suppress(OSError):
            self._text.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}\n".encode())
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
        """Write samples. A full disk is ignored here; writing a checkpoint will report it."""
        entry = {"kind": kind, "update": update, "samples": [asdict(sample) for sample in samples]}
        if samples:
            with suppress(OSError), open_to_append(self.samples_path) as file:
                _end_last_line(self.samples_path, file)
                file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")

    def _time(self, kind: str, update: int, record: Mapping[str, float]) -> None:
        entry = {"kind": kind, "update": update, **record, "elapsed": round(self.elapsed, 3)}
        self._timing.write(json.dumps(entry).encode() + b"\n")
        self._timing.flush()

    def _scalar(self, tag: str, value: float, update: int) -> None:
        if self.scalars:
            self.scalars.add_scalar(tag, value, update)


class NoLog(Log):
    """The log of all processes but rank 0: writes nothing."""

    def __init__(self) -> None:
        self.display, self.scalars, self.clock = NoDisplay(), None, Clock()
        self.elapsed_before = 0.0

    def cut_metrics(self, length: int) -> None: ...
    def train(self, record: Mapping[str, Any], status: UpdateStatus) -> None: ...
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


def _end_last_line(path: Path, file: BinaryIO) -> None:
    """End a line that a kill has cut, so that the next one starts on its own line."""
    data = read_file(path)
    if data and not data.endswith(b"\n"):
        file.write(b"\n")


def _last_elapsed(path: Path) -> float:
    """Elapsed seconds recorded by earlier sessions; an incomplete last line is skipped."""
    for line in reversed(read_file(path).split(b"\n")):
        try:
            return float(json.loads(line)["elapsed"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0.0
