"""`dragoman fill`: fill the gaps of a text."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, OutputOrOut
from dragoman.errors import UserError
from dragoman.text.segment import one_line

_ASK = "Type a text with <mask> where something is missing, and press Enter."


def fill(
    run: Annotated[Path, typer.Argument(help="Run directory of a pre-trained BERT, ELMo, T5 or BART.")],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts with <mask> in them; standard input by default.")
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="File with one text a line.")] = None,
    output: OutputOrOut = None,
    n_best: Annotated[int, typer.Option(min=1, max=100, help="Fillings of each text.")] = 5,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines, one for each text.")] = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Fill the gaps (<mask>) of a text with a pre-trained model.

    Prints the most probable fillings of each text: probability, words in the gaps, whole text. BERT
    and ELMo put one piece into each gap, T5 and BART any number of them.
    """
    import json
    import sys

    from dragoman.cli.output import open_output
    from dragoman.cli.texts import input_lines
    from dragoman.probe.fill import Filler
    from dragoman.runs.directory import Run

    filler = Filler(Run.open(run), checkpoint, device)
    with open_output(output) as write:
        for text in input_lines(texts, input, _ASK):
            try:
                found = filler.fill(text, n_best)
            except UserError as error:
                if texts or input or not sys.stdin.isatty():
                    raise
                typer.echo(str(error), err=True)  # somebody types, and can try again
                continue
            if json_lines:
                fillings = [
                    {"probability": each.probability, "gaps": list(each.gaps), "text": each.text}
                    for each in found
                ]
                write(json.dumps({"source": text, "fillings": fillings}, ensure_ascii=False))
                continue
            for each in found:
                write(f"{each.probability:.4g}\t{one_line(' | '.join(each.gaps))}\t{one_line(each.text)}")
