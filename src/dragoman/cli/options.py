"""Arguments and options that several commands have: each is described once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.beside import TermsOption
from dragoman.cli.output import Newlines
from dragoman.errors import UserError

RunDirectory = Annotated[Path, typer.Argument(help="Run directory.")]
RunOrExport = Annotated[Path, typer.Argument(help="Run directory, or a directory written by `export`.")]
Checkpoint = Annotated[str, typer.Option(help="Checkpoint: best, last or a name.")]
Device = Annotated[str, typer.Option(help="Device: auto, cpu, cuda or mps.")]
Precision = Annotated[str, typer.Option(help="Number format: float32, bfloat16 or int8 (CPU).")]
FurtherRuns = Annotated[
    list[Path] | None, typer.Option("--with", help="Add a run to the ensemble (repeatable).")
]

Beam = Annotated[int | None, typer.Option(help="Beam size; 1 is greedy search.")]
Alpha = Annotated[float | None, typer.Option(help="Length penalty: rank by log p / length^alpha.")]
SearchFields = Annotated[
    list[str] | None, typer.Option("--set", help="Set a search field, such as search.top_p=0.9.")
]
Beams = Annotated[str, typer.Option(help="Beam sizes to try.")]
BatchTokens = Annotated[int, typer.Option(help="Source tokens in a batch.")]
BatchTokensIfGiven = Annotated[int | None, typer.Option(help="Source tokens in a batch.")]

BleuTokenizer = Annotated[str, typer.Option(help="BLEU's tokenizer: 13a, intl, zh, char, none.")]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Ignore case when scoring.")]

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write to.")]
OutputOrOut = Annotated[Path | None, typer.Option("--output", "--out", "-o", help="File to write to.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; everything is still in log.txt.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan with all reasons, and stop.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the reasons for every choice.")]
FirstWord = Annotated[int, typer.Option(min=0, max=1, help="Number of the first word in --gold.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Ray cluster: HOST:PORT, or local."),
]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)]


ToLanguage = Annotated[
    str | None, typer.Option("--to", metavar="LANGUAGE", help="Target language, in a run of several.")
]
FromLanguage = Annotated[
    str | None, typer.Option("--from", metavar="LANGUAGE", help="Source language, in a run of several.")
]
ZeroShot = Annotated[
    bool,
    typer.Option("--zero-shot", help="Allow directions without training pairs."),
]


TermsHow = Annotated[
    TermsOption | None,
    typer.Option(metavar="HOW", help="Terms: annotate, constrain or placeholder."),
]
MemoryLeast = Annotated[float | None, typer.Option(min=0, max=100, help="Least similarity, percent (60).")]
NewlinesOption = Annotated[
    Newlines,
    typer.Option(metavar="HOW", help="Newlines: auto, space, escape or keep.", show_default=False),
]
UseContext = Annotated[
    bool,
    typer.Option(
        "--context/--no-context", help="Read the sentences before, if trained so.", show_default=False
    ),
]


class ScoreName(StrEnum):
    bleu = "bleu"
    chrf = "chrf"
    rouge = "rouge"
    brackets = "brackets"


def parse_beams(text: str) -> list[int]:
    try:
        beams = [int(part) for part in text.split(",")]
    except ValueError:
        beams = []
    if not beams or min(beams) < 1:
        raise UserError(f"--beams: expected whole numbers from 1 on, as in 1,2,4,8,16, found '{text}'")
    return beams


def on_device(device: str, overrides: list[str]) -> list[str]:
    """Fields of a training, with the device of --device unless one is among them."""
    if device == "auto" or any(field.startswith("train.device=") for field in overrides):
        return overrides
    return [f"train.device={device}", *overrides]
