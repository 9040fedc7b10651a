"""`dragoman generate`: a language model goes on from a prompt."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, OutputOrOut
from dragoman.errors import UserError
from dragoman.text.normalize import one_line

_ASK = "Type how the text begins and press Enter; an empty line lets the model begin."


def generate(
    run: Annotated[Path, typer.Argument(help="Run directory of a language model.")],
    prompts: Annotated[
        list[str] | None, typer.Argument(help="What the text begins with; without any, lines of text.")
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="File with one prompt a line.")] = None,
    output: OutputOrOut = None,
    lines: Annotated[int, typer.Option(help="Lines to write, each knowing those before it.")] = 1,
    max_tokens: Annotated[int, typer.Option(help="Most pieces of a line beyond its prompt.")] = 64,
    method: Annotated[str, typer.Option(help="sample, beam, exhaustive or mbr.")] = "sample",
    beam: Annotated[int | None, typer.Option(help="For beam: hypotheses kept at each step.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Continuations of a prompt, or samples.")] = None,
    temperature: Annotated[float | None, typer.Option(help="For sample: below 1 is more careful.")] = None,
    top_p: Annotated[float | None, typer.Option(help="For sample: of the most probable pieces.")] = None,
    seed: Annotated[int | None, typer.Option(help="For sample: another one draws another text.")] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--set", help="Another field, such as search.top_k=40.")
    ] = None,
    prompt_open: Annotated[
        bool, typer.Option("--prompt-open", help="The last word of a prompt may go on.")
    ] = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Continue prompts from arguments or a file with a language model (causal, prefix or unilm)."""
    from dragoman.cli.output import open_output
    from dragoman.cli.searching import with_changes
    from dragoman.cli.texts import input_lines
    from dragoman.runs.directory import Run

    if lines < 1:
        raise UserError(f"--lines: expected at least 1, found {lines}")
    if lines > 1 and (n_best or 1) > 1:
        raise UserError("--lines: several lines go on from the best one; leave out --n-best")
    generator = Run.open(run).generator(checkpoint, device)
    numbers = {"beam": beam, "n_best": n_best, "temperature": temperature, "top_p": top_p, "seed": seed}
    search = with_changes(generator.search, method, fields or [], **numbers)
    asked = bool(prompts or input) or sys.stdin.isatty()
    wanted = input_lines(prompts, input, _ASK, blank=True) if asked else [""]
    with open_output(output) as write:
        for prompt in wanted:
            if lines > 1:
                for line in generator.lines(prompt, lines, max_tokens=max_tokens, search=search):
                    write(one_line(line))
                continue
            found = generator.hypotheses(
                prompt, max_tokens=max_tokens, prompt_open=prompt_open, search=search
            )
            for hypothesis in found:
                write(one_line(hypothesis.text))
