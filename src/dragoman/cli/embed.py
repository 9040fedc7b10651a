"""`dragoman embed`: the vectors of text from inside a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dragoman.cli.options import Checkpoint, Device
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.probe.embed import Embedder, TextVectors


def embed(
    run: Annotated[Path, typer.Argument(help="Run directory of any network, trained or imported.")],
    file: Annotated[
        Path | None, typer.Argument(help="File, one text a line; standard input by default.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .npy or .parquet.")] = Path(
        "vectors.npy"
    ),
    layer: Annotated[
        str, typer.Option(help="all, or a number: 0 is the embedding layer, -1 the last layer.")
    ] = "-1",
    pool: Annotated[
        str, typer.Option(help="One vector for each line (mean, first or last), or none: all of them.")
    ] = "mean",
    by: Annotated[str, typer.Option(help="With --pool none: piece or word.")] = "piece",
    batch_tokens: Annotated[int, typer.Option(help="Tokens in a batch.")] = 4096,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Write contextual vectors of text, for each line, piece or word."""
    from dragoman.checkpoint.model import load_network
    from dragoman.learning import learning_of
    from dragoman.models import Network
    from dragoman.models.task_heads import TaskNetwork
    from dragoman.probe.embed import Embedder
    from dragoman.probe.vector_files import write_vectors
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import pick_device

    if by != "piece" and pool != "none":
        raise UserError(f"--by: one vector a line has no {by}s; use --pool none")
    if file is not None and not file.exists():
        raise UserError(f"{file}: there is no such file; embed reads a text file or standard input")
    opened = Run.open(run)
    if opened.config.model_config[1].abilities.vectors is not None:
        raise UserError(f"{run}: this run reads images or series, and embed is for text")
    causal = not learning_of(opened.config).reads_source
    loaded = load_network(opened.directory, pick_device(device), checkpoint)
    model = loaded.model
    embedder = Embedder(
        cast(Network, model.network) if isinstance(model, TaskNetwork) else model,
        loaded.src_tokenizer,
        layer=_layer(layer),
        pool=pool,
        by=by,
        causal=causal,
    )
    rows = write_vectors(out, _vectors(embedder, file, batch_tokens), layer == "all")
    typer.echo(f"{rows:,} vectors written to {out}")


def _layer(name: str) -> int | None:
    try:
        return None if name == "all" else int(name)
    except ValueError:
        raise UserError(f"--layer: expected all or a whole number, found '{name}'") from None


def _vectors(
    embedder: "Embedder", file: Path | None, batch_tokens: int
) -> "Iterator[tuple[int, TextVectors]]":
    from dragoman.cli.texts import chunks, input_lines

    if batch_tokens < 1:
        raise UserError(f"--batch-tokens: expected at least 1, found {batch_tokens}")
    line = 0
    for chunk in chunks(input_lines(None, file)):
        for found in embedder.embed(chunk, batch_tokens):
            line += 1
            yield line, found
