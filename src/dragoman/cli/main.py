"""The `dragoman` command.

Every command has a file of its own. Those files import only the standard library and typer at the top;
what is heavy is imported when a command is called, so that `dragoman --help` answers at once.
"""

import os
import signal
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from dragoman import __version__, system
from dragoman.cli.adapt import adapt
from dragoman.cli.add_language import add_language
from dragoman.cli.align import align
from dragoman.cli.align_corpus import align_corpus
from dragoman.cli.average import average
from dragoman.cli.back_translate import back_translate
from dragoman.cli.chat import chat
from dragoman.cli.compare import compare
from dragoman.cli.corpus import corpus
from dragoman.cli.demo import demo
from dragoman.cli.distill import distill
from dragoman.cli.doctor import doctor
from dragoman.cli.embed import embed
from dragoman.cli.evaluate import evaluate
from dragoman.cli.explain import explain
from dragoman.cli.export import export
from dragoman.cli.fill import fill
from dragoman.cli.filter import filter_corpus
from dragoman.cli.finetune import finetune
from dragoman.cli.generate import generate
from dragoman.cli.help import Command, Commands
from dragoman.cli.import_model import import_model
from dragoman.cli.lab import lab
from dragoman.cli.predict import predict
from dragoman.cli.pretrain import pretrain
from dragoman.cli.resume import resume
from dragoman.cli.score import score
from dragoman.cli.search_report import search_report
from dragoman.cli.serve import serve
from dragoman.cli.studio import studio
from dragoman.cli.tokenize import tokenize
from dragoman.cli.train import train
from dragoman.cli.translate import translate
from dragoman.cli.tune import tune
from dragoman.cli.verify import verify
from dragoman.errors import UserError, is_out_of_memory, missing_extra
from dragoman.extras import extra_of

_OUT_OF_MEMORY = (
    "out of memory: lower train.batch_tokens or --batch-tokens, take a smaller model, or free some memory"
)

app = typer.Typer(
    name="dragoman",
    cls=Commands,
    help="From parallel text to a translator you own.",
    epilog="Start with:    dragoman demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # what is not a UserError is a bug, and keeps its plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: quick, and the same in a terminal and in a pipe
)
for command in (
    *(demo, train, resume, translate, generate, chat, score, align, evaluate, explain, studio, compare),
    *(
        adapt,
        add_language,
        pretrain,
        finetune,
        fill,
        predict,
        embed,
        search_report,
        average,
        tune,
        distill,
        back_translate,
    ),
    *(export, verify, serve, corpus, align_corpus, tokenize, lab, doctor),
):
    app.command(cls=Command)(command)
app.command("import", cls=Command)(import_model)
app.command("filter", cls=Command)(filter_corpus)


@app.command("help", hidden=True)
def help_command(
    context: typer.Context,
    command: Annotated[str | None, typer.Argument(help="Name of a command.")] = None,
) -> None:
    """Explain dragoman, or one of its commands."""
    whole = context.parent
    assert whole is not None
    if command is None:
        typer.echo(whole.get_help())
        return
    assert isinstance(whole.command, Commands)
    _, found, _ = whole.command.resolve_command(whole, [command])
    assert found is not None
    with found.make_context(command, [], parent=whole, resilient_parsing=True) as inner:
        typer.echo(found.get_help(inner))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", "-V", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """From parallel text to a translator you own."""


def main() -> None:
    """Run the command. Exit status: 0 done, 1 not done, 2 a mistake that the message explains, 130 Ctrl-C."""
    _open_closed_streams()
    _wait_without_spinning()
    _leave_in_order()
    if isinstance(sys.stdout, TextIOWrapper):  # names of files that are no text are printed as they are
        sys.stdout.reconfigure(errors="surrogateescape")
    for stream in (sys.stdout, sys.stderr):
        if system.WINDOWS and isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # else an arrow or a Czech word would be an error
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # what cannot be printed is told, not lost when Python ends
    except UserError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        extra = extra_of((error.name or "").partition(".")[0])
        if extra is None:
            raise
        _fail(missing_extra(str(error.name), extra, "this command"))
    except MemoryError:
        _fail(_OUT_OF_MEMORY)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        _fail(_OUT_OF_MEMORY)
    except BrokenPipeError:  # the reader of our output has gone, as in  dragoman translate … | head
        _drop_what_cannot_be_printed()
        sys.exit(1)
    except OSError as error:  # of the system: a file that may not be read, a disk that is full
        _drop_what_cannot_be_printed()
        _fail(_OUT_OF_MEMORY if is_out_of_memory(error) else _describe(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _drop_what_cannot_be_printed() -> None:
    """Python would try it again when it ends, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """A stream that the caller has closed (`<&-`) is opened: its number would be that of the next file, and a
    library that prints would write into it. Nothing is read from it, and to print to it is an error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # the lowest number is taken
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _wait_without_spinning() -> None:
    """Tell OpenMP's threads to sleep soon when they wait for each other, unless it has been told something.

    By default they spin, and on a machine that has other work to do this slows training down several times;
    on an idle one it gains nothing. It is read when torch is loaded, which is later than this.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    if sys.platform == "darwin":  # what Apple's GPU cannot compute, the CPU does
        os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")


def _leave_in_order() -> None:
    """SIGTERM ends a command as Ctrl-C does, so that it removes what it has not finished. Training and
    services have ways of their own."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def _describe(error: OSError) -> str:
    about = "" if error.filename is None else f"{error.filename}: "
    return f"{about}{error.strerror or error}"


def _fail(error: UserError | str) -> None:
    print(f"dragoman: {error}", file=sys.stderr)
    sys.exit(2)
