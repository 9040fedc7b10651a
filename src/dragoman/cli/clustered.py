"""`--cluster`: the work of a command on the machines of a Ray cluster, with the same result."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from dragoman.cli.translators import Asked, Opened

if TYPE_CHECKING:
    from dragoman.cluster.on_ray import Cluster
    from dragoman.data.alignment.expectation import BlockQuestion, OrderedMap
    from dragoman.decode.search.config import SearchConfig
    from dragoman.runs.corpus_job import CorpusTask, Spread
    from dragoman.runs.journal import CorpusPiece

_PIECE = 256
"""Sentences of a test set that a worker is given at once."""
_CELLS = 1 << 19
"""Word pairs of a parallel corpus that a worker is given at once, or more."""


class CommandWork(Protocol):
    """What a command does with chunks."""

    @property
    def asked(self) -> Asked: ...

    def using(self, opened: Opened) -> Callable[[Sequence[Any]], Any]: ...


@dataclass(frozen=True)
class RemoteWork:
    """CommandWork that opens its translator on another machine, which must be the same there."""

    work: CommandWork
    device: str
    identity: Mapping[str, list[str]]

    def open(self) -> Callable[[Sequence[Any]], Any]:
        from dragoman.runs.identity import refuse_other

        opened = self.work.asked.open(self.device)
        refuse_other(self.work.asked.directory, self.identity, identity_of(opened, self.work.asked))
        return self.work.using(opened)


def identity_of(opened: Opened, asked: Asked) -> dict[str, list[str]]:
    """Hashes of what the translations depend on."""
    from dragoman.files import hash_file
    from dragoman.runs.identity import identity

    if hasattr(opened.translator, "scorer"):
        return identity(opened.translator)
    return {"models": [hash_file(asked.directory / "export.json")]}


@contextmanager
def cluster_at(address: str) -> "Iterator[Cluster]":
    from dragoman.cluster.on_ray import open_cluster

    with open_cluster(address, lambda text: typer.echo(f"--cluster: {text}", err=True)) as cluster:
        yield cluster


def resolved(asked: Asked) -> Asked:
    """With paths that mean the same wherever a worker is started."""
    return asked._replace(directory=asked.directory.resolve(), also=tuple(map(Path.resolve, asked.also)))


def parts_on(
    cluster: "Cluster", device: str, work: Any, opened: Opened, chunks: Iterable[list[Any]], begun: int = 0
) -> Iterator[Any]:
    """What `work` makes of each chunk, in their order."""
    from dragoman.engines.manifest import is_export

    runs_on_cores = device == "auto" and is_export(work.asked.directory)
    device = cluster.device("cpu" if runs_on_cores else device)
    work = replace(work, asked=resolved(work.asked))
    remote = RemoteWork(work, device, identity_of(opened, work.asked))
    return cluster.map(remote, chunks, device, begun)


def corpus_spread(
    cluster: "Cluster",
    runs: Sequence[Path],
    checkpoint: str,
    device: str,
    batch_tokens: int,
    identity: Mapping[str, list[str]],
) -> "Spread":
    """The journalled translation of a corpus (`runs/corpus_job.py`), handed out."""
    from dragoman.runs.corpus_job import CorpusWork

    there = cluster.device(device)
    paths = tuple(path.resolve() for path in runs)

    def spread(task: "CorpusTask", chunks: Iterator[list[str]], begun: int) -> "Iterator[CorpusPiece]":
        work = CorpusWork(paths, checkpoint, there, task, batch_tokens, identity)
        return cluster.map(work, chunks, there, begun)

    return spread


@contextmanager
def encoding_on(address: str | None) -> Iterator[None]:
    """Inside, the machines of a cluster cut the texts of a corpus into tokens, if one is given."""
    if address is None:
        yield
        return
    from dragoman.data.workers import EncodeWork, RemoteWorkers, Workers, encoding_by

    @contextmanager
    def workers(work: EncodeWork) -> Iterator[Workers]:
        with cluster.pool(work) as pool:
            yield RemoteWorkers(pool.count, pool.ask)

    with cluster_at(address) as cluster, encoding_by(workers):
        yield


@dataclass(frozen=True)
class Computing:
    """What a worker does that is sent steps of `data/alignment/expectation.py` with their questions."""

    def open(self) -> Callable[[Sequence[Any]], list[Any]]:
        from dragoman.data.alignment.expectation import E_STEPS

        return lambda items: [E_STEPS[name](question) for name, question in items]


@contextmanager
def computing_on(address: str | None) -> "Iterator[OrderedMap]":
    """A `map` over blocks of pairs that the machines of a cluster share, if one is given."""
    if address is None:
        yield map
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    with cluster_at(address) as cluster, cluster.pool(Computing()) as pool:

        def each(do: Callable[[Any], Any], asked: Iterable[Any]) -> Iterator[Any]:
            ahead: deque[Future[Any]] = deque()
            with ThreadPoolExecutor(pool.count) as threads:
                for group in _grouped(asked):
                    ahead.append(threads.submit(pool.ask, [(do.__name__, one) for one in group]))
                    if len(ahead) > 2 * pool.count:
                        yield from ahead.popleft().result()
                while ahead:
                    yield from ahead.popleft().result()

        yield each


def _grouped(questions: "Iterable[BlockQuestion]") -> "Iterator[list[BlockQuestion]]":
    """Small blocks travel together."""
    group: list[BlockQuestion] = []
    cells = 0
    for question in questions:
        group.append(question)
        cells += question.block.places.size
        if cells >= _CELLS:
            yield group
            group, cells = [], 0
    if group:
        yield group


@dataclass(frozen=True)
class Hypotheses:
    """What a worker does for `ClusterTranslator`."""

    asked: Asked
    search: "SearchConfig"
    batch_tokens: int

    def using(self, opened: Opened) -> Callable[[Sequence[str | None]], list[list[Any]]]:
        def found(texts: Sequence[str | None]) -> list[list[Any]]:
            lines = [text or "" for text in texts]
            return opened.translator.hypotheses(lines, search=self.search, batch_tokens=self.batch_tokens)

        return found


class ClusterTranslator:
    """Translates as the translator does that it stands for, on the machines of a cluster."""

    def __init__(self, cluster: "Cluster", device: str, asked: Asked, opened: Opened) -> None:
        self._cluster, self._device, self._asked, self._opened = cluster, device, asked, opened
        self.search = opened.translator.search

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: "SearchConfig",
        batch_tokens: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[list[Any]]:
        work = Hypotheses(self._asked, search, batch_tokens)
        chunks = [list(texts[first : first + _PIECE]) for first in range(0, len(texts), _PIECE)]
        rows: list[list[Any]] = []
        for part in parts_on(self._cluster, self._device, work, self._opened, chunks):
            rows += part
            if progress:
                progress(len(rows), len(texts))
        return rows
