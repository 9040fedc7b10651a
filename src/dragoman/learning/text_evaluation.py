"""Evaluation of a language model on other text."""

import dataclasses
from collections.abc import Sequence

import torch

from dragoman.checkpoint.model import load_network
from dragoman.data.corpus import prepare
from dragoman.data.formats import group_files
from dragoman.errors import UserError
from dragoman.files import scratch_directory
from dragoman.learning import learning_of
from dragoman.runs.directory import Run
from dragoman.runs.opening import pick_device


def text_metrics(
    run: Run, files: Sequence[str], which: str = "best", device: str = "auto"
) -> dict[str, float]:
    """The metrics of validation, in float32. With a carried state, the text is read as one stream."""
    learning = learning_of(run.config)
    if learning.learns_from != "text":
        raise UserError(
            f"{run.directory}: its objective.name is {run.config.objective.name}, not one of text"
        )
    sources = tuple(group_files(list(files), "text"))
    data = dataclasses.replace(run.config.data, train=sources, valid=sources, imported=None)
    config = dataclasses.replace(run.config, data=data)
    chosen = pick_device(device)
    model = load_network(run.directory, chosen, which).model
    with scratch_directory() as cache:
        tokenizers = run.distinct_tokenizers()
        prepared = prepare(data, config.tokenizer, seed=config.seed, cache=cache, given=tokenizers)
        validator = learning.validator(config, prepared, chosen, tracks=1)
        return validator.run(model, torch.autocast(chosen.type, enabled=False)).metrics
