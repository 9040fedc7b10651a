"""`dragoman translate`: text in, translations out, line by line in the same order."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import UserError


def translate(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Sentences; without any, standard input is read.")
    ] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="File with one sentence a line.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write to.")] = None,
    also: Annotated[
        list[Path] | None, typer.Option("--with", help="A further run to ask; may be repeated.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="beam, exhaustive, sample or mbr.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Translations a sentence, or samples.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Length normalisation: log p / length^alpha.")] = None,
    prefix: Annotated[
        str | None, typer.Option(help="What translations begin with: a text, or @FILE with one a line.")
    ] = None,
    prefix_open: Annotated[
        bool, typer.Option("--prefix-open", help="The last word of a prefix may go on.")
    ] = False,
    glossary: Annotated[
        Path | None, typer.Option(help="TSV or CSV: source term, target term (variants by |).")
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="A phrase that may not come, or @FILE; may be repeated.")
    ] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--set", help="Another field, such as search.top_p=0.9.")
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="JSON lines with scores and pieces.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="With --json: what the beam looked at, and why it left it.")
    ] = False,
    batch_tokens: Annotated[int, typer.Option(help="Source tokens a batch.")] = 2048,
    checkpoint: Annotated[str, typer.Option(help="best, last, or the name of a checkpoint.")] = "best",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate sentences from arguments, a file or standard input."""
    from dragoman.cli.constraints import Wishes
    from dragoman.cli.output import open_output
    from dragoman.cli.searching import with_changes
    from dragoman.cli.texts import chunks, input_lines
    from dragoman.train.run import Run, ensemble

    if record and not json_lines:
        raise UserError("--record: only --json has a place for it; give both")
    lines = input_lines(texts, input)
    wishes = Wishes(prefix, glossary, forbid)
    translator = ensemble([Run.open(path) for path in (run, *(also or []))], checkpoint, device)
    settings = with_changes(
        translator.search, method, fields or [], beam=beam, n_best=n_best, alpha=alpha, record=record or None
    )
    number = unproven = 0
    with open_output(output) as write:
        for chunk in chunks(lines):
            found = translator.hypotheses(
                chunk,
                search=settings,
                prefixes=wishes.prefixes(len(chunk)),
                prefix_open=prefix_open,
                glossary=wishes.glossary,
                forbidden=wishes.forbidden,
                batch_tokens=batch_tokens,
            )
            for source, hypotheses in zip(chunk, found, strict=True):
                number += 1
                unproven += hypotheses[0].exact is False
                if json_lines:
                    write(as_json(source, hypotheses, wishes.applied(source, hypotheses[0].text)))
                elif settings.n_best == 1:
                    write(one_line(hypotheses[0].text))
                else:
                    for hypothesis in hypotheses:
                        write(f"{number}\t{hypothesis.score:.5f}\t{one_line(hypothesis.text)}")
        wishes.finish()
    if unproven:
        typer.echo(
            f"warning: {unproven} of {number} translations may not be the optimum: it was not proven within "
            f"{settings.max_nodes:,} prefixes (search.max_nodes)",
            err=True,
        )


def one_line(text: str) -> str:
    """A model can write a line feed; the line it belongs to stays one line."""
    return text.replace("\n", " ")


def as_json(source: str, hypotheses: list[Any], glossary: list[dict[str, Any]] | None = None) -> str:
    """One line; `glossary` are the terms of the source, with what the best translation calls them."""
    import json

    translations = [
        {
            "text": hypothesis.text,
            "score": hypothesis.score,
            "log_prob": hypothesis.log_prob,
            "finish_reason": hypothesis.finish_reason,
            "pieces": [*hypothesis.pieces, "</s>"] if hypothesis.token_scores else [],
            "token_scores": list(hypothesis.token_scores),
            **({} if hypothesis.exact is None else {"exact": hypothesis.exact}),
        }
        for hypothesis in hypotheses
    ]
    entry: dict[str, Any] = {"source": source, "translations": translations}
    if glossary is not None:
        entry["glossary"] = glossary
    if hypotheses[0].trace is not None:
        entry["trace"] = hypotheses[0].trace.as_dict()["steps"]
    return json.dumps(entry, ensure_ascii=False)
