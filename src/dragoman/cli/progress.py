"""How far a command has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing in a pipe. It is told how many are done, of how many."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as display:
        task = display.add_task("translating", total=total)
        yield lambda done, _total: display.update(task, completed=done)
