"""`dragoman export`: a trained model for another engine."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Checkpoint, RunDirectory
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.runs.directory import Run
_CHECKED = 20
"""Validation pairs that an export for ONNX Runtime is compared with the model on."""


def export(
    run: RunDirectory,
    to: Annotated[str, typer.Option(help="ctranslate2, huggingface, onnx, or argos.")] = "ctranslate2",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory to write, or for argos a file; by default in RUN: ctranslate2-..., huggingface, "
            "onnx-..., or SRC_TGT.argosmodel.",
        ),
    ] = None,
    quantize: Annotated[
        str, typer.Option(help="Number format of the weights: float32, int8, int8_float32 or int16.")
    ] = "float32",
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Add a lexical shortlist from the training data: faster.")
    ] = False,
    positions: Annotated[
        int, typer.Option(help="Longest sentence in tokens, for models with a position table.")
    ] = 1024,
    page: Annotated[
        Path | None,
        typer.Option(
            help="For onnx: write a web page that translates in the browser, with the libraries in this "
            "node_modules folder."
        ),
    ] = None,
    checkpoint: Checkpoint = "best",
) -> None:
    """Write a model for another engine: CTranslate2 (CPU, no torch), Hugging Face, ONNX Runtime or Argos.

    An export for CTranslate2 or ONNX Runtime can be used wherever a run can: dragoman translate OUT ...
    """
    if page is not None and to != "onnx":
        raise UserError("--page: a browser runs the export for ONNX; add  --to onnx")
    if to == "huggingface":
        _to_huggingface(run, out, checkpoint, quantize != "float32" or shortlist)
        return
    if to == "argos":
        _to_argos(run, out, checkpoint, quantize, positions, shortlist)
        return
    if to == "onnx":
        _to_onnx(run, out, checkpoint, quantize, positions, shortlist, page)
        return
    if to != "ctranslate2":
        raise UserError(f"--to: expected ctranslate2, huggingface, onnx or argos, found '{to}'")
    from dataclasses import replace
    from typing import cast

    from dragoman.checkpoint.model import load_model
    from dragoman.engines.export import Quantization, export_ctranslate2
    from dragoman.engines.runtime import computed_as_stored
    from dragoman.evaluate.confidence import CONFIDENCE, read_calibration
    from dragoman.runs.directory import Run

    opened = Run.open(run)
    loaded = load_model(opened.directory, which=checkpoint)
    shortlist = shortlist or opened.config.search.shortlist
    name = f"{to}-{quantize}{'-shortlist' if shortlist else ''}"
    written = export_ctranslate2(
        loaded,
        out or run / name,
        search=replace(opened.config.search, shortlist=False, brackets=""),  # a part of it, or not there
        languages=(opened.config.data.src_lang, opened.config.data.tgt_lang),
        quantize=cast(Quantization, quantize),  # it is checked there
        positions=positions,
        shortlist=opened.shortlist() if shortlist else None,
        examples=opened.validation_examples(),
        directions=opened.config.data.directions,
        calibration=read_calibration(opened.directory / CONFIDENCE, loaded.name),
        context=opened.config.data.context,
    )
    if opened.config.search.brackets:
        typer.echo("note: CTranslate2 does not keep brackets valid; the run itself does", err=True)
    megabytes = sum(path.stat().st_size for path in written.iterdir()) / 1e6
    typer.echo(f"checkpoint {loaded.name} written to {written} ({megabytes:.1f} MB)")
    if not computed_as_stored(quantize):
        typer.echo(
            f"--quantize: CTranslate2 does not compute in {quantize} on this CPU; here it will convert the "
            "weights when it loads them"
        )


def _refuse_control_pieces(run: "Run", to: str) -> None:
    if run.config.data.context is not None:
        raise UserError(
            f"--to: {to} has no place for the sentences before, which this run learnt with (data.context); "
            "export to ctranslate2"
        )
    if run.config.data.directions is not None:
        raise UserError(
            f"--to: {to} has no place for the pieces that tell a model of several languages its direction; "
            "export to ctranslate2"
        )


def _to_huggingface(run: Path, out: Path | None, which: str, further: bool) -> None:
    if further:
        raise UserError("--to: huggingface takes the weights as they are, without --quantize and --shortlist")
    from dragoman.checkpoint.huggingface import export_huggingface
    from dragoman.checkpoint.model import load_network
    from dragoman.decode.search.config import EARLY_STOPPING, BeamSearch
    from dragoman.runs.directory import Run
    from dragoman.runs.model_card import model_card

    opened = Run.open(run)
    _refuse_control_pieces(opened, "huggingface")
    loaded = load_network(opened.directory, which=which)
    search = opened.config.search.converted(BeamSearch, n_best=1)
    card = model_card(opened, loaded.name)
    early = EARLY_STOPPING[search.stop]
    written = export_huggingface(loaded, out or run / "huggingface", search.beam, search.alpha, early, card)
    typer.echo(f"checkpoint {loaded.name} written to {written}")


def _to_onnx(
    run: Path,
    out: Path | None,
    which: str,
    quantize: str,
    positions: int,
    shortlist: bool,
    page: Path | None,
) -> None:
    if shortlist:
        raise UserError("--to: an export for ONNX Runtime has no --shortlist")
    from dragoman.engines.manifest import ONNX
    from dragoman.engines.opening import refuse_without_packages

    refuse_without_packages(ONNX)
    from contextlib import ExitStack
    from dataclasses import replace

    from dragoman.checkpoint.model import load_model
    from dragoman.engines.onnx_export import export_onnx, largest_difference
    from dragoman.engines.onnx_model import OnnxTranslator
    from dragoman.engines.onnx_page import library_files, write_page
    from dragoman.files import scratch_directory
    from dragoman.runs.directory import Run
    from dragoman.runs.model_card import model_card

    libraries = None if page is None else library_files(page)
    opened = Run.open(run)
    _refuse_control_pieces(opened, "onnx")
    loaded = load_model(opened.directory, which=which)
    with ExitStack() as stack:
        target = out or run / f"onnx-{quantize}{'' if page is None else '-page'}"
        written = export_onnx(
            loaded,
            target if page is None else stack.enter_context(scratch_directory()) / "model",
            search=replace(opened.config.search, shortlist=False),
            languages=(opened.config.data.src_lang, opened.config.data.tgt_lang),
            quantize=quantize,
            positions=positions,
            card=model_card(opened, loaded.name),
        )
        examples = list(opened.validation_examples())[:_CHECKED]
        apart = largest_difference(OnnxTranslator.open(written).model, loaded.model, examples)
        if libraries is not None:
            written = write_page(written, libraries, target)
    megabytes = sum(path.stat().st_size for path in written.rglob("*")) / 1e6
    typer.echo(f"checkpoint {loaded.name} written to {written} ({megabytes:.1f} MB)")
    typer.echo(
        f"checked with ONNX Runtime on {len(examples)} validation pairs: "
        f"log-probabilities differ by {apart:.1g} at most"
    )
    if page is not None:
        typer.echo(f"look at it with:  python -m http.server --directory {quote(str(written))}")


def _to_argos(
    run: Path, out: Path | None, which: str, quantize: str, positions: int, shortlist: bool
) -> None:
    if shortlist:
        raise UserError("--to: a package of Argos has no --shortlist")
    from typing import cast

    from dragoman.checkpoint.model import load_model
    from dragoman.data.formats.language_codes import NAMES
    from dragoman.engines.argos import SUFFIX, export_argos
    from dragoman.engines.export import Quantization
    from dragoman.runs.directory import Run
    from dragoman.runs.model_card import model_card
    from dragoman.text.sentencepiece_model import SentencePieceRules

    opened = Run.open(run)
    _refuse_control_pieces(opened, "argos")
    loaded = load_model(opened.directory, which=which)
    data = opened.config.data
    languages = data.src_lang, data.tgt_lang
    written = export_argos(
        loaded,
        out or run / f"{languages[0]}_{languages[1]}{SUFFIX}",
        languages=languages,
        names=(NAMES.get(languages[0], languages[0]), NAMES.get(languages[1], languages[1])),
        card=model_card(opened, loaded.name),
        quantize=cast(Quantization, quantize),  # it is checked there
        positions=positions,
    )
    typer.echo(f"checkpoint {loaded.name} written to {written} ({written.stat().st_size / 1e6:.1f} MB)")
    rules = SentencePieceRules(loaded.src_tokenizer)
    examples = [[int(piece) for piece in ids] for ids, _ in opened.validation_examples()]
    texts = [loaded.src_tokenizer.decode(ids) for ids in examples]
    other = sum(not rules.cut_alike(text) for text in texts)
    if other:
        typer.echo(
            f"SentencePiece cuts {other:,} of {len(texts):,} validation sentences otherwise than we do"
        )
