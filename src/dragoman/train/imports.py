"""A published model as a run: what translates, scores, aligns and exports a run does so with it."""

from pathlib import Path

from dragoman import checkpoint
from dragoman.checkpoint.huggingface import read_model
from dragoman.checkpoint.model import CHECKPOINTS, describe, model_tensors, save_tokenizers
from dragoman.config import to_dict
from dragoman.train.config import resolve
from dragoman.train.run import Run
from dragoman.train.state import Progress

_FINGERPRINT = "imported"


def import_run(
    directory: Path, out: Path, languages: tuple[str, str] = ("src", "tgt"), prefix: str = ""
) -> Run:
    """The run of a Hugging Face directory. `prefix` is put before every source text: T5's tasks want it."""
    imported = read_model(directory, prefix)
    config = resolve(
        {
            "data": {
                "train": [],
                "imported": str(directory),
                "src_lang": languages[0],
                "tgt_lang": languages[1],
            },
            "model": {"kind": imported.kind, **to_dict(imported.config)},
            "train": {"max_epochs": 1},
            "search": imported.search,
        }
    )
    model, src, tgt = imported.model, imported.src_tokenizer, imported.tgt_tokenizer
    progress = Progress()
    state = {
        "progress": to_dict(progress),
        "model": describe(imported.kind, imported.config, model.vocab, src, tgt),
        "weights": "model",
        "fingerprint": _FINGERPRINT,
    }

    def fill(temporary: Path) -> None:
        save_tokenizers(temporary, src, tgt)
        name = checkpoint.name_of(progress.update)
        checkpoint.save(temporary / CHECKPOINTS, name, {"model": model_tensors(model)}, state)

    return Run.create_with(out, config, _FINGERPRINT, fill)
