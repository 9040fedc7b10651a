"""A published model as a run: what translates, scores, aligns and exports a run does so with it."""

from pathlib import Path
from typing import Any

from dragoman import checkpoint
from dragoman.checkpoint.huggingface import Imported, read_model
from dragoman.checkpoint.model import CHECKPOINTS, model_description, model_tensors, save_tokenizers
from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training.progress import TrainingProgress

NEW = "new"
"""Key in the checkpoint's state: modules without weights in the directory."""
VERIFIED = "verified"
"""Key in the checkpoint's state: whether the files were verified against a manifest of hashes."""
_FINGERPRINT = "imported"


def import_run(
    directory: Path, out: Path, languages: tuple[str, str] = ("src", "tgt"), prefix: str = ""
) -> Run:
    """The run of a Hugging Face directory. `prefix` is put before every source text: T5's tasks want it."""
    imported = read_model(directory, prefix, languages)
    if prefix and imported.objective != "translate":
        raise UserError("--prefix: only a model that reads a source has one before it; leave it out")
    config = resolve_config(
        {
            "data": {
                "train": [],
                "imported": str(directory),
                "src_lang": languages[0],
                "tgt_lang": languages[1],
            },
            "objective": _objective(imported),
            "model": {"kind": imported.kind, **to_dict(imported.config)},
            "train": {"max_epochs": 1},
            "search": imported.search,
        }
    )
    model, src, tgt = imported.model, imported.src_tokenizer, imported.tgt_tokenizer
    progress = TrainingProgress()
    state = {
        "progress": to_dict(progress),
        "model": model_description(imported.kind, imported.config, model.vocab, src, tgt),
        "weights": "model",
        "fingerprint": _FINGERPRINT,
        NEW: list(imported.new),
        VERIFIED: imported.verified,
    }

    def fill(temporary: Path) -> None:
        save_tokenizers(temporary, src, tgt)
        name = checkpoint.checkpoint_name(progress.update)
        checkpoint.save(temporary / CHECKPOINTS, name, {"model": model_tensors(model)}, state)

    return Run.create_with(out, config, _FINGERPRINT, fill)


def _objective(imported: Imported) -> dict[str, Any]:
    """The objective of the model; its block length is the model's number of positions."""
    abilities = imported.config.abilities
    if abilities.block_marks is None:
        return {}
    return {"name": imported.objective, "block": max(2, abilities.max_length - abilities.block_marks)}
