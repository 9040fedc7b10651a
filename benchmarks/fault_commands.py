"""Commands of dragoman in forks of this process, which has imported everything that they need: they begin at
once, and can be killed, watched and held to limits of time and memory."""

import atexit
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["OMP_NUM_THREADS"] = "1"  # forks of a process with several threads may wait for ever

import ctranslate2  # noqa: F401 (imported here once, so that the forks need not)
import torch

import dragoman.checkpoint.huggingface
import dragoman.engines.ctranslate2
import dragoman.training.api  # noqa: F401
from dragoman.cli.main import main as dragoman_main
from dragoman.training.optim import load_compiler
from fault_operations import Operations

load_compiler()

TRACEBACK_STATUS = 70
LIMIT_SECONDS = 120.0
_TEMPORARY = "temporary"


@dataclass(frozen=True)
class Ended:
    status: int
    """Exit status; negative: the signal that ended it."""
    output: str
    """The end of what it printed, on both streams."""
    seconds: float
    timed_out: bool
    operations: int

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL and not self.timed_out

    @property
    def fault(self) -> str | None:
        """What no command may end in; None where it ended in order."""
        if self.timed_out:
            return "hang"
        if self.status < 0 or self.status == TRACEBACK_STATUS or "Traceback (most recent" in self.output:
            return "traceback"
        if self.status and not self.output.strip():
            return "traceback"  # it failed without a word
        return None


def start(
    arguments: Sequence[str],
    directory: Path,
    prepare: Callable[[Operations], None] | None = None,
    memory: int | None = None,
) -> int:
    """Fork, and run a command in `directory` ({here} in its arguments); the process id. What it prints
    goes to files beside it."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = TRACEBACK_STATUS
    operations = Operations(directory)
    try:
        _enter(directory)
        if prepare is not None:
            prepare(operations)
        operations.install()
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        sys.argv = ["dragoman", *(each.replace("{here}", str(directory)) for each in arguments)]
        dragoman_main()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        _leave(directory, operations, status)
    return 0


def _enter(directory: Path) -> None:
    os.setsid()
    os.chdir(directory)
    temporary = directory / _TEMPORARY
    temporary.mkdir(exist_ok=True)
    # Python would try the folder out with a file of four bytes, which a kill in that moment leaves.
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    os.environ["XDG_CACHE_HOME"] = str(directory / "kept")
    os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    printed = os.open(_printed(directory), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, target in ((nothing, 0), (printed, 1), (printed, 2)):
        os.dup2(descriptor, target)
    sys.stdin, sys.stdout = open(0), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115


def _leave(directory: Path, operations: Operations, status: int) -> None:
    """As an interpreter ends, but for what only frees memory."""
    try:
        operations.fail = lambda _name, _path: None
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        _counted(directory).write_text(str(operations.count))
    finally:
        os._exit(status)


def _printed(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.printed")


def _counted(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.counted")


def wait(child: int, directory: Path, limit: float = LIMIT_SECONDS, kill_after: float | None = None) -> Ended:
    """Until the process ends, is killed after so many seconds, or hangs: it has worked for longer than the
    limit, or has waited so long without working. A busy machine makes nobody hang."""
    began = moved = time.monotonic()
    timed_out, code, worked = False, 0, 0.0
    while True:
        found, code = os.waitpid(child, os.WNOHANG)
        if found:
            break
        now = time.monotonic()
        if now - moved > 1 and (work := _cpu_seconds(child)) > worked + 0.01:
            moved, worked = now, work
        timed_out = worked > limit or now - moved > limit
        if timed_out or (kill_after is not None and now - began > kill_after):
            os.killpg(child, signal.SIGKILL) if _leads(child) else os.kill(child, signal.SIGKILL)
            _, code = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    seconds = time.monotonic() - began
    printed, counted = _printed(directory), _counted(directory)
    output = printed.read_bytes()[-20_000:].decode("utf-8", "replace") if printed.exists() else ""
    operations = int(counted.read_text()) if counted.exists() else 0
    for path in (printed, counted):
        path.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(code), output, seconds, timed_out, operations)


def _cpu_seconds(child: int) -> float:
    """Of a process, in its own code and in the system's."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _leads(child: int) -> bool:
    try:
        return os.getpgid(child) == child
    except ProcessLookupError:
        return False


def run_command(
    arguments: Sequence[str],
    directory: Path,
    *,
    prepare: Callable[[Operations], None] | None = None,
    memory: int | None = None,
    limit: float = LIMIT_SECONDS,
    kill_after: float | None = None,
) -> Ended:
    return wait(start(arguments, directory, prepare, memory), directory, limit, kill_after)
