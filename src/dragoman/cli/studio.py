"""`dragoman studio`: a page on this machine to look into runs."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, Port
from dragoman.errors import missing_extra


def studio(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, also of runs in training.")],
    text: Annotated[str, typer.Option(help="First sentence; by default one of the validation set.")] = "",
    port: Port = 5050,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the browser.")] = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Look inside runs in a browser: translations, attention, beams, heads, training."""
    for module in ("torch", "fastapi", "h11"):
        if find_spec(module) is None:
            raise missing_extra(module, "studio", "the studio")
    import webbrowser

    from dragoman.studio.app import serve
    from dragoman.studio.subject import Subjects

    subjects = Subjects(runs, checkpoint, device, text)

    for name, reason in subjects.unreadable.items():
        typer.echo(f"dragoman: {name} is left out: {reason}", err=True)

    def tell(address: str) -> None:
        typer.echo(
            f"{address}  {', '.join(subjects.runs)}; only this machine can reach it; Ctrl-C stops", err=True
        )
        if browser:
            webbrowser.open(address)

    serve(subjects, port, tell)
