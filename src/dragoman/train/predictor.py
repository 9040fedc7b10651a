"""From a run that is fine-tuned for a task to what answers with it."""

from pathlib import Path
from shlex import quote

from dragoman.checkpoint.model import load_network
from dragoman.decode.predict import Predictor
from dragoman.errors import UserError
from dragoman.models.heads import TaskNetwork
from dragoman.train.device import pick_device
from dragoman.train.run import Run


def open_predictor(run: Run | str | Path, which: str = "best", device: str = "auto") -> Predictor:
    """The network of a run with its tokenizer and its task. Needs no training data."""
    opened = run if isinstance(run, Run) else Run.open(run)
    if opened.config.task is None:
        raise UserError(
            f"{opened.directory}: this run is not fine-tuned for a task; do that with  dragoman finetune "
            f"{quote(str(opened.directory))} FILES --task KIND"
        )
    loaded = load_network(opened.directory, chosen := pick_device(device), which)
    assert isinstance(loaded.model, TaskNetwork), "a run with a task has a head"
    return Predictor(loaded.model.requires_grad_(False), loaded.tgt_tokenizer, opened.config.task, chosen)
