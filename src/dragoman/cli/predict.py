"""`dragoman predict`: what a fine-tuned run says about text."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import Checkpoint, Device, OutputOrOut
from dragoman.errors import UserError
from dragoman.text.segment import one_line

if TYPE_CHECKING:
    from dragoman.data.labelled.config import TaskConfig
    from dragoman.data.labelled.example import Example
    from dragoman.decode.predict import Prediction


def predict(
    run: Annotated[Path, typer.Argument(help="Run directory of a fine-tuned network.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Files as for finetune, with or without labels; standard input by default."),
    ] = None,
    output: OutputOrOut = None,
    format: Annotated[str, typer.Option(help="Output format: tsv or jsonl.")] = "tsv",
    fields: Annotated[
        list[str] | None, typer.Option("--set", help="Set a column, such as task.text=3.")
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print metrics on labelled files instead of predictions.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Forecasts: picture to write, .png, .svg or .pdf.")
    ] = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Print predictions of a fine-tuned run, with probabilities; or its metrics.

    tsv: label, probability, text; for other tasks the score, the tags of the words, or the answer with its
    place in the context. jsonl: also all probabilities. Standard input: one text a line; two texts with a
    tab between them for pairs; words with spaces between them for tag. Images and series: files. Forecasts:
    the steps that follow after the series in FILES.
    """
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks
    from dragoman.cli.vectors import evaluate_vectors, predict_vectors
    from dragoman.data.labelled.config import VECTORS
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import open_predictor

    if format not in ("tsv", "jsonl"):
        raise UserError(f"--format: expected tsv or jsonl, found '{format}'")
    opened = Run.open(run)
    own = opened.config.task
    if own is not None and own.kind in VECTORS:
        own = _with_columns(own, fields or [])
        if metrics:
            evaluate_vectors(opened, files or [], own, checkpoint, device, output)
        else:
            predict_vectors(opened, files or [], own, output, format, plot, checkpoint, device)
        return
    if plot is not None:
        raise UserError("--plot: it is for forecasts; leave it out")
    predictor = open_predictor(opened, checkpoint, device)
    task = _with_columns(predictor.task, fields or [])
    examples = _examples(files or [], task, labelled=metrics)
    if metrics:
        _print_metrics(list(examples), predictor, output)
        return
    with open_output(output) as write:
        for chunk in chunks(examples):
            for example, found in zip(chunk, predictor.predict(chunk), strict=True):
                write(_as_tsv(example, found) if format == "tsv" else _as_json(example, found, task.kind))


def _with_columns(task: "TaskConfig", fields: list[str]) -> "TaskConfig":
    from dragoman.config import apply_overrides, from_dict, to_dict
    from dragoman.data.labelled.config import TaskConfig

    for field in fields:
        if not field.startswith(("task.text=", "task.second=", "task.label=")):
            raise UserError(f"--set {field}: only task.text, task.second and task.label can be set here")
    return from_dict(TaskConfig, apply_overrides({"task": to_dict(task)}, fields)["task"], "task")


def _examples(files: list[str], task: "TaskConfig", labelled: bool) -> Iterator["Example"]:
    from dragoman.data.config import SourceConfig
    from dragoman.data.labelled.read import check_targets, read_examples

    if not files:
        if labelled:
            raise UserError("--metrics: give files that have labels")
        yield from _from_stdin(task)
    for file in files:
        found = read_examples(SourceConfig((file,)), task, labelled)
        yield from check_targets(found, task) if labelled else found


def _from_stdin(task: "TaskConfig") -> Iterator["Example"]:
    from dragoman.cli.texts import input_lines
    from dragoman.data.labelled.example import Example

    needed = {"pair": 2, "similarity": 2, "span": 2}.get(task.kind, 1)
    for number, line in enumerate(input_lines(None, None, _asked(task.kind)), start=1):
        where = f"standard input:{number}"
        texts = line.split() if task.kind == "tag" else [text.strip() for text in line.split("\t")]
        right = len(texts) >= 3 if task.kind == "choice" else task.kind == "tag" or len(texts) == needed
        if not right or not texts or not all(texts):
            wanted = {"choice": "a beginning and two or more choices", "tag": "words"}.get(task.kind)
            wanted = wanted or ("two texts" if needed == 2 else "a text")
            told = f"expected {wanted}, tabs between them, found {line!r:.60}"
            if sys.stdin.isatty():  # somebody types, and can try again
                print(told, file=sys.stderr)
                continue
            raise UserError(f"{where}: {told}")
        yield Example(tuple(texts), None, where)


def _asked(kind: str) -> str:
    wanted = {
        "pair": "two texts with a tab between them",
        "similarity": "two texts with a tab between them",
        "span": "a question, a tab and the text with the answer",
        "choice": "a beginning and its possible endings with tabs between them",
        "tag": "a sentence, its words with spaces between them",
    }.get(kind, "a text")
    return f"Type {wanted}, and press Enter."


def _print_metrics(examples: list["Example"], predictor: Any, output: Path | None) -> None:
    from dragoman.cli.output import open_output
    from dragoman.learning.task_validation import task_metrics

    if not examples:
        raise UserError("--metrics: there are no examples")
    found = task_metrics(predictor.predict(examples), examples, predictor.task) | predictor.model.mixture()
    with open_output(output) as write:
        write(f"examples\t{len(examples)}")
        for name, value in found.items():
            write(f"{name}\t{value:.4f}")


def _as_tsv(example: "Example", found: "Prediction") -> str:
    cells: Iterable[str]
    if isinstance(found.value, tuple):
        cells = [" ".join(found.value), f"{found.confidence:.4f}", " ".join(example.texts)]
    elif found.confidence is None:
        cells = [f"{found.value:.4f}", *example.texts]
    else:
        place = [] if found.start is None else [str(found.start), str(found.end)]
        cells = [str(found.value), f"{found.confidence:.4f}", *place, *example.texts[: 1 if place else None]]
    return "\t".join(one_line(cell).replace("\t", " ") for cell in cells)


def _as_json(example: "Example", found: "Prediction", kind: str) -> str:
    return json.dumps(found.record(kind) | {"texts": list(example.texts)}, ensure_ascii=False)
