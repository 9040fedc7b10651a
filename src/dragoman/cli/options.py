"""Arguments and options that several commands have: each is described once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import UserError

RunDirectory = Annotated[Path, typer.Argument(help="Run directory.")]
RunOrExport = Annotated[Path, typer.Argument(help="Run directory, or what `export` wrote.")]
Checkpoint = Annotated[str, typer.Option(help="best, last, or the name of a checkpoint.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Precision = Annotated[str, typer.Option(help="float32, bfloat16 or int8 (CPU).")]
FurtherRuns = Annotated[
    list[Path] | None, typer.Option("--with", help="A further run to ask; may be repeated.")
]

Beam = Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")]
Alpha = Annotated[float | None, typer.Option(help="Length normalisation: log p / length^alpha.")]
SearchFields = Annotated[
    list[str] | None, typer.Option("--set", help="Another field, such as search.top_p=0.9.")
]
Beams = Annotated[str, typer.Option(help="Beams to try.")]
BatchTokens = Annotated[int, typer.Option(help="Source tokens a batch.")]
BatchTokensIfGiven = Annotated[int | None, typer.Option(help="Source tokens a batch.")]

BleuTokenizer = Annotated[str, typer.Option(help="BLEU's tokenizer: 13a, intl, zh, char, none.")]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Score without regard to case.")]

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write to.")]
OutputOrOut = Annotated[Path | None, typer.Option("--output", "--out", "-o", help="File to write to.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; log.txt has it all.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")]
FirstWord = Annotated[int, typer.Option(min=0, max=1, help="Number of the first word in --gold.")]
Port = Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)]


class Score(StrEnum):
    bleu = "bleu"
    chrf = "chrf"


def parse_beams(text: str) -> list[int]:
    try:
        beams = [int(part) for part in text.split(",")]
    except ValueError:
        beams = []
    if not beams or min(beams) < 1:
        raise UserError(f"--beams: expected whole numbers from 1 on, as in 1,2,4,8,16, found '{text}'")
    return beams
