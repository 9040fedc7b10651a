"""Encoding in separate processes: a large corpus is tokenised on all cores.

    main ──texts of a chunk──> worker ──ids──> main          over the pipes of the worker

A message is its length in eight bytes, then its bytes: texts with NUL between them (no text holds one), or
the lengths of all rows and then their ids as 64-bit numbers. A worker ends when its input does, so none is
left behind, however the main process ends.
"""

import os
import queue
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from dragoman.errors import UserError
from dragoman.files import scratch_directory
from dragoman.system import usable_cores
from dragoman.text.tokenizer import Tokenizer

EncodedSide = tuple[np.ndarray, np.ndarray]
"""All ids concatenated, and the length of each sentence."""

WORTH_WORKERS = 100_000
"""Number of pairs above which starting processes pays off."""
_MOST = 16
_HEADER = struct.Struct("<q")


class Workers:
    """Processes that hold both tokenizers. As many threads may call `encode` as there are workers."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.count = len(processes)
        self._idle: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()
        for process in processes:
            self._idle.put(process)

    def encode(self, src: Sequence[str], tgt: Sequence[str]) -> tuple[EncodedSide, EncodedSide]:
        process = self._idle.get()
        try:
            return _ask(process, "s", src), _ask(process, "t", tgt)
        finally:
            self._idle.put(process)


@dataclass(frozen=True)
class EncodeWork:
    """What a machine of a cluster does: it has the tokenizers, and encodes."""

    tokenizers: tuple[bytes, ...]

    def open(self) -> Callable[[Sequence[tuple[str, Sequence[str]]]], list[EncodedSide]]:
        with scratch_directory() as directory:
            paths = [directory / f"{number}.json" for number in range(len(self.tokenizers))]
            for path, data in zip(paths, self.tokenizers, strict=True):
                path.write_bytes(data)
            tokenizers = tokenizers_of(paths)
        return lambda items: [flattened(tokenizers[side].encode_batch(texts)) for side, texts in items]


class RemoteWorkers(Workers):
    """The same on other machines, which `ask` knows."""

    def __init__(
        self, count: int, ask: Callable[[list[tuple[str, Sequence[str]]]], list[EncodedSide]]
    ) -> None:
        self.count, self._ask = count, ask

    def encode(self, src: Sequence[str], tgt: Sequence[str]) -> tuple[EncodedSide, EncodedSide]:
        src_side, tgt_side = self._ask([("s", src), ("t", tgt)])
        return src_side, tgt_side


OpenWorkers = Callable[[EncodeWork], AbstractContextManager[Workers]]
_remote: ContextVar[OpenWorkers | None] = ContextVar("remote", default=None)


@contextmanager
def encoding_by(open_remote: OpenWorkers) -> Iterator[None]:
    """Inside, corpora are encoded by the workers that this opens."""
    token = _remote.set(open_remote)
    try:
        yield
    finally:
        _remote.reset(token)


@contextmanager
def open_workers(tokenizers: Sequence[Path], pairs: int) -> Iterator[Workers | None]:
    """Workers for a corpus of `pairs` pairs. None if it is too small or the machine has one core."""
    if (open_remote := _remote.get()) is not None:
        with open_remote(EncodeWork(tuple(path.read_bytes() for path in tokenizers))) as workers:
            yield workers
        return
    count = min(_MOST, usable_cores())
    if pairs < WORTH_WORKERS or count < 2:
        yield None
        return
    command = [sys.executable, "-m", __name__, *(str(path) for path in tokenizers)]
    package = str(Path(__file__).parents[2])
    search = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": search, "TOKENIZERS_PARALLELISM": "false"}
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        for _ in range(count)
    ]
    try:
        yield Workers(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _ask(process: subprocess.Popen[bytes], side: str, texts: Sequence[str]) -> EncodedSide:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, "\0".join([side, *texts]).encode("utf-8"))
        answer = _receive(process.stdout)
    except BrokenPipeError:
        answer = None
    if answer is None:
        raise UserError("a process that encodes the corpus has ended; is there enough memory?")
    numbers = np.frombuffer(answer, dtype=np.int64)
    return numbers[len(texts) :], numbers[: len(texts)]


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_HEADER.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next message, or None if the other side has closed the pipe."""
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    (size,) = _HEADER.unpack(header)
    message = pipe.read(size)
    return message if len(message) == size else None


def flattened(rows: Sequence[Sequence[int]]) -> EncodedSide:
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
    return ids, lengths


def tokenizers_of(paths: Sequence[Path | str]) -> dict[str, Tokenizer]:
    """The tokenizers of source and target. A joint tokenizer is loaded once, because its table of known words
    grows to some 60 MB."""
    src, tgt = Tokenizer.load(Path(paths[0])), Tokenizer.load(Path(paths[-1]))
    return {"s": src, "t": src if src.sha256 == tgt.sha256 else tgt}


def _serve(paths: Sequence[str]) -> None:
    """The main loop of a worker, until its input ends. Ctrl-C is left to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tokenizers = tokenizers_of(paths)
    while (message := _receive(sys.stdin.buffer)) is not None:
        side, *texts = message.decode("utf-8").split("\0")
        ids, lengths = flattened(tokenizers[side].encode_batch(texts))
        _send(sys.stdout.buffer, np.concatenate([lengths, ids]).tobytes())


if __name__ == "__main__":
    _serve(sys.argv[1:])
