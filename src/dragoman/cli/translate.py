"""`dragoman translate`: text in, translations out, line by line in the same order."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import UserError


def translate(
    run: Annotated[Path, typer.Argument(help="Run directory, or what `export` wrote.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, or a document; without any, standard input is read."),
    ] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="File with one sentence a line.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="File to write to.")] = None,
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
    batch_tokens: Annotated[int | None, typer.Option(help="Source tokens a batch.")] = None,
    checkpoint: Annotated[str, typer.Option(help="best, last, or the name of a checkpoint.")] = "best",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Translate sentences from arguments, a file or standard input, or a whole document in place."""
    from dragoman.cli.constraints import Wishes
    from dragoman.cli.documents import document_among, translate_file
    from dragoman.cli.output import open_output
    from dragoman.cli.searching import with_changes
    from dragoman.cli.texts import chunks, input_lines
    from dragoman.cli.translators import open_translator
    from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS

    if record and not json_lines:
        raise UserError("--record: only --json has a place for it; give both")
    document = document_among(texts)
    lines = input_lines(texts, input)
    wishes = Wishes(prefix, glossary, forbid)
    opened = open_translator(run, also or [], checkpoint, device)
    translator, size = opened.translator, batch_tokens or opened.translator.default_batch_tokens
    settings = with_changes(
        translator.search, method, fields or [], beam=beam, n_best=n_best, alpha=alpha, record=record or None
    )
    kinds = (ALL_KINDS if protect_numbers else DEFAULT_KINDS) if protect else ()
    if document is not None:
        options = {"--json": json_lines, "--align": align, "--stream": stream, "--prefix": prefix}
        refused = [name for name, given in options.items() if given]
        best = _translation(opened, settings, kinds or DEFAULT_KINDS, wishes, size)
        translate_file(document, output, opened.languages, best, refused)
        return
    if opened.exported:
        steered = {"--align": align, "--stream": stream, "--prefix": prefix, "--glossary": glossary}
        _refuse_with_export([name for name, given in {**steered, "--forbid": forbid}.items() if given])
        _translate_export(translator, lines, settings, kinds, size, json_lines, output)
        return
    if stream:
        whole_only = {
            **{"--json": json_lines, "--align": align, "--output": output, "--prefix": prefix},
            **{"--glossary": glossary, "--forbid": forbid, "--n-best": settings.n_best > 1},
        }
        _refuse_with_stream([name for name, given in whole_only.items() if given])
        _stream(translator, lines, settings, kinds)
        return
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
                protect=kinds,
                align=align,
                batch_tokens=size,
            )
            for source, hypotheses in zip(chunk, found, strict=True):
                number += 1
                unproven += hypotheses[0].exact is False
                if json_lines:
                    write(as_json(source, hypotheses, wishes.applied(source, hypotheses[0].text)))
                elif settings.n_best == 1:
                    write(with_alignment(hypotheses[0]))
                else:
                    for hypothesis in hypotheses:
                        write(f"{number}\t{hypothesis.score:.5f}\t{with_alignment(hypothesis)}")
        wishes.finish()
    if unproven:
        _warn_of_unproven(unproven, number, settings.max_nodes)


def _warn_of_unproven(unproven: int, number: int, max_nodes: int) -> None:
    typer.echo(
        f"warning: {unproven} of {number} translations may not be the optimum: it was not proven within "
        f"{max_nodes:,} prefixes (search.max_nodes)",
        err=True,
    )


def _translation(
    opened: Any, search: Any, kinds: Collection[Any], wishes: Any, batch_tokens: int
) -> Callable[[list[str]], list[str]]:
    """A function from texts to their best translations, protected."""
    from dragoman.cli.documents import with_spans_restored

    translator = opened.translator
    if opened.exported:
        _refuse_with_export(["--glossary, --forbid"] if wishes.glossary or wishes.forbidden else [])

        def alone(texts: list[str]) -> list[str]:
            return translator.translate(texts, search=search, batch_tokens=batch_tokens)

        return with_spans_restored(alone, kinds)

    def steered(texts: list[str]) -> list[str]:
        found = translator.hypotheses(
            texts,
            search=search,
            glossary=wishes.glossary,
            forbidden=wishes.forbidden,
            protect=kinds,
            batch_tokens=batch_tokens,
        )
        return [best.text for best, *_ in found]

    return steered


def _refuse_with_export(options: list[str]) -> None:
    if options:
        raise UserError(f"{', '.join(options)}: an export cannot do this; translate with the run itself")


def _translate_export(
    translator: Any,
    lines: Iterable[str],
    search: Any,
    kinds: Collection[Any],
    batch_tokens: int,
    json_lines: bool,
    output: Path | None,
) -> None:
    """The best texts alone are quicker to have than hypotheses with their scores."""
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks
    from dragoman.text.spans import find

    number = unprotected = 0
    with open_output(output) as write:
        for chunk in chunks(lines):
            unprotected += sum(bool(find(line, kinds)) for line in chunk)
            if search.n_best == 1 and not json_lines:
                for text in translator.translate(chunk, search=search, batch_tokens=batch_tokens):
                    write(one_line(text))
                continue
            found = translator.hypotheses(chunk, search=search, batch_tokens=batch_tokens)
            for source, hypotheses in zip(chunk, found, strict=True):
                number += 1
                if json_lines:
                    write(as_json(source, hypotheses))
                    continue
                for hypothesis in hypotheses:
                    write(f"{number}\t{hypothesis.score:.5f}\t{one_line(hypothesis.text)}")
    if unprotected:
        typer.echo(
            "warning: URLs, addresses, placeholders or markup are not protected by an export (texts with "
            f"some: {unprotected}); look at these, or translate with the run itself",
            err=True,
        )


def _refuse_with_stream(options: list[str]) -> None:
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


def one_line(text: str) -> str:
    """A model can write a line feed; the line it belongs to stays one line."""
    return text.replace("\n", " ")


def with_alignment(hypothesis: Any) -> str:
    """The text as one line, and its alignment where it has one."""
    from dragoman.decode.align import pharaoh

    text = one_line(hypothesis.text)
    return text if hypothesis.alignment is None else f"{text}\t{pharaoh(hypothesis.alignment)}"


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
            **({} if hypothesis.alignment is None else {"alignment": hypothesis.alignment}),
            **({} if hypothesis.protection is None else {"protection": hypothesis.protection}),
        }
        for hypothesis in hypotheses
    ]
    entry: dict[str, Any] = {"source": source, "translations": translations}
    if glossary is not None:
        entry["glossary"] = glossary
    if hypotheses[0].trace is not None:
        entry["trace"] = hypotheses[0].trace.as_dict()["steps"]
    return json.dumps(entry, ensure_ascii=False)
