"""`dragoman predict` and `dragoman evaluate` for runs that read images or series."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from dragoman.data.labelled.config import TaskConfig
    from dragoman.data.labelled.example import Example
    from dragoman.data.labelled.prepared import PreparedTask
    from dragoman.data.vectors.series import Series
    from dragoman.decode.predict_vectors import Captioner
    from dragoman.runs.directory import Run


def predict_vectors(
    run: "Run",
    files: Sequence[str],
    task: "TaskConfig",
    output: Path | None,
    format: str,
    plot: Path | None,
    checkpoint: str,
    device: str,
) -> None:
    """Write labels with probabilities, captions, or the forecast of a series."""
    from dragoman.cli.output import open_output
    from dragoman.runs.opening import open_captioner, open_vector_predictor

    if not files:
        what = {"forecast": "a series", "series": "series"}.get(task.kind, "images")
        raise UserError(f"{run.directory}: give files of {what} after the run")
    if task.kind == "caption":
        predictor = open_captioner(run, checkpoint, device)
    else:
        predictor = open_vector_predictor(run, checkpoint, device)
    if task.kind == "forecast":
        lines = _forecast(run, predictor, files, task, format, plot)
    elif plot is not None:
        raise UserError("--plot: it is for forecasts; leave it out")
    else:
        examples = _examples(files, task, labelled=False)
        found = predictor.predict(examples)
        lines = (_line(*both, format) for both in zip(examples, found, strict=True))
    with open_output(output) as write:
        for line in lines:
            write(line)


def _examples(files: Sequence[str], task: "TaskConfig", labelled: bool) -> "list[Example]":
    from dragoman.data.config import SourceConfig
    from dragoman.data.labelled.read import check_targets, read_examples

    examples = [each for file in files for each in read_examples(SourceConfig((file,)), task, labelled)]
    return list(check_targets(examples, task)) if labelled else examples


def _line(example: "Example", found: "object", format: str) -> str:
    from dragoman.decode.predict import Prediction

    assert isinstance(found, Prediction), "labels and captions are predicted"
    name = "label" if found.probabilities else "caption"
    if format == "tsv":
        return f"{found.value}\t{found.confidence:.4f}\t{example.texts[0]}"
    record = {name: found.value, "probability": found.confidence, "probabilities": found.probabilities}
    record = {field: value for field, value in record.items() if value != {}}
    return json.dumps({**record, "name": example.texts[0]}, ensure_ascii=False)


def _forecast(
    run: "Run", predictor: object, files: Sequence[str], task: "TaskConfig", format: str, plot: Path | None
) -> Iterator[str]:
    from dragoman.data.vectors.config import SeriesInput
    from dragoman.data.vectors.series import read_series
    from dragoman.decode.predict_vectors import VectorPredictor

    assert isinstance(predictor, VectorPredictor) and isinstance(task.vectors, SeriesInput), "it forecasts"
    if len(files) > 1:
        raise UserError(f"{files[1]}: one series is forecast at a time; leave the others out")
    inputs = task.vectors
    series = read_series(files[0], inputs.columns)
    said = predictor.forecast(series.values, files[0])
    if plot is not None:
        from dragoman.cli.output import write_file
        from dragoman.evaluate.forecasts import after_series, baselines_for
        from dragoman.probe.figures.forecast import draw_forecast

        ending = plot.suffix.removeprefix(".")
        if ending not in ("png", "svg", "pdf"):
            raise UserError(f"--plot {plot}: expected a name that ends in .png, .svg or .pdf")
        prepared = _corpus_of(run)
        baselines = baselines_for(task, None if prepared is None else prepared.arrays["train"])
        others = after_series(baselines, series.values, inputs)
        past = series.values[-inputs.window :]
        drawn = draw_forecast(past, said, series.names, inputs.quantiles, others, [ending])
        write_file(plot, drawn[ending])
        typer.echo(f"  written to {plot}", err=True)
    return _steps(said, series, inputs.quantiles, format)


def _steps(said: "np.ndarray", series: "Series", quantiles: Sequence[float], format: str) -> Iterator[str]:
    """A header and one line for each forecast step."""
    names = [f"{name}:{level:g}" for name in series.names for level in quantiles] or list(series.names)
    times = _times(series.times, len(said))
    if format == "tsv":
        yield "\t".join([*(["time"] if times else ["step"]), *names])
    for step, row in enumerate(said.reshape(len(said), -1).tolist()):
        when = times[step] if times else str(step + 1)
        if format == "tsv":
            yield "\t".join([when, *(f"{value:.6g}" for value in row)])
        else:
            yield json.dumps({"time": when} | dict(zip(names, row, strict=True)), ensure_ascii=False)


def _times(known: Sequence[str], count: int) -> list[str]:
    """The times of the next steps, extrapolated from the last two if they are dates."""
    try:
        before, last = (datetime.fromisoformat(time) for time in known[-2:])
        return [str(last + number * (last - before)) for number in range(1, count + 1)]
    except (ValueError, TypeError):
        return []


def evaluate_vectors(
    run: "Run",
    files: Sequence[str],
    task: "TaskConfig",
    checkpoint: str,
    device: str,
    output: Path | None = None,
) -> None:
    """Write the metrics of labels or captions, or the errors of forecasts next to those of baselines."""
    from dragoman.cli.output import open_output
    from dragoman.runs.opening import open_captioner, open_vector_predictor

    if task.kind == "caption":
        lines = _captions(run, files, task, open_captioner(run, checkpoint, device))
    elif task.kind == "forecast":
        predictor = open_vector_predictor(run, checkpoint, device)
        lines = _errors(run, files, predictor)
    else:
        lines = _metrics(run, files, task, open_vector_predictor(run, checkpoint, device))
    with open_output(output) as write:
        for line in lines:
            write(line)


def _metrics(run: "Run", files: Sequence[str], task: "TaskConfig", predictor: object) -> list[str]:
    from dragoman.decode.predict_vectors import VectorPredictor
    from dragoman.learning.task_validation import task_metrics

    assert isinstance(predictor, VectorPredictor), "it reads images or series"
    if not files:
        raise UserError(f"{run.directory}: give files with labels after the run")
    examples = _examples(files, task, labelled=True)
    found = task_metrics(predictor.predict(examples), examples, task) | predictor.model.mixture()
    return [f"examples\t{len(examples)}", *(f"{name}\t{value:.4f}" for name, value in found.items())]


def _captions(run: "Run", files: Sequence[str], task: "TaskConfig", captioner: "Captioner") -> list[str]:
    from dragoman.evaluate.metrics import bleu, chrf, exact_match

    if not files:
        raise UserError(f"{run.directory}: give files with captions after the run")
    examples = _examples(files, task, labelled=True)
    said = [str(found.value) for found in captioner.predict(examples)]
    texts = [str(example.target) for example in examples]
    metrics = (("BLEU", bleu), ("chrF", chrf), ("exact", exact_match))
    return [f"examples\t{len(examples)}", *(f"{name}\t{of(said, texts):.2f}" for name, of in metrics)]


def _corpus_of(run: "Run", needed: bool = False) -> "PreparedTask | None":
    """The data of a run, to fit the linear baseline; None if they are gone and nobody needs them."""
    from dragoman.data.labelled.prepared import PreparedTask

    if not needed and not (run.directory / "data").is_dir():
        return None
    found = run.corpus()
    assert isinstance(found, PreparedTask), "a task has examples"
    return found


def _errors(run: "Run", files: Sequence[str], predictor: object) -> list[str]:
    from dragoman.data.vectors.config import SeriesInput
    from dragoman.data.vectors.patches import standardised
    from dragoman.data.vectors.series import read_series
    from dragoman.decode.predict_vectors import VectorPredictor
    from dragoman.evaluate.forecasts import baselines_for, forecast_table, in_batches, report
    from dragoman.learning.vectors import windows_of

    assert isinstance(predictor, VectorPredictor), "it forecasts"
    task = predictor.task
    series = task.vectors
    assert isinstance(series, SeriesInput), "forecasts are made from series"
    prepared = _corpus_of(run, needed=not files)
    if files:
        if len(files) > 1:
            raise UserError(f"{files[1]}: one series is forecast at a time; leave the others out")
        values = standardised(read_series(files[0], series.columns).values, series)
    else:
        assert prepared is not None, "it was opened"
        values = prepared.arrays["test"]
    windows = windows_of(values, task)
    if not len(windows):
        where = files[0] if files else f"{run.directory}: its test part"
        raise UserError(
            f"{where}: {len(values):,} steps are fewer than a window and a horizon, "
            f"{series.window} + {series.horizon}"
        )
    baselines = baselines_for(task, None if prepared is None else prepared.arrays["train"])
    predict = in_batches(predictor.model, windows, predictor.device)
    found = report(predict, windows, baselines, run.config.train.batch_tokens)
    told = (
        f"{found.windows:,} windows, {series.horizon} steps each, in units of the training part's deviation"
    )
    return [told, *forecast_table(found)]
