"""`dragoman explain`: what a model looked at for one sentence, in numbers, as a picture, or as a page."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import (
    Alpha,
    Beam,
    Checkpoint,
    Device,
    FromLanguage,
    RunDirectory,
    ToLanguage,
    ZeroShot,
)
from dragoman.errors import UserError, missing_extra

if TYPE_CHECKING:
    from dragoman.cli.explain_text import Wanted
    from dragoman.probe.explain import Explained
    from dragoman.runs.directory import Run

ENDINGS = (".png", ".svg", ".pdf")


class Picture(StrEnum):
    alignment = "alignment"
    heads = "heads"
    norms = "norms"
    rollout = "rollout"
    gradient = "gradient"
    integrated = "integrated"
    importance = "importance"
    beam = "beam"
    positions = "positions"
    curves = "curves"


class Looking(StrEnum):
    encoder = "encoder"
    decoder = "decoder"
    cross = "cross"
    copy = "copy"


WITHOUT_SENTENCE = (Picture.positions, Picture.curves)


def explain(
    run: RunDirectory,
    sentence: Annotated[
        str | None,
        typer.Argument(help="Source text, or the text to read; the figures positions and curves need none."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A given translation; without it, the model translates.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --figure gradient: the mean over these pairs, test.en test.de (repeat it) or a table.",
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="With --test: pairs to read.")] = 100,
    html: Annotated[
        Path | None, typer.Option(help="Page to write: one file, to be opened in a browser.")
    ] = None,
    figure: Annotated[
        Picture, typer.Option(metavar="NAME", help=f"What the picture shows: {', '.join(Picture)}.")
    ] = Picture.alignment,
    attention: Annotated[
        Looking | None, typer.Option(help="encoder, decoder, cross or copy; cross by default.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="From 1; by default the layer that aligns best.")
    ] = None,
    head: Annotated[int | None, typer.Option(min=1, help="From 1; by default the mean of all heads.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Merge pieces into words.")] = False,
    to: ToLanguage = None,
    source: FromLanguage = None,
    zero_shot: ZeroShot = False,
    beam: Beam = None,
    n_best: Annotated[int | None, typer.Option(help="Translations that the page lists.")] = None,
    alpha: Alpha = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Show what a model does with a sentence: probabilities, attention, a picture or a page.

    Translators: the translation with its probabilities and alignment. GPT: the probability of each piece of
    the text. BERT and ELMo: each piece guessed from the others. T5 and BART: gaps (<mask>) filled.
    Classifiers: the labels, and what each word contributes. Runs on images: give an image, and see where the
    label or each piece of the caption looked.
    """
    if test:
        _over_test_set(run, test, sentences, out, figure, checkpoint, device)
        return
    ending = _check(sentence, target, out, html, figure)
    from dragoman.cli.explain_text import Wanted
    from dragoman.cli.translators import with_changes
    from dragoman.data.labelled.config import VECTORS
    from dragoman.decode.search.config import BeamSearch
    from dragoman.probe.explain import draw_figure, explain_sentence, with_readable_fonts
    from dragoman.runs.directory import Run

    opened = Run.open(run)
    own = opened.config.task
    if own is not None and own.kind in VECTORS and sentence is not None:
        if target is not None or html is not None or figure is not Picture.alignment:
            raise UserError("explain: images have one picture; leave --target, --html and --figure out")
        _explain_image(opened, sentence, out, layer, head, checkpoint, device)
        return
    if opened.config.purpose != "translate" and sentence is not None:
        if target is not None:
            raise UserError("--target: this run does not translate; leave it out")
        kind = None if attention is None else attention.value
        wanted = Wanted(sentence, figure.value, ending, kind, layer, head, words)
        _explain_text(opened, wanted, out, html, checkpoint, device)
        return
    needs_model = figure is not Picture.curves or sentence is not None
    translator = None
    if needs_model:
        languages = opened.config.data.chosen_languages(to, source, zero_shot)
        translator = opened.translator(checkpoint, device, languages=languages)
    explained: Explained | None = None
    if translator is not None and sentence is not None:
        numbers = {"beam": beam, "n_best": n_best, "alpha": alpha}
        # What cannot be recorded is explained all the same, without its tree.
        groups = translator.search.converted(BeamSearch, n_best=1).groups
        recorded = {"record": groups == 1, "shortlist": False}
        search = with_changes(translator.search, "beam", [], **numbers, **recorded)
        explained = explain_sentence(translator, sentence, target, search)
        explained = explained.looking_at(None if attention is None else attention.value, layer, head)
        _print(explained)
    if html is not None:
        assert explained is not None
        _write(html, explained.page(opened.directory.name).encode())
    if out is not None:
        model = None if translator is None else translator.model
        with with_readable_fonts() as missing:
            picture = draw_figure(figure.value, ending, explained, model, opened.metrics, words)
        if missing:
            signs = "".join(sorted(missing))
            typer.echo(f"warning: no font here has {signs}; an SVG keeps them as text", err=True)
        _write(out, picture)


def _explain_image(
    run: "Run",
    path: str,
    out: Path | None,
    layer: int | None,
    head: int | None,
    checkpoint: str,
    device: str,
) -> None:
    """The label or the pieces of the caption, with the patch that each of them looked at most."""
    import numpy as np

    from dragoman.probe.explain import with_readable_fonts
    from dragoman.probe.figures.patches import draw_patches
    from dragoman.probe.patches import look_at

    found = look_at(run, path, checkpoint, device, layer, head)
    for word, probability, weights in zip(found.said, found.probabilities, found.maps, strict=True):
        row, column = np.unravel_index(int(weights.argmax()), weights.shape)
        told = f"patch in row {row + 1}, column {column + 1} ({weights.max():.2f})"
        typer.echo(f"  {word}  {100 * probability:.2f}%  {told}")
    if out is not None:
        ending = out.suffix[1:]
        with with_readable_fonts():
            _write(
                out, draw_patches(found.image, found.said, found.probabilities, found.maps, [ending])[ending]
            )


def _over_test_set(
    directory: Path,
    files: list[Path],
    count: int,
    out: Path | None,
    figure: Picture,
    checkpoint: str,
    device: str,
) -> None:
    """The gradient of target pieces by the place of the source, in the mean over pairs of files."""
    if figure is not Picture.gradient:
        raise UserError(f"--test: it is for --figure gradient, not for {figure.value}")
    if out is None or out.suffix not in ENDINGS:
        raise UserError("--test: give --out with a name that ends in .png, .svg or .pdf")
    from itertools import islice

    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs
    from dragoman.probe.explain import draw_mean_gradient
    from dragoman.runs.directory import Run

    run = Run.open(directory)
    translator = run.translator(checkpoint, device)
    data = run.config.data
    found = islice(read_pairs(SourceConfig(tuple(map(str, files))), data.src_lang, data.tgt_lang), count)
    encoders = translator.src_tokenizer.encode, translator.tgt_tokenizer.encode
    pairs = [(encoders[0](pair.src), encoders[1](pair.tgt)) for pair in found]
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        raise UserError(f"--test {files[0]}: there is no pair in it")
    _write(out, draw_mean_gradient(translator.model, pairs, out.suffix[1:], translator.device))


def _explain_text(
    run: "Run", wanted: "Wanted", out: Path | None, html: Path | None, checkpoint: str, device: str
) -> None:
    """Explain a sentence with a run that does not translate."""
    from dragoman.cli.explain_text import explained_writing, picture, read, writes
    from dragoman.probe.explain import draw_figure, with_readable_fonts
    from dragoman.probe.page import make_reading_page
    from dragoman.probe.reading import reading_table

    if writes(run):
        explained = explained_writing(run, wanted.text, checkpoint, device)
        explained = explained.looking_at(wanted.kind, wanted.layer, wanted.head)
        _print(explained, alternatives=3 if run.config.purpose == "generate" else 0)
        if html is not None:
            _write(html, explained.page(run.directory.name).encode())
        if out is not None:
            with with_readable_fonts():
                model = explained.translator.model
                drawn = draw_figure(wanted.figure, wanted.ending, explained, model, run.metrics, wanted.words)
            _write(out, drawn)
        return
    found, tokenizer = read(run, wanted.text, checkpoint, device)
    for line in reading_table(found, tokenizer):
        typer.echo(line)
    if html is not None:
        about = f"{run.directory.name}: {len(found.seen.src)} pieces with marks"
        _write(html, make_reading_page(found, tokenizer, about).encode())
    if out is not None:
        with with_readable_fonts():
            _write(out, picture(found, tokenizer, wanted))


def _check(
    sentence: str | None, target: str | None, out: Path | None, html: Path | None, figure: Picture
) -> str:
    """Check the options before a model is loaded. Returns the suffix of the picture."""
    for name, path in (("--out", out), ("--html", html)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise UserError(f"{name} {path}: expected the name of a file in a directory that exists")
    if out is not None and out.suffix not in ENDINGS:
        raise UserError(f"--out {out}: expected a name that ends in .png, .svg or .pdf")
    if out is not None and find_spec("matplotlib") is None:
        raise missing_extra("matplotlib", "plots", "drawing a picture")
    if sentence is None and (html is not None or figure not in WITHOUT_SENTENCE):
        raise UserError(
            "explain: give a sentence after the run; only --figure positions and curves need none"
        )
    if sentence is None and out is None:
        raise UserError(f"--figure {figure.value}: give --out with the name of a picture")
    if sentence is not None and not sentence.strip():
        raise UserError("explain: the sentence is blank, and no model is asked about it")
    if target is not None and figure is Picture.beam:
        raise UserError("--figure beam: a given translation was not searched for; leave out --target")
    return "" if out is None else out.suffix[1:]


def _print(explained: "Explained", alternatives: int = 0) -> None:
    """Each target piece with its probability, and where the chosen attention looked most."""
    typer.echo(explained.translation)
    lines = explained.table(alternatives)
    if any("←" in line for line in lines):
        typer.echo("  piece, probability ← source piece with the most attention, its weight")
    for line in lines:
        typer.echo(f"  {line}")


def _write(path: Path, content: bytes) -> None:
    from dragoman.cli.output import write_file

    write_file(path, content)
    typer.echo(f"  written to {path}", err=True)
