"""`dragoman pretrain`: a language model of plain text, with the objective that belongs to the model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import DryRun, Quiet


def pretrain(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES... [field=value]...",
            help="Plain text, a sentence or paragraph a line; and fields to set, such as "
            "train.max_updates=500.",
        ),
    ],
    model: Annotated[
        str, typer.Option(help="Preset, such as bert-tiny, gpt-tiny, t5-tiny or bart-tiny.")
    ] = "bert-tiny",
    valid: Annotated[list[str] | None, typer.Option(help="Validation files.", metavar="FILES")] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory.  [default: runs/OBJECTIVE]")] = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train a language model on plain text: BERT, GPT, T5, BART, ELMo and others.

    The objective is the one of the model. Fine-tune it with `dragoman finetune RUN FILES --task KIND`.
    Ctrl-C saves and stops; `dragoman resume RUN` continues.
    """
    from dragoman.models.presets import usual_objective
    from dragoman.training.api import plan_and_train
    from dragoman.training.draft import split_arguments

    files, overrides = split_arguments(arguments)
    presets = [value for name, _, value in (o.partition("=") for o in overrides) if name == "model.preset"]
    model = presets[-1] if presets else model
    own = [f"model.preset={model}"]
    if not any(override.startswith("objective.name=") for override in overrides):
        own.append(f"objective.name={usual_objective(model)}")
    run = plan_and_train(
        files, out=out, overrides=[*own, *overrides], valid=valid or [], quiet=quiet, dry_run=dry_run
    )
    if run is not None and run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
