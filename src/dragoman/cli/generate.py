"""`dragoman generate`: continue a prompt with a language model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, OutputOrOut
from dragoman.errors import UserError
from dragoman.text.segment import one_line

_ASK = "Type how the text begins and press Enter; an empty line lets the model begin."


def generate(
    run: Annotated[Path, typer.Argument(help="Run directory of a language model.")],
    prompts: Annotated[
        list[str] | None, typer.Argument(help="How the text begins. On a terminal without any: a prompt.")
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="File with one prompt a line.")] = None,
    before: Annotated[
        Path | None,
        typer.Option(help="File with the lines before every prompt, such as examples to follow."),
    ] = None,
    output: OutputOrOut = None,
    lines: Annotated[int, typer.Option(help="Lines to write; each continues those before it.")] = 1,
    max_tokens: Annotated[int, typer.Option(help="Longest continuation of a line, in pieces.")] = 64,
    method: Annotated[str, typer.Option(help="Search method: sample, beam, exhaustive or mbr.")] = "sample",
    beam: Annotated[int | None, typer.Option(help="Beam size, for beam.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Continuations of each prompt.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="For sample: below 1 prefers likely pieces.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="For sample: draw from the most likely pieces with this total probability."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For sample: seed of the random numbers.")] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--set", help="Set another search field, such as search.top_k=40.")
    ] = None,
    prompt_open: Annotated[
        bool, typer.Option("--prompt-open", help="The last word of a prompt may be incomplete.")
    ] = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Continue a text with a language model (GPT, UniLM).

    A prompt may have several lines; the last of them is continued.
    """
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import input_lines
    from dragoman.cli.translators import with_changes
    from dragoman.data.formats import read_lines
    from dragoman.decode.translator.generate import Prompt
    from dragoman.runs.directory import Run

    if lines < 1:
        raise UserError(f"--lines: expected at least 1, found {lines}")
    if lines > 1 and (n_best or 1) > 1:
        raise UserError("--lines: several lines go on from the best one; leave out --n-best")
    generator = Run.open(run).generator(checkpoint, device)
    numbers = {"beam": beam, "n_best": n_best, "temperature": temperature, "top_p": top_p, "seed": seed}
    search = with_changes(generator.search, method, fields or [], **numbers)
    first = () if before is None else tuple(read_lines(before))
    asked = bool(prompts or input) or sys.stdin.isatty()
    wanted = input_lines(prompts, input, _ASK, blank=True) if asked else [""]
    with open_output(output) as write:
        for text in wanted:
            prompt = Prompt.of(text, prompt_open, first)
            if lines > 1:
                for line in generator.lines(prompt, lines, max_tokens=max_tokens, search=search):
                    write(one_line(line))
                continue
            for hypothesis in generator.write([prompt], max_tokens=max_tokens, search=search)[0]:
                write(one_line(hypothesis.text))
