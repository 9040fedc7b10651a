"""Which tokenizer a command is to take."""

from enum import StrEnum
from pathlib import Path

from dragoman.errors import UserError


class TokenizerSide(StrEnum):
    src = "src"
    tgt = "tgt"


def tokenizer_file(run: Path, side: TokenizerSide) -> Path:
    """The file of the tokenizer of one side of a run; a file is taken as it is."""
    if not run.is_dir():
        return run
    one_for_both, own = run / "tokenizer.json", run / f"tokenizer.{side}.json"
    named = {TokenizerSide.src: "source_", TokenizerSide.tgt: "target_"}[side]
    exported = [run / f"{name}dragoman_tokenizer.json" for name in ("", named)]
    for path in (*exported, one_for_both, own):
        if path.exists():
            return path
    raise UserError(f"{run}: not a run, for it holds neither {one_for_both.name} nor {own.name}")
