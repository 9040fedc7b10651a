"""`dragoman translate`: text in, translations out, line by line in the same order."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer


def translate(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
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
    protect: Annotated[
        bool, typer.Option(help="URLs, e-mail addresses, placeholders and markup come out as they went in.")
    ] = True,
    protect_numbers: Annotated[
        bool, typer.Option("--protect-numbers", help="And numbers with separators, signs or many digits.")
    ] = False,
    align: Annotated[bool, typer.Option("--align", help="Word alignment after each: TAB 0-0 1-2.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print each translation while it is being found.")
    ] = False,
    batch_tokens: Annotated[int, typer.Option(help="Source tokens a batch.")] = 2048,
    checkpoint: Annotated[str, typer.Option(help="best, last, or the name of a checkpoint.")] = "best",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate sentences from arguments, a file or standard input."""
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks, input_lines
    from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS
    from dragoman.train.run import Run

    kinds = (ALL_KINDS if protect_numbers else DEFAULT_KINDS) if protect else ()
    lines = input_lines(texts, input)
    translator = Run.open(run).translator(checkpoint, device)
    settings = with_changes(translator.search, beam=beam, n_best=n_best, alpha=alpha)
    if stream:
        whole_only = {
            "--json": json_lines,
            "--align": align,
            "--output": output,
            "--n-best": settings.n_best > 1,
        }
        _refuse_with_stream([name for name, given in whole_only.items() if given])
        _stream(translator, lines, settings, kinds)
        return
    number = 0
    with open_output(output) as write:
        for chunk in chunks(lines):
            found = translator.hypotheses(
                chunk, search=settings, batch_tokens=batch_tokens, protect=kinds, align=align
            )
            for source, hypotheses in zip(chunk, found, strict=True):
                number += 1
                if json_lines:
                    write(as_json(source, hypotheses))
                elif settings.n_best == 1:
                    write(with_alignment(hypotheses[0]))
                else:
                    for hypothesis in hypotheses:
                        write(f"{number}\t{hypothesis.score:.5f}\t{with_alignment(hypothesis)}")


def _refuse_with_stream(options: list[str]) -> None:
    from dragoman.errors import UserError

    if options:
        raise UserError(f"--stream: goes to standard output as plain text; leave out {', '.join(options)}")


def _stream(translator: Any, lines: Iterable[str], search: Any, kinds: Collection[Any]) -> None:
    """A text with spans to protect is printed when all of it is there: only then is their place known."""
    import sys
    from itertools import chain

    from dragoman.text.spans import find

    out = sys.stdout.buffer
    for line in lines:
        if find(line, kinds):
            parts = iter(translator.translate([line], search=search, protect=kinds))
        else:
            parts = (part.text for part in translator.stream(line, search=search))
        for text in chain(map(one_line, parts), "\n"):
            out.write(text.encode("utf-8"))
            out.flush()


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


def with_alignment(hypothesis: Any) -> str:
    """The text as one line, and its alignment where it has one."""
    from dragoman.decode.align import pharaoh

    text = one_line(hypothesis.text)
    return text if hypothesis.alignment is None else f"{text}\t{pharaoh(hypothesis.alignment)}"


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
            **({} if hypothesis.alignment is None else {"alignment": hypothesis.alignment}),
            **({} if hypothesis.protection is None else {"protection": hypothesis.protection}),
        }
        for hypothesis in hypotheses
    ]
    return json.dumps({"source": source, "translations": translations}, ensure_ascii=False)
