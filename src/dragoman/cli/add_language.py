"""`dragoman add-language`: teach a run a further language."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Quiet, on_device
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.runs.directory import Run
    from dragoman.training.add_language import LanguageVerdict, NewLanguage

_TRIAL, _CORPUS, _LARGER = "-trial", "-corpus", "-larger"


def add_language(
    run: Annotated[Path, typer.Argument(help="Run directory to begin with; it stays as it is.")],
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES... [field=value]...",
            help="Corpora of the new language with a language of the run: directory, files, TMX, tables.",
        ),
    ],
    directions: Annotated[
        str, typer.Option(help="New directions, such as en-cs,cs-en; or all that the files have.")
    ] = "all",
    out: Annotated[Path | None, typer.Option(help="The new run directory.  [default: RUN-CODE]")] = None,
    pieces: Annotated[
        int | None,
        typer.Option(help="Most new pieces of the vocabulary.  [default: a language's share of it]", min=0),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            help="Share of the new directions in training; the rest is rehearsal.", min=0.01, max=0.99
        ),
    ] = 0.5,
    hold_out: Annotated[
        float, typer.Option(help="Share of the new pairs that is held out to test.", min=0.001, max=0.5)
    ] = 0.02,
    updates: Annotated[int, typer.Option(help="Updates of training.", min=1)] = 3000,
    tolerance: Annotated[
        float, typer.Option(help="chrF that old directions may lose on average.", min=0)
    ] = 1.0,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Teach a run a further language: new pieces, new embeddings, and rehearsal of all old directions.

    Old and new run are compared in the old directions, on the run's validation set. If these lose too much,
    the new run stays in OUT-trial, and the exit status is 1. If it is interrupted, the same command continues
    where it stopped.
    """
    from dragoman.files import beside, explained, move
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import pick_device
    from dragoman.training.adapt import corpora_for
    from dragoman.training.add_language import (
        compare_directions,
        gather_pairs,
        language_recipe,
        write_corpora,
    )
    from dragoman.training.api import plan_and_train
    from dragoman.training.draft import split_arguments
    from dragoman.training.larger_vocabulary import larger_run, larger_tokenizer

    files, overrides = split_arguments(arguments)
    if not files:
        raise UserError(
            "add-language: give corpora after the run, such as a directory with train.en and train.cs"
        )
    opened = Run.open(run)
    pick_device(device)  # a mistake is told before anything is trained
    parts = gather_pairs(opened, files, directions, hold_out)
    codes = dict.fromkeys(code for pair in parts.learnt for code in pair)
    new = [code for code in codes if not any(code in pair for pair in parts.rehearsed)]
    target = out or beside(opened.directory, "".join(f"-{code}" for code in new or ["more"]))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: already exists; choose another directory with --out, or remove it")
    trial, corpus, larger = (beside(target, ending) for ending in (_TRIAL, _CORPUS, _LARGER))
    tokenizer = larger_tokenizer(opened, parts.directions, parts.new_texts, pieces)
    with corpora_for(trial, corpus, larger):
        begun = larger_run(opened, tokenizer, larger)
        write_corpora(parts, corpus)
        if not quiet:
            _print_parts(opened, begun, parts)
        made = plan_and_train(
            [language_recipe(opened, begun, parts, corpus, share, updates)],
            out=trial,
            overrides=on_device(device, overrides),
            valid=[],
            quiet=quiet,
        )
    if made is None or (made.outcome is not None and made.outcome.exit_status):
        raise typer.Exit(1 if made is None or made.outcome is None else made.outcome.exit_status)
    verdict = compare_directions(opened, Run.open(trial), parts, tolerance, device)
    _print(verdict)
    if verdict.reason is not None:
        typer.echo(f"not good enough: {verdict.reason}")
        typer.echo(f"keep using {opened.directory}; the trial lies in {trial}")
        raise typer.Exit(1)
    with explained(target):
        move(trial, target)
    typer.echo(f"written: {target}")
    typer.echo(f"translate with:  dragoman translate {quote(str(target))} --to {next(iter(parts.learnt))[1]}")


def _print_parts(run: "Run", larger: "Run", parts: "NewLanguage") -> None:
    sizes = [one.tokenizers()[1].size for one in (run, larger)]
    for pair, pairs in parts.learnt.items():
        held = f"{len(parts.held_out[pair]):,} held out"
        typer.echo(f"learn    {'-'.join(pair)}: {len(pairs):,} pairs, {held}")
    for pair, pairs in parts.rehearsed.items():
        typer.echo(f"rehearse {'-'.join(pair)}: {len(pairs):,} pairs")
    typer.echo(f"pieces   {sizes[0]:,} → {sizes[1]:,}")


def _print(verdict: "LanguageVerdict") -> None:
    for pair, side in verdict.old.items():
        old, new = side.scores(side.old), side.scores(side.new)
        told = "   ".join(f"{name} {old[name]:.2f} → {new[name]:.2f}" for name in ("BLEU", "chrF"))
        typer.echo(f"{'-'.join(pair)}: {told}   ({len(side.pairs):,} pairs of the validation set)")
    for pair, side in verdict.new.items():
        told = "   ".join(f"{name} {side.scores(side.new)[name]:.2f}" for name in ("BLEU", "chrF"))
        typer.echo(f"{'-'.join(pair)}: {told}   (new, {len(side.pairs):,} pairs held out)")
