"""The plan of fine-tuning: labels found in the examples, and chosen settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.config import from_dict
from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import VECTORS, TaskConfig
from dragoman.data.labelled.prepared import PreparedTask, prepare_task
from dragoman.data.labelled.read import read_examples
from dragoman.data.scan import StageProgress
from dragoman.errors import UserError
from dragoman.learning.task import choose_for_task, found_in
from dragoman.learning.vector_plan import completed_vectors
from dragoman.models.presets import PRESETS
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import Tokenizer


def completed_task(
    given: dict[str, Any],
    plain: Mapping[str, Any],
    data: DataConfig,
    missing: Sequence[str],
    brings_model: bool,
) -> dict[str, Any]:
    """A configuration with its labels and with missing sections filled in. `plain` includes the settings of
    the command line."""
    task = from_dict(TaskConfig, plain["task"], "task")
    train = plain.get("train")
    asked = train.get("max_updates") if isinstance(train, Mapping) else None
    updates = asked if isinstance(asked, int) and asked > 0 else None
    if task.kind in VECTORS:
        return completed_vectors(given, task, data, missing, updates, brings_model, plain.get("model"))
    examples = [example for source in data.train for example in read_examples(source, task)]
    if not examples:
        raise UserError(
            f"{', '.join(f for s in data.train for f in s.files)}: there is no example to learn from"
        )
    own = given.get("task")
    own = {**_usual(plain.get("model")), **(own if isinstance(own, Mapping) else {})}
    whole = {**given, "task": {**own, **found_in(examples, task)}}
    chosen = choose_for_task(examples, task, updates, plain.get("start") is not None)
    if brings_model:
        chosen["model"] = {}
    return {**whole, **{section: chosen[section] for section in missing}}


def _usual(model: object) -> Mapping[str, str]:
    """How a task uses a model, where its preset says so."""
    name = model.get("preset") if isinstance(model, Mapping) else None
    return PRESETS[name].task if isinstance(name, str) and name in PRESETS else {}


def prepare_for_task(
    config: RunConfig, task: TaskConfig, cache: Path, progress: StageProgress, given: Sequence[Tokenizer]
) -> PreparedTask:
    if len(given) > 1:
        raise UserError(f"start: {config.start} has a tokenizer for each of two languages; a task needs one")
    return prepare_task(
        config.data,
        task,
        config.tokenizer,
        seed=config.seed,
        cache=cache,
        progress=progress,
        given=given,
    )
