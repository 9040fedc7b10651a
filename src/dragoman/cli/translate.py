"""`dragoman translate`: text in, translations out, line by line in the same order."""

from pathlib import Path
from typing import Annotated, Any

import typer


def translate(
    run: Annotated[Path, typer.Argument(help="Run directory, or what `export` wrote.")],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Sentences; without any, standard input is read.")
    ] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="File with one sentence a line.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write to.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Translations a sentence; at most --beam.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Length normalisation: log p / length^alpha.")] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines with scores and pieces.")] = False,
    batch_tokens: Annotated[int | None, typer.Option(help="Source tokens a batch.")] = None,
    checkpoint: Annotated[str, typer.Option(help="best, last, or the name of a checkpoint.")] = "best",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate sentences from arguments, a file or standard input."""
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks, input_lines
    from dragoman.cli.translators import open_translator

    lines = input_lines(texts, input)
    translator = open_translator(run, checkpoint, device).translator
    settings = with_changes(translator.search, beam=beam, n_best=n_best, alpha=alpha)
    number = 0
    size = batch_tokens or translator.default_batch_tokens
    with open_output(output) as write:
        for chunk in chunks(lines):
            if settings.n_best == 1 and not json_lines:
                for text in translator.translate(chunk, search=settings, batch_tokens=size):
                    write(one_line(text))
                continue
            found = translator.hypotheses(chunk, search=settings, batch_tokens=size)
            for source, hypotheses in zip(chunk, found, strict=True):
                number += 1
                if json_lines:
                    write(as_json(source, hypotheses))
                    continue
                for hypothesis in hypotheses:
                    write(f"{number}\t{hypothesis.score:.5f}\t{one_line(hypothesis.text)}")


def with_changes(search: Any, **changes: float | None) -> Any:
    """The run's way of searching with what the options say; n-best alone widens the beam to fit."""
    from dataclasses import replace

    given = {name: value for name, value in changes.items() if value is not None}
    if "n_best" in given and "beam" not in given:
        given["beam"] = max(search.beam, given["n_best"])
    if "beam" in given and "n_best" not in given:
        given["n_best"] = min(search.n_best, given["beam"])
    return replace(search, **given)


def one_line(text: str) -> str:
    """A model can write a line feed; the line it belongs to stays one line."""
    return text.replace("\n", " ")


def as_json(source: str, hypotheses: list[Any]) -> str:
    import json

    translations = [
        {
            "text": hypothesis.text,
            "score": hypothesis.score,
            "log_prob": hypothesis.log_prob,
            "finish_reason": hypothesis.finish_reason,
            "pieces": [*hypothesis.pieces, "</s>"] if hypothesis.token_scores else [],
            "token_scores": list(hypothesis.token_scores),
        }
        for hypothesis in hypotheses
    ]
    return json.dumps({"source": source, "translations": translations}, ensure_ascii=False)
