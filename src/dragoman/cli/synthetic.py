"""Shared parts of the commands that translate whole corpora: progress, and a closing message."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dragoman.runs.journal import Done

_EVERY_SECONDS = 30.0


@contextmanager
def corpus_progress(total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, a line now and then in a pipe; both on standard error. An
    interruption says that nothing is lost."""
    import sys

    from dragoman.cli.progress import progress_bar
    from dragoman.training.display import duration

    began = said = time.monotonic()
    first: int | None = None
    done = 0
    with progress_bar(total) as bar:

        def report(now: int, _total: int) -> None:
            nonlocal first, done, said
            if first is None:
                first = now
            done = now
            bar(now, total)
            moment = time.monotonic()
            if not sys.stderr.isatty() and moment - said >= _EVERY_SECONDS and now > first:
                said = moment
                speed = (now - first) / (moment - began)
                left = duration((total - now) / speed)
                typer.echo(f"{now:,} of {total:,} lines, {speed:.1f} a second, {left} left", err=True)

        try:
            yield report
        except KeyboardInterrupt:
            where = f"stopped at line {done:,} of {total:,}"
            typer.echo(f"{where}; the same command continues after the last chunk written", err=True)
            raise


def tell(done: "Done") -> None:
    typer.echo(f"{done.lines:,} lines are translated")
    for count, what in (
        (done.too_long, "left empty, since they had too many tokens"),
        (done.cut_off, "cut off at the length limit"),
        (done.loops, "redone, since they were stuck in a loop"),
        (done.failed, "left empty, since every machine fails at them"),
    ):
        if count:
            typer.echo(f"  {count:,} {what}")
