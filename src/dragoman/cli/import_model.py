"""`dragoman import`: a published model as a run."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer


def import_model(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Hugging Face directory: config.json, model.safetensors and a tokenizer; or an archive of "
            "Marian: .npz, vocab.yml, source.spm and target.spm.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Run directory to write.")],
    prefix: Annotated[
        str, typer.Option(help="Text put before every source, such as 'translate English to German: '.")
    ] = "",
    src_lang: Annotated[
        str,
        typer.Option(help="Language of the source; of M2M-100 and NLLB as the model names it: en, eng_Latn."),
    ] = "src",
    tgt_lang: Annotated[str, typer.Option(help="Language of the target, likewise.")] = "tgt",
) -> None:
    """Turn a published model (Marian, Pegasus, T5, BART, M2M-100, NLLB, BERT, GPT, GPT-2) into a run.

    Nothing is downloaded and no code of the model is run.
    """
    from dragoman.checkpoint.huggingface.files import NOT_VERIFIED
    from dragoman.checkpoint.model import find_checkpoint
    from dragoman.learning import learning_of
    from dragoman.training.import_published import NEW, VERIFIED, import_run

    run = import_run(directory, out, (src_lang, tgt_lang), prefix)
    state = find_checkpoint(run.directory).state
    typer.echo(f"{directory} imported into {run.directory}")
    if not state[VERIFIED]:
        typer.echo(f"{directory}: {NOT_VERIFIED}")
    for module in state[NEW]:
        typer.echo(f"{module}: it has no weights there and is initialised at random")
    if next_step := learning_of(run.config).next_step:
        typer.echo(next_step.format(run=quote(str(run.directory))))
