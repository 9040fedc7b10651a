"""`dragoman finetune`: fine-tune a pre-trained run, or train a new one, for predictions about text, images or
series."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import DryRun, Quiet
from dragoman.errors import UserError


def finetune(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] FILES... [field=value]...",
            help="A pre-trained run; labelled examples (tsv, csv, jsonl, CoNLL, SQuAD's json, "
            "or for classify a file of lines a class; for images and series also npy and parquet); and "
            "fields to set, such as train.max_epochs=3.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="Task: classify, pair, similarity, regress, tag, span, choice, image, series, forecast or "
            "caption.",
            show_default=False,
        ),
    ] = None,
    valid: Annotated[list[str] | None, typer.Option(help="Validation files.", metavar="FILES")] = None,
    model: Annotated[
        str | None, typer.Option(help="Preset to train from scratch, without RUN.  [default: bert-tiny]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory.  [default: runs/TASK]")] = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a network for classification, tagging, similarity, regression, question answering or choice;
    or train one on images or series.

    What is not given is chosen from the data. Ctrl-C saves and stops; `dragoman resume RUN` continues.
    """
    from dragoman.learning.task import METRICS_OF_TASK
    from dragoman.runs.directory import Run
    from dragoman.training.api import plan_and_train
    from dragoman.training.draft import split_arguments

    files, overrides = split_arguments(arguments)
    if files and Run.exists(Path(files[0])):
        if model is not None:
            raise UserError(f"--model: {files[0]} has its own model; leave one of the two out")
        overrides = [f"start={files.pop(0)}", *overrides]
    elif files and Path(files[0]).is_dir():
        raise UserError(f"{files[0]}: this directory is not a run; expected a run or files of examples")
    if model is not None:
        overrides = [f"model.preset={model}", *overrides]
    if task is not None:
        overrides = [f"task.kind={task}", *overrides]
    if not files:
        raise UserError("nothing to learn from: give files of labelled examples")
    if not any(o.startswith("task.kind=") for o in overrides) and not files[0].endswith((".yaml", ".yml")):
        raise UserError(f"--task: expected one of {', '.join(METRICS_OF_TASK)}; name it")
    run = plan_and_train(files, out=out, overrides=overrides, valid=valid or [], quiet=quiet, dry_run=dry_run)
    if run is not None and run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
