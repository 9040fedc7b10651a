"""`dragoman studio`: a page on this machine to look into runs."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, Port
from dragoman.errors import UserError, missing_extra


def studio(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run directories, also of runs in training.")
    ] = None,
    text: Annotated[str, typer.Option(help="First sentence; by default one of the validation set.")] = "",
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="Test files for the view Data: test.en test.de, or a table."),
    ] = None,
    lesson: Annotated[
        str,
        typer.Option(
            help="Begin with a lesson: counting, bottleneck, attention, heads, positions, beam, pre-training."
        ),
    ] = "",
    train: Annotated[
        bool, typer.Option("--train", help="Add a view that trains models; then no run is needed.")
    ] = False,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Directory whose files can be trained on (repeatable).  [default: this one]"),
    ] = None,
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
    from dragoman.studio.lessons import first_page
    from dragoman.studio.subjects import Subjects
    from dragoman.studio.workshop import Workshop

    page = f"#{first_page(lesson)}" if lesson else ""
    if not runs and not train:
        raise UserError("studio: name a run directory, or add --train to train one in the page")
    subjects = Subjects(runs or [], checkpoint, device, text)
    if test:
        subjects.add_test(test)
    workshop = Workshop(data or [Path()], Path("runs")) if train else None
    if workshop is not None:
        page = f"{page or '#train?'}{'&' if page else ''}token={workshop.token}"

    for name, reason in subjects.unreadable.items():
        typer.echo(f"dragoman: {name} is left out: {reason}", err=True)

    def tell(address: str) -> None:
        address += page
        typer.echo(
            f"{address}  {', '.join(subjects.runs)}; only this machine can reach it; Ctrl-C stops", err=True
        )
        if browser:
            webbrowser.open(address)

    serve(subjects, port, tell, workshop)
