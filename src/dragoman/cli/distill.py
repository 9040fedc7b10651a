"""`dragoman distill`: a student that learns what its teachers say."""

from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dragoman.cli.options import Cluster, Quiet
from dragoman.errors import UserError


def distill(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="TEACHER... [field=value]...",
            help="Run directories of the teachers (several translate together, with the same tokenizers); "
            "and fields of the student to set, such as train.max_updates=20000.",
        ),
    ],
    student: Annotated[str, typer.Option(help="Preset of the student's model.")] = "transformer-student",
    out: Annotated[
        Path | None, typer.Option(help="The student's run directory.  [default: TEACHER-student]")
    ] = None,
    beam: Annotated[int, typer.Option(help="Beam size of the teachers.")] = 5,
    keep_original: Annotated[
        bool, typer.Option("--keep-original", help="Train on the real pairs too.")
    ] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Write the corpus and the recipe, then stop.")
    ] = False,
    batch_tokens: Annotated[int, typer.Option(help="Source tokens in a batch of the teachers.")] = 2048,
    checkpoint: Annotated[
        str, typer.Option(help="Checkpoint of the teachers: best, last, or its name.")
    ] = "best",
    device: Annotated[str, typer.Option(help="Device of the teachers: auto, cpu, cuda or mps.")] = "auto",
    quiet: Quiet = False,
    cluster: Cluster = None,
) -> None:
    """Train a small model on the translations of a large one (distillation).

    The training text of the first teacher is translated into OUT-corpus, then the student is trained in
    OUT. If it is interrupted, the same command continues where it stopped.
    """
    from dragoman.cli.synthetic import corpus_progress, tell
    from dragoman.cli.translators import with_changes
    from dragoman.files import beside
    from dragoman.models.presets import PRESETS, unknown_preset
    from dragoman.runs.directory import Run
    from dragoman.runs.identity import identity
    from dragoman.runs.opening import open_translator
    from dragoman.training.api import execute
    from dragoman.training.display import make_display
    from dragoman.training.distill import student_recipe, translate_text, write_recipe, write_text
    from dragoman.training.draft import split_arguments
    from dragoman.training.plan import make_plan

    names, overrides = split_arguments(arguments)
    if not names:
        raise UserError("distill: give the run directory of at least one teacher")
    if student not in PRESETS:
        raise unknown_preset(student, "--student")
    teachers = [Run.open(Path(name)) for name in names]
    teacher = teachers[0]
    target = out or beside(teacher.directory, "-student")
    text = write_text(teacher, beside(target, "-corpus"))
    translator = open_translator(teachers, checkpoint, "cpu" if cluster else device)
    search = with_changes(translator.search, "beam", [], beam=beam, n_best=1)
    with ExitStack() as stack:
        spread = None
        if cluster:
            from dragoman.cli.clustered import cluster_at, corpus_spread

            connected = stack.enter_context(cluster_at(cluster))
            paths = [one.directory for one in teachers]
            spread = corpus_spread(connected, paths, checkpoint, device, batch_tokens, identity(translator))
        progress = stack.enter_context(corpus_progress(text.pairs))
        done = translate_text(
            translator,
            text,
            search,
            max_tokens=teacher.config.data.clean.max_length,
            batch_tokens=batch_tokens,
            progress=progress,
            spread=spread,
        )
    if not quiet:
        tell(done)
    del translator  # its memory is the student's now
    display = make_display(quiet)
    try:
        recipe = student_recipe(teacher, text, student, keep_original)
        plan = make_plan([recipe], display, out=target, overrides=overrides)
        path = write_recipe(text, plan.config)
        display.table("Plan", plan.rows())
        if no_train:
            display.line(
                f"train the student with:  dragoman train {quote(str(path))} --out {quote(str(target))}"
            )
            return
        run = execute(plan, display)
    finally:
        display.close()
    if run.outcome is not None and run.outcome.exit_status:
        raise typer.Exit(run.outcome.exit_status)
