"""`dragoman serve`: translators behind HTTP, in the dialects that existing clients speak."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman import __version__
from dragoman.cli.options import Checkpoint, Device, Port, ZeroShot
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.serve.explain import Explains
    from dragoman.serve.limits import Limits


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or directories written by `export`.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; anything but this machine needs --key-file.")
    ] = ("127.0.0.1"),
    port: Port = 5000,
    key_file: Annotated[
        Path | None, typer.Option(help="File with the API keys of clients, one a line.")
    ] = None,
    pivot: Annotated[
        str | None, typer.Option(help="Language to translate through, for pairs without a run.")
    ] = None,
    memory: Annotated[
        list[Path] | None,
        typer.Option(
            help="Translation memory: a file of pairs, or a run for its training data (repeatable)."
        ),
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(help="TMX file that keeps clients' corrections, which are answered from then on."),
    ] = None,
    adapt_at: Annotated[
        str | None,
        typer.Option(metavar="HH:MM", help="Learn from the corrections every day at this time; needs runs."),
    ] = None,
    glossaries: Annotated[
        Path | None, typer.Option(help="File that keeps clients' glossaries across restarts.")
    ] = None,
    characters: Annotated[int, typer.Option(help="Longest text in characters.", min=1)] = 5000,
    texts: Annotated[int, typer.Option(help="Most texts in a request.", min=1)] = 64,
    queue: Annotated[int, typer.Option(help="Most sentences waiting, for each run.", min=1)] = 1024,
    probe_compat: Annotated[
        bool, typer.Option("--probe-compat", help="Answer Weblate's trial request (en to de) with any pair.")
    ] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Serve runs trained on dialogues as chats, not as translators.")
    ] = False,
    zero_shot: ZeroShot = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Serve models over HTTP: translations on a web page and by APIs like DeepL's and LibreTranslate's.

    Language models, classifiers and models that fill gaps answer to an API of our own and to OpenAI's.
    """
    from dragoman.cli.served_models import open_model, run_without_translation
    from dragoman.cli.translators import open_directions
    from dragoman.serve.app import Options
    from dragoman.serve.corrections import Corrections
    from dragoman.serve.keys import Keys, exposed
    from dragoman.serve.limits import Limits
    from dragoman.serve.memory import open_memories
    from dragoman.serve.metrics import Metrics
    from dragoman.serve.models import Models
    from dragoman.serve.nightly import nightly_of, parse_time
    from dragoman.serve.run import serve as serve_until_stopped
    from dragoman.serve.service import Served, Service

    keys = None if key_file is None else Keys.load(key_file)
    limits = Limits(characters=characters, texts=texts, queue=queue)
    if key_file is not None and (warning := exposed(key_file)) is not None:
        typer.echo(f"dragoman: {warning}", err=True)

    def open_run(run: Path) -> list[Served]:
        found = []
        for opened in open_directions(run, checkpoint, device, zero_shot):
            workers = opened.translator.engine.runtime.workers if opened.fast else 1
            explains = None if opened.run is None else _explainer(opened.translator, limits)
            insists = opened.translator.annotates or not opened.fast
            how = (insists, str(run), workers, explains, opened.calibration(checkpoint), opened.zero_shot)
            reads = opened.translator.reads_memory
            found.append(Served(opened.languages, opened.translator, *how, reads_memory=reads))
        return found

    def warn(told: str) -> None:
        typer.echo(f"dragoman: {told}", err=True)

    learns_at = None if adapt_at is None else parse_time(adapt_at)
    others = {run: found for run in runs if (found := run_without_translation(run)) is not None}
    if chat:
        from dragoman.runs.directory import Run

        others |= {run: Run.open(run) for run in runs if run not in others}
    translating = [run for run in runs if run not in others]
    given = {"--pivot": pivot, "--memory": memory, "--corrections": corrections}
    for option, value in {**given, "--adapt-at": adapt_at, "--glossaries": glossaries}.items():
        if value and not translating:
            raise UserError(f"{option}: it is for translations, and none of the runs translates")
    service = None
    if translating or not others:
        served = [one for run in translating for one in open_run(run)]
        memories = open_memories(memory or [], [one.languages for one in served], warn)
        learnt = None if corrections is None else Corrections(limits, corrections)
        service = Service(served, pivot=pivot, memories=memories, corrections=learnt, limits=limits)
    models = None
    if others:
        opened = [open_model(found, checkpoint, device) for found in others.values()]
        models = Models(opened, limits, Metrics() if service is None else service.metrics)
    nightly = None
    if learns_at is not None and service is not None:
        if len(service.served) > len(translating):
            raise UserError("--adapt-at: a run of several languages cannot learn from corrections")
        nightly = nightly_of(service, learns_at, lambda run: open_run(run)[0])

    def tell(address: str) -> None:
        pairs = ["→".join(pair) for pair in service.routes] if service is not None else []
        able = [f"{model.name} ({', '.join(model.does)})" for model in models.models] if models else []
        elsewhere = " and at this machine's other addresses" if host in ("0.0.0.0", "::") else ""
        locked = "with keys" if keys else "without keys"
        typer.echo(f"{address}{elsewhere}  {', '.join([*pairs, *able])}  {locked}; Ctrl-C stops", err=True)

    options = Options(keys, glossaries, __version__, nightly, probe_compat)
    serve_until_stopped(service, options, host, port, tell, models)


def _explainer(translator: Any, limits: "Limits") -> "Explains":
    """The function behind `/api/v1/explain`, for a run opened with torch."""
    from dragoman.probe.explain import explain_sentence
    from dragoman.serve.explain import Attention, Explanation

    most = limits.explained_pieces
    search = replace(translator.search, max_length=min(translator.search.max_length or most, most))

    def explains(text: str, translation: str | None) -> Explanation:
        given = {"text": translator.src_tokenizer.encode(text)}
        if translation is not None:
            given["translation"] = translator.tgt_tokenizer.encode(translation)
        for name, pieces in given.items():
            if len(pieces) > most:
                raise UserError(f"{name}: at most {most} pieces, found {len(pieces)}; take one sentence")
        found = explain_sentence(translator, text, translation, search)
        seen = found.seen
        size = sum(one.weights.numel() for one in seen.attentions)
        if size > limits.explained_weights:
            told = f"{size:,} weights are more than the {limits.explained_weights:,} of an answer"
            raise UserError(f"text: {told}; take a shorter sentence")
        return Explanation(
            text=found.translation,
            source=list(seen.src),
            read=list(seen.read),
            written=list(seen.written),
            scores=list(seen.token_scores),
            attentions=[
                Attention(
                    kind=one.kind,
                    layer=one.layer,
                    aligns=found.look is not None and one.module == found.look.module,
                    weights=(one.weights.double() * 1e5).round().div(1e5).tolist(),
                )
                for one in seen.attentions
            ],
        )

    return explains
