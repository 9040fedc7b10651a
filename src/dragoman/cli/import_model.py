"""`dragoman import`: a published model as a run."""

from pathlib import Path
from typing import Annotated

import typer


def import_model(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Hugging Face directory: config.json, model.safetensors and a tokenizer."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Run directory to write.")],
    prefix: Annotated[
        str, typer.Option(help="Text before every source, such as 'translate English to German: '.")
    ] = "",
    src_lang: Annotated[str, typer.Option(help="Language of the source.")] = "src",
    tgt_lang: Annotated[str, typer.Option(help="Language of the target.")] = "tgt",
) -> None:
    """Make a run of a published model: Marian, T5 or BART. Nothing is downloaded; no code is run."""
    from dragoman.train.imports import import_run

    run = import_run(directory, out, (src_lang, tgt_lang), prefix)
    typer.echo(f"{directory} imported into {run.directory}")
    typer.echo(f"translate with:  dragoman translate {run.directory}")
