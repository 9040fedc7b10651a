"""`dragoman chat`: talk with a model of dialogues, or with a language model."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Checkpoint, Device, RunDirectory, SearchFields

if TYPE_CHECKING:
    from dragoman.decode.search.config import SearchConfig
    from dragoman.runs.directory import Run

_TEMPERATURE, _TOP_P = 0.7, 0.9
_ANEW = "/new"


def chat(
    run: RunDirectory,
    turns: Annotated[
        int | None, typer.Option(min=1, help="Last turns that are read; by default as in training.")
    ] = None,
    method: Annotated[str, typer.Option(help="Search method: sample or beam.")] = "sample",
    temperature: Annotated[
        float | None, typer.Option(help="For sample: below 1 prefers likely pieces.  [default: 0.7]")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="For sample: share of the probability to draw from.  [default: 0.9]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For sample: seed of the random numbers.")] = None,
    fields: SearchFields = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply of a language model.")] = 64,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Talk with a run: a model trained on dialogues, or a language model with a turn a line.

    Type a turn and press Enter; /new forgets what was said. From a pipe, every line is a turn.
    """
    from dragoman.cli.texts import input_lines
    from dragoman.cli.translators import with_changes
    from dragoman.decode.search.config import SampleSearch
    from dragoman.runs.directory import Run

    opened = Run.open(run)
    drawing = {"temperature": temperature, "top_p": top_p, "seed": seed}
    if method == "sample":
        usual = {"temperature": _TEMPERATURE, "top_p": _TOP_P, "seed": 1}
        drawing = {name: usual[name] if value is None else value for name, value in drawing.items()}
    search = with_changes(opened.config.search, method, fields or [], n_best=1, **drawing)
    reply = _replier(opened, turns, max_tokens, checkpoint, device)
    said: list[str] = []
    for turn in input_lines(None, None, f"Type a turn and press Enter; {_ANEW} begins anew."):
        if turn.strip() == _ANEW:
            said.clear()
            continue
        said.append(turn.strip())
        # Every reply is drawn with its own seed, so the same words get another answer later on.
        own = replace(search, seed=search.seed + len(said)) if isinstance(search, SampleSearch) else search
        said.append(reply(said, own))
        sys.stdout.buffer.write(f"{said[-1]}\n".encode())
        sys.stdout.buffer.flush()


def _replier(
    run: "Run", turns: int | None, max_tokens: int, checkpoint: str, device: str
) -> "Callable[[list[str], SearchConfig], str]":
    from dragoman.data.formats.dialogue import context

    most = turns or run.config.data.train[0].turns
    if run.config.purpose == "generate":
        generator = run.generator(checkpoint, device)

        def goes_on(said: list[str], search: "SearchConfig") -> str:
            best = generator.hypotheses("", before=said[-most:], max_tokens=max_tokens, search=search)
            return best[0].text

        return goes_on
    translator = run.translator(checkpoint, device)

    def answers(said: list[str], search: "SearchConfig") -> str:
        return translator.translate([context(said, most)], search=search)[0]

    return answers
