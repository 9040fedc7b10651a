import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers

from checkpoint.huggingface.published import MODELS, save
from dragoman.checkpoint.model import LoadedModel, load_model
from dragoman.training.import_published import import_run


@dataclass(frozen=True)
class Pair:
    """A published model, the run it became, and their numbers of our pieces."""

    name: str
    directory: Path
    run: Path
    theirs: transformers.PreTrainedModel
    ours: LoadedModel
    order: torch.Tensor


def numbers_in(out: Path, size: int) -> tuple[torch.Tensor, int]:
    """Of an export: its number for each piece of ours, and what its decoder begins with."""
    fields = json.loads((out / "config.json").read_text("utf-8"))
    start = fields["dragoman"].get("start", fields["decoder_start_token_id"])
    first = [fields["pad_token_id"], start, fields["eos_token_id"]]
    order = first + [number for number in range(size) if number not in first]
    return torch.tensor(order), fields["decoder_start_token_id"]


@pytest.fixture(scope="session", autouse=True)
def quiet() -> Iterator[None]:
    transformers.utils.logging.disable_progress_bar()
    level = logging.getLogger("transformers").level
    logging.getLogger("transformers").setLevel(logging.ERROR)
    yield
    logging.getLogger("transformers").setLevel(level)


@pytest.fixture(scope="session", params=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("published")
    theirs = save(request.param, root / "in")
    run = import_run(root / "in", root / "run").directory
    config = theirs.config
    first = [config.pad_token_id, config.decoder_start_token_id, config.eos_token_id]
    order = first + [number for number in range(config.vocab_size) if number not in first]
    return Pair(request.param, root / "in", run, theirs, load_model(run), torch.tensor(order))
