"""`dragoman corpus`: what is in parallel files, and what training would leave out of them."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import Cluster

if TYPE_CHECKING:
    from dragoman.autopilot.profile import Profile
    from dragoman.data.config import SourceConfig
    from dragoman.data.report import CorpusReport
    from dragoman.text.tokenizer import Tokenizer

_EXPLAIN = {
    "empty": "one side has no text",
    "copy": "untranslated: both sides are the same",
    "duplicate": "the same pair occurred before",
    "too_long": "more than {max_length} tokens on a side",
    "ratio": "one side has over {max_ratio:g} times the tokens of the other",
}


class Reason(StrEnum):
    empty = "empty"
    copy = "copy"
    duplicate = "duplicate"
    too_long = "too_long"
    ratio = "ratio"
    language = "language"
    swapped = "swapped"
    script = "script"
    misaligned = "misaligned"
    digits = "digits"
    address = "address"
    length = "length"
    near_duplicate = "near_duplicate"
    overlap = "overlap"


def corpus(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="Source and target file (any number of such pairs), tables, memories."
        ),
    ],
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES", help="Test files, to look for in the corpus: test.en test.de, or a table."
        ),
    ] = None,
    lines: Annotated[
        Reason | None,
        typer.Option(
            metavar="FAULT",
            help="Print the pairs with this fault, with file and line: empty, copy, duplicate, too_long, "
            "ratio, a kind of suspect, or overlap (those in the test set).",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
    format: Annotated[
        str, typer.Option(help="auto, plain, tsv, csv, jsonl, parquet, tmx, xliff, po, mo or zip.")
    ] = "auto",
    src: Annotated[
        str | None, typer.Option(help="Source column, by name or number; its language in a memory.")
    ] = None,
    tgt: Annotated[str | None, typer.Option(help="Target column, or language.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="SRC,TGT", help="Both columns at once: en,de.")
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Name every file that cannot be read, and report the others.")
    ] = False,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Run or tokenizer file that counts the tokens.  [default: learnt here]"),
    ] = None,
    max_length: Annotated[int, typer.Option(help="Most tokens a side.")] = 256,
    max_ratio: Annotated[float, typer.Option(help="Highest ratio of the two sides, in tokens.")] = 9.0,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Keep duplicates, in the count of what training drops.")
    ] = False,
    drop_copies: Annotated[
        bool, typer.Option("--drop-copies", help="Drop untranslated pairs, in that count.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Drop untranslated and suspicious pairs, in that count.")
    ] = False,
    suspects: Annotated[
        bool,
        typer.Option(
            "--suspects/--no-suspects", help="Look for suspicious pairs: not translations of each other."
        ),
    ] = True,
    cluster: Cluster = None,
) -> None:
    """Show what is in a parallel corpus: lengths, faults, overlap with a test set, what training drops."""
    from dataclasses import replace

    from dragoman.autopilot.profiler import Profiler
    from dragoman.cli.clustered import encoding_on
    from dragoman.cli.corpus_tables import print_report
    from dragoman.data.config import CleanConfig
    from dragoman.data.formats import Pair, describe_columns, group_files
    from dragoman.data.formats.columns import parse_columns
    from dragoman.data.languages import languages_of
    from dragoman.data.report import analyse
    from dragoman.errors import UserError

    if columns is not None:
        if src is not None or tgt is not None:
            raise UserError("--columns: names both columns; leave --src and --tgt out")
        src, tgt = parse_columns(columns)
    if lines is Reason.overlap and not test:
        raise UserError("--lines overlap: name the test set with --test")

    def corpora(names: list[str]) -> "tuple[SourceConfig, ...]":
        return tuple(replace(source, src=src, tgt=tgt) for source in group_files(names, format))

    sources = corpora(files)
    unread = 0
    if keep_going:
        sources, unread = _readable(sources)
    clean = CleanConfig(
        max_length, max_ratio, not keep_duplicates, drop_copies or strict, ("all",) if strict else ()
    )
    languages = languages_of(sources[0]) or ("src", "tgt")

    shown = 0

    def show_line(origin: str, pair: Pair) -> None:
        nonlocal shown
        shown += 1
        typer.echo(_line_as_json(origin, pair.src, pair.tgt) if json else _line(origin, pair.src, pair.tgt))

    profiler = Profiler()
    with encoding_on(cluster), progress_of_stages() as progress:
        report = analyse(
            sources,
            test=corpora(test) if test else (),
            src_lang=languages[0],
            tgt_lang=languages[1],
            clean=clean,
            tokenizers=_load_tokenizers(tokenizer) if tokenizer else None,
            lines=lines,
            show_line=show_line if lines else None,
            progress=progress,
            watch=profiler.add,
            suspects=suspects,
        )
    if lines:
        found = f"{shown:,} pair{'s' * (shown != 1)}" if shown else "no pair"
        typer.echo(f"{found} with the fault {lines.value}", err=True)
    elif json:
        typer.echo(_as_json(report, profiler.profile(report.found["duplicate"])))
    else:
        learnt = "a vocabulary learnt from the corpus itself; --tokenizer RUN takes that of a run"
        counted_by = f"the vocabulary of {tokenizer}" if tokenizer else learnt
        profile = profiler.profile(report.found["duplicate"])
        told = [describe_columns(source, *languages) for source in sources]
        read_columns = [each for each in dict.fromkeys(told) if each is not None]
        print_report(report, profile, _explanations(max_length, max_ratio), counted_by, read_columns)
    if unread:
        raise typer.Exit(1)


def _readable(sources: "tuple[SourceConfig, ...]") -> "tuple[tuple[SourceConfig, ...], int]":
    """The corpora that can be read to their end, and how many cannot; these are named."""
    from collections import deque

    from dragoman.data.formats import read_pairs
    from dragoman.data.languages import languages_of
    from dragoman.errors import UserError

    good = []
    for source in sources:
        try:
            deque(read_pairs(source, *(languages_of(source) or ("src", "tgt"))), maxlen=0)
            good.append(source)
        except (UserError, OSError) as error:
            typer.echo(f"dragoman: left out: {error}", err=True)
    if not good:
        raise UserError(f"none of the {len(sources)} corpora can be read")
    return tuple(good), len(sources) - len(good)


def _load_tokenizers(path: Path) -> "tuple[Tokenizer, Tokenizer]":
    from dragoman.cli.tokenizers import TokenizerSide, tokenizer_file
    from dragoman.text.tokenizer import Tokenizer

    src, tgt = (Tokenizer.load(tokenizer_file(path, side)) for side in (TokenizerSide.src, TokenizerSide.tgt))
    return src, tgt


def _explanations(max_length: int, max_ratio: float) -> dict[str, str]:
    from dragoman.data.suspects import EXPLANATIONS

    limits = {
        name: text.format(max_length=max_length, max_ratio=max_ratio) for name, text in _EXPLAIN.items()
    }
    return limits | EXPLANATIONS


def _line(origin: str, src: str, tgt: str) -> str:
    """Place, source and target with tabs between them; what would break the line is escaped."""

    def visible(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
        return escaped.replace("\r", "\\r")

    return "\t".join((origin, visible(src), visible(tgt)))


def _line_as_json(origin: str, src: str, tgt: str) -> str:
    import json

    return json.dumps({"origin": origin, "src": src, "tgt": tgt}, ensure_ascii=False)


def _as_json(report: "CorpusReport", profile: "Profile") -> str:
    import json
    from dataclasses import asdict

    from dragoman.cli.corpus_profile import plain_profile

    plain = {**asdict(report), "profile": plain_profile(profile)}
    return json.dumps(plain, ensure_ascii=False, indent=1)


def progress_of_stages() -> Any:
    """A bar on a terminal; nothing in a pipe."""
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress

    @contextmanager
    def bars() -> Any:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as display:
            tasks: dict[str, Any] = {}

            def progress(stage: str, done: int, total: int | None) -> None:
                if stage not in tasks:
                    tasks[stage] = display.add_task(stage, total=total)
                display.update(tasks[stage], completed=done, total=total)

            yield progress

    return bars()
