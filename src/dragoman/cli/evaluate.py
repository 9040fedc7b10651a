"""`dragoman evaluate`: BLEU, chrF and TER of a run or an export on a test set, with signatures and intervals;
or the perplexity of a language model."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import (
    Alpha,
    BatchTokensIfGiven,
    Beam,
    BleuTokenizer,
    Checkpoint,
    Cluster,
    Device,
    FurtherRuns,
    Lowercase,
    Precision,
    RunOrExport,
    SearchFields,
    UseContext,
    ZeroShot,
)

if TYPE_CHECKING:
    from dragoman.cli.translators import Asked, Opened
    from dragoman.data.config import SourceConfig
    from dragoman.data.directions import Directions
    from dragoman.evaluate.testset import Evaluation
    from dragoman.runs.directory import Run


def evaluate(
    run: RunOrExport,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Test files; by default the test set of the run's configuration."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(metavar="FILES", help="The same as FILES, as in other commands.")
    ] = None,
    directions: Annotated[
        str | None,
        typer.Option(metavar="en-de,de-en", help="Directions of a run of several languages.  [default: all]"),
    ] = None,
    zero_shot: ZeroShot = False,
    also: FurtherRuns = None,
    method: Annotated[str | None, typer.Option(help="beam, sample or mbr.")] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    fields: SearchFields = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Further metric, rouge or brackets; by default the run's train.metric."),
    ] = None,
    tokenize: BleuTokenizer = "13a",
    lowercase: Lowercase = False,
    bootstrap: Annotated[
        int, typer.Option(help="Bootstrap samples for the 95% intervals; 0 disables them.")
    ] = 1000,
    name: Annotated[
        str | None, typer.Option(help="Name of the results; by default the name of the test file.")
    ] = None,
    context: UseContext = True,
    batch_tokens: BatchTokensIfGiven = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    precision: Precision = "float32",
    cluster: Cluster = None,
) -> None:
    """Print BLEU, chrF and TER of a run or an export on a test set, or the perplexity of a language model.

    The translations and the scores are kept in RUN/evaluation. Images and series: metrics of their labels, or
    errors of forecasts beside those of baselines.
    """
    from dragoman.cli.clustered import cluster_at
    from dragoman.cli.overlap import warn_of_overlap
    from dragoman.cli.progress import progress_bar
    from dragoman.cli.translators import Asked, open_undirected, with_changes
    from dragoman.data.contexts import in_their_documents
    from dragoman.data.directions import direction_name
    from dragoman.data.formats import read_pairs
    from dragoman.data.formats.detect import detect_format, stem_of
    from dragoman.evaluate.testset import evaluate_testset as evaluate_on
    from dragoman.text.context import sentence_of

    files = [*(files or []), *(test or [])]
    if _evaluated_otherwise(run, files, checkpoint, device, cluster):
        return
    opened = open_undirected(run, also or [], checkpoint, "cpu" if cluster else device, precision, context)
    translator, directions_of_run = opened.translator, opened.directions
    search = with_changes(translator.search, method, fields or [], beam=beam, alpha=alpha)
    tests = _test_sets(opened, run, files, directions, zero_shot)
    further = _further(metric, opened.run)
    asked = Asked(run, tuple(also or ()), checkpoint, precision, zero_shot=zero_shot, context=context)
    results: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        connected = stack.enter_context(cluster_at(cluster)) if cluster else None
        for source in tests:
            languages = source.src_lang or opened.languages[0], source.tgt_lang or opened.languages[1]
            pairs = list(in_their_documents(read_pairs(source, *languages), translator.context))
            sources, references = [src for src, _ in pairs], [sentence_of(tgt) for _, tgt in pairs]
            with progress_bar(len(sources)) as progress:
                found = evaluate_on(
                    _translator_of(connected, device, asked, opened, languages),
                    sources,
                    references,
                    search=search,
                    batch_tokens=batch_tokens or translator.default_batch_tokens,
                    tokenize=tokenize,
                    lowercase=lowercase,
                    bootstrap=bootstrap,
                    further=further,
                    progress=progress,
                )
            title = name or Path(source.files[0]).name
            if directions_of_run is not None:
                test_set, direction = name or Path(stem_of(source.files[0])).name, direction_name(languages)
                title = f"{test_set}.{direction}"
                results.setdefault(test_set, {})[direction] = found
            directory = _write(run, title, found, list(source.files), [str(path) for path in also or []])
            _print(title, found, directory)
            if detect_format(source.files) == "dialogue" and opened.run is not None:
                _print_replies(opened.directed(languages).translator, sources, references, found.hypotheses)
            if opened.run is not None:
                warn_of_overlap(opened.run, list(map(sentence_of, sources)), references)
    for test_set, by_direction in results.items():
        _print_directions(test_set, by_direction)


def _evaluated_otherwise(
    run: Path, files: list[str], checkpoint: str, device: str, cluster: str | None
) -> bool:
    """A language model, and a model of images or series, has figures of its own."""
    from dragoman.cli.vectors import evaluate_vectors
    from dragoman.data.labelled.config import VECTORS
    from dragoman.errors import UserError
    from dragoman.learning import learning_of
    from dragoman.runs.directory import Run

    own = Run.open(run) if Run.exists(run) else None
    is_text = own is not None and learning_of(own.config).learns_from == "text"
    task = None if own is None else own.config.task
    if own is None or not (is_text or (task is not None and task.kind in VECTORS)):
        return False
    if cluster:
        what = "a language model is" if is_text else "images and series are"
        raise UserError(f"--cluster: {what} evaluated on one machine; leave it out")
    if is_text:
        _print_text(own, files, checkpoint, device)
    elif task is not None:
        evaluate_vectors(own, files, task, checkpoint, device)
    return True


def _translator_of(
    connected: Any, device: str, asked: "Asked", opened: "Opened", languages: tuple[str, str]
) -> Any:
    """That of a direction; on a cluster, what stands for it."""
    directed = opened.directed(languages)
    if connected is None:
        return directed.translator
    from dragoman.cli.clustered import ClusterTranslator

    if opened.directions is not None:
        asked = asked._replace(source=languages[0], to=languages[1])
    return ClusterTranslator(connected, device, asked, directed)


def _test_sets(
    opened: "Opened", run: Path, files: list[str], directions: str | None, zero_shot: bool
) -> "list[SourceConfig]":
    from dragoman.data.config import SourceConfig
    from dragoman.data.directions import direction_name
    from dragoman.errors import UserError

    named = [] if opened.run is None else list(opened.run.config.data.test)
    if opened.directions is not None:
        tests = _tests_by_direction(opened.directions, named, files, directions, zero_shot)
    elif directions is not None:
        raise UserError(f"--directions: {run} has one, {direction_name(opened.languages)}; leave it out")
    else:
        trained = () if opened.run is None else opened.run.config.data.train
        turns = trained[0].turns if trained else SourceConfig.turns
        tests = [SourceConfig(tuple(files), turns=turns)] if files else named
    if not tests:
        what = "an export" if opened.run is None else "its configuration"
        raise UserError(f"{run}: {what} names no test set; give the test files after it")
    return tests


def _further(named: list[str] | None, run: "Run | None") -> list[str]:
    """The metrics beside BLEU, chrF and TER. A missing package is told before minutes of translating."""
    from dragoman.errors import UserError
    from dragoman.evaluate.metrics import FURTHER, make_scorers

    for name in named or []:
        if name not in FURTHER:
            raise UserError(f"--metric: expected one of {', '.join(FURTHER)}, found '{name}'")
    own = [] if run is None or run.config.train.metric not in FURTHER else [run.config.train.metric]
    further = list(dict.fromkeys(named or own))
    make_scorers(further=further)
    return further


def _tests_by_direction(
    known: "Directions",
    named: "list[SourceConfig]",
    files: list[str],
    directions: str | None,
    zero_shot: bool,
) -> "list[SourceConfig]":
    """The test sets of the chosen directions; of all that were trained, and with `zero_shot` of all."""
    from dragoman.data.directions import parse_directions
    from dragoman.data.languages import corpora_by_direction, corpora_in, languages_told

    tests = named
    if files:
        given: list[str] = []
        for file in files:
            given += corpora_in(Path(file))["test"] if Path(file).is_dir() else [file]
        tests = corpora_by_direction(given)
    if directions is not None:
        chosen = parse_directions(directions, map(languages_told, tests))
        for languages in chosen:
            known.check(languages, zero_shot)
    else:
        chosen = (*known.trained, *(known.zero_shot if zero_shot else ()))
    return [source for source in tests if languages_told(source) in chosen]


def _print_directions(title: str, found: "dict[str, Evaluation]") -> None:
    """A row for each direction, and the mean."""
    rows = {name: {one.name: one.value for one in own.metrics} for name, own in found.items()}
    names = list(next(iter(rows.values())))
    rows["mean"] = {name: sum(row[name] for row in rows.values()) / len(rows) for name in names}
    width = max(map(len, rows))
    typer.echo(f"{title}, by direction")
    typer.echo(f"  {'':{width}}  {'  '.join(f'{name:>6}' for name in names)}")
    for label, row in rows.items():
        typer.echo(f"  {label:{width}}  {'  '.join(f'{row[name]:6.2f}' for name in names)}")


def _print_text(run: "Run", files: list[str], checkpoint: str, device: str) -> None:
    from dragoman.errors import UserError
    from dragoman.learning.text_evaluation import text_metrics

    if not files:
        raise UserError(f"{run.directory}: give the files of text after the run")
    for name, value in text_metrics(run, files, checkpoint, device).items():
        typer.echo(f"{name}\t{value:.4f}")


def _write(run: Path, title: str, found: "Evaluation", files: list[str], others: list[str]) -> Path:
    """The translations and the figures, so that nobody has to translate again to look closer."""
    import json

    from dragoman.files import explained, make_directories, replace_file
    from dragoman.text.segment import one_line

    directory = run / "evaluation" / title
    lines = map(one_line, found.hypotheses)
    report = {"files": files, "with": others, **found.report()}
    with explained(directory):
        make_directories(directory)
        replace_file(directory / "hypotheses.txt", "".join(f"{line}\n" for line in lines).encode())
        if any("\n" in text for text in found.hypotheses):
            whole = (json.dumps({"text": text}, ensure_ascii=False) for text in found.hypotheses)
            replace_file(directory / "hypotheses.jsonl", "".join(f"{line}\n" for line in whole).encode())
        replace_file(directory / "report.json", json.dumps(report, indent=1, ensure_ascii=False).encode())
    return directory


def _print(title: str, found: "Evaluation", directory: Path) -> None:
    speed = len(found.hypotheses) / max(found.seconds, 1e-9)
    typer.echo(f"{title}: {len(found.hypotheses)} sentences in {found.seconds:.1f} s ({speed:.1f} a second)")
    width = max(6, *(len(metric.name) for metric in found.metrics))
    for metric in found.metrics:
        interval = "" if metric.half_width is None else f" ± {metric.half_width:.2f}"
        typer.echo(f"  {metric.name:{width}} {metric.value:6.2f}{interval}   {metric.signature}")
    typer.echo(f"  {'exact':{width}} {found.exact:6.2f}%   outputs that are exactly the reference")
    if any(metric.half_width is not None for metric in found.metrics):
        typer.echo("  ± is the 95% interval")
    if found.exact and any(metric.name == "BLEU" and not metric.value for metric in found.metrics):
        typer.echo("  BLEU counts sequences of four words, and is 0 for shorter outputs")
    if found.cut_off:
        typer.echo(f"  {_counted(found.cut_off)} cut off at the length limit")
    if found.loops:
        typer.echo(f"  {_counted(found.loops)} stuck in a loop and redone")
    if found.alone:
        typer.echo(f"  {_counted(found.alone)} made without the sentences before: wrong separators")
    typer.echo(f"  written to {directory}")


def _print_replies(translator: Any, sources: list[str], references: list[str], hypotheses: list[str]) -> None:
    """How probable the real replies are, and how much replies differ from one another."""
    from dragoman.evaluate.metrics import distinct, perplexities

    scored = translator.score(list(zip(sources, references, strict=True)))
    by_token, by_word = perplexities(scored, references)
    typer.echo(f"  perplexity of the real replies: {by_token:.2f} a token, {by_word:.2f} a word")
    for n in (1, 2):
        own, real = distinct(hypotheses, n), distinct(references, n)
        typer.echo(f"  distinct-{n} {own:6.2f}%   (the real replies: {real:.2f}%)")


def _counted(number: int) -> str:
    return "1 translation was" if number == 1 else f"{number} translations were"
