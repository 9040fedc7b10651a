"""Do the tests pass on other machines? They are run again under what other machines have.

    python benchmarks/anywhere.py                 a part of the suite, as `make test-anywhere` does
    python benchmarks/anywhere.py --all --write   all of it, and the table in benchmarks/results/anywhere.md
    python benchmarks/anywhere.py old             under one setting alone; more options of pytest after --

`SETTINGS` is the list. Instruction sets are forced on PyTorch (its own kernels, oneDNN and MKL), on
CTranslate2 and on NumPy's OpenBLAS: each of them rounds otherwise.
"""

import argparse
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "anywhere.md"
WHOLE = ("engines", "kernels", "learn", "training/test_resume.py")
"""What is run under every setting: other rounding and ignored signals have been seen to break these."""
DIVIDED = (
    *("nn", "models", "learning", "battery", "parity", "decode", "probe"),
    *("training/test_task.py", "training/test_guided.py"),
    *("cli/test_use.py", "cli/test_explain.py", "cli/test_search_report.py", "cli/test_demo.py"),
)
"""What else touches numbers or the terminal: a share of it is run under each setting."""
TURKISH = "tr_TR.UTF-8"
"""Here the capital of i is not I."""


@dataclass(frozen=True)
class Setting:
    told: str
    variables: dict[str, str] = field(default_factory=dict)
    ignores_ctrl_c: bool = False
    umask: int = -1
    open_files: int | None = None
    elsewhere: bool = False
    """HOME does not exist, TMPDIR has a space in its name, standard input is closed."""
    busy: int = 0
    """So many processes compute beside it."""
    whole: tuple[str, ...] = WHOLE
    divided: tuple[str, ...] = DIVIDED
    share: str = "1/1"
    """Which of the divided tests are run: `2/3` is the second third."""


SETTINGS = {
    "old": Setting(
        "no AVX, 1 thread, Turkish, Kathmandu, 37 columns, Ctrl-C ignored",
        {
            "ATEN_CPU_CAPABILITY": "default",
            "DNNL_MAX_CPU_ISA": "SSE41",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_CBWR": "COMPATIBLE",
            "OPENBLAS_CORETYPE": "Nehalem",
            "CT2_FORCE_CPU_ISA": "GENERIC",
            "OMP_NUM_THREADS": "1",
            "LC_ALL": TURKISH,
            "TZ": "Asia/Kathmandu",
            "COLUMNS": "37",
            "NO_COLOR": "1",
        },
        ignores_ctrl_c=True,
        share="1/3",
    ),
    "avx2": Setting(
        "AVX2, MKL in CTranslate2, 4 threads, locale C, St. John's, 211 columns, umask 077, 256 open files, "
        "no HOME, a space in TMPDIR, no standard input",
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "DNNL_MAX_CPU_ISA": "AVX2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_CBWR": "AVX2",
            "OPENBLAS_CORETYPE": "Haswell",
            "CT2_FORCE_CPU_ISA": "AVX2",
            "CT2_USE_MKL": "1",
            "OMP_NUM_THREADS": "4",
            "LC_ALL": "C",
            "TZ": "America/St_Johns",
            "COLUMNS": "211",
            "FORCE_COLOR": "1",
        },
        umask=0o077,
        open_files=256,
        elsewhere=True,
        share="2/3",
    ),
    "busy": Setting(
        "eight busy processes beside it",
        busy=8,
        whole=("serve/test_drain.py", "serve/test_crowd.py", "training/test_rendezvous.py"),
        divided=("serve",),
        share="3/4",
    ),
    "windows": Setting(
        "dragoman can neither import fcntl nor fork, as on Windows; tests that fork are skipped",
        {"PYTHONPATH": str(ROOT / "tests" / "without_unix")},
        whole=("test_files.py", "data/test_cache.py", "checkpoint/test_checkpoint.py"),
        divided=("data", "text", "cli"),
        share="1/4",
    ),
}


@dataclass(frozen=True)
class Outcome:
    passed: int
    failed: tuple[str, ...]
    skipped: int
    seconds: float
    status: int
    computed: float = 0.0
    """Seconds of all its processes: what other work on the machine hardly changes."""


def run_suite(
    python: Path | str, arguments: Sequence[str], setting: Setting, folder: Path, cwd: Path = ROOT
) -> Outcome:
    """Run pytest under a setting. What it says goes to the terminal as it comes."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        str(python),
        "-m",
        "pytest",
        "--junitxml",
        str(report),
        "-o",
        "junit_family=xunit1",
        *arguments,
    ]
    began, before = time.monotonic(), _computed()
    with _busy(setting.busy):
        status = subprocess.run(
            command,
            cwd=cwd,
            env=_environment(setting, folder),
            umask=setting.umask,
            preexec_fn=lambda: _before(setting),
            close_fds=True,
            check=False,
        ).returncode
        computed = _computed() - before  # without the busy ones, which nobody has waited for yet
    return replace(_read(report, time.monotonic() - began, status), computed=computed)


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _before(setting: Setting) -> None:
    """In the new process, before it is pytest's."""
    if setting.ignores_ctrl_c:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if setting.open_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (setting.open_files, setting.open_files))
    if setting.elsewhere:
        os.close(0)


def _environment(setting: Setting, folder: Path) -> dict[str, str]:
    found = {**os.environ, **setting.variables}
    if setting.elsewhere:
        temporary = folder / "a folder"
        temporary.mkdir(exist_ok=True)
        found |= {"HOME": str(folder / "nowhere"), "TMPDIR": str(temporary)}
    if found.get("LC_ALL") == TURKISH:
        found |= {"LOCPATH": str(folder)} if _make_turkish(folder) else {"LC_ALL": "C"}
    return found


def _make_turkish(folder: Path) -> bool:
    """The package `locales` has the source of it; without that there is no such locale here."""
    command = ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(folder / TURKISH)]
    made = (
        shutil.which("localedef") and subprocess.run(command, capture_output=True, check=False).returncode < 2
    )
    if not made or not (folder / TURKISH).exists():
        print("there is no Turkish locale here (apt-get install locales), and C stands in for it", flush=True)
        return False
    return True


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Processes that compute until they are ended, or until this one is gone."""
    program = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _read(report: Path, seconds: float, status: int) -> Outcome:
    if not report.exists():
        return Outcome(0, ("pytest itself",), 0, seconds, status or 1)
    cases = list(ElementTree.parse(report).iter("testcase"))
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = tuple(f"{case.get('file') or case.get('classname')}::{case.get('name')}" for case in bad)
    return Outcome(len(cases) - len(bad) - skipped, names, skipped, seconds, status)


HEAD = ("setting", "what is set", "tests", "passed", "failed", "skipped", "minutes", "CPU minutes", "")


def row(name: str, one: Outcome, everything: bool) -> str:
    counts = (one.passed, len(one.failed), one.skipped)
    minutes = (f"{one.seconds / 60:.1f}", f"{one.computed / 60:.1f}")
    tests = "all" if everything else "the part"
    failed = ", ".join(f"`{test}`" for test in one.failed)
    return f"| {' | '.join((name, SETTINGS[name].told, tests, *map(str, counts), *minutes, failed))} |"


def write(rows: dict[str, str]) -> None:
    """The table, with the rows of settings that are not run now as they were."""
    kept = RESULTS.read_text("utf-8").splitlines() if RESULTS.exists() else []
    lines = {name: next((line for line in kept if line.startswith(f"| {name} |")), "") for name in SETTINGS}
    page = [
        "# The suite under what other machines have",
        "",
        "`python benchmarks/anywhere.py --write` runs the part of the suite that `make test-anywhere` runs "
        "under each setting; with `--all` it runs every test. The machine had other work beside it, which "
        "the minutes show and the CPU minutes hardly do.",
        "",
        f"| {' | '.join(HEAD)} |",
        "|" + " --- |" * len(HEAD),
        *filter(None, (lines | rows).values()),
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores.",
    ]
    RESULTS.write_text("\n".join(page) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", default=[], help=f"of {', '.join(SETTINGS)}; all unless named")
    parser.add_argument("--all", action="store_true", help="the whole suite, not the part for each setting")
    parser.add_argument("--write", action="store_true", help="write the table")
    own, further = _split(sys.argv[1:])
    asked = parser.parse_args(own)
    names = asked.settings or list(SETTINGS)
    for name in names:
        if name not in SETTINGS:
            parser.error(f"no setting is called {name!r}; there are {', '.join(SETTINGS)}")
    found: dict[str, Outcome] = {}
    rows: dict[str, str] = {}
    for name in names:
        setting = SETTINGS[name]
        print(f"\n=== {name}: {setting.told} ===", flush=True)
        arguments = ["--numprocesses", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *further]
        if not asked.all:
            arguments += ["--share", setting.share, "--whole", ",".join(setting.whole)]
            apart = [place for place in setting.whole if place.partition("/")[0] not in setting.divided]
            arguments += [f"tests/{place}" for place in (*apart, *setting.divided)]
        with tempfile.TemporaryDirectory() as folder:
            found[name] = run_suite(sys.executable, arguments, setting, Path(folder))
        rows[name] = row(name, found[name], asked.all)
        print(rows[name], flush=True)
        if asked.write:
            write(rows)
    return max(one.status for one in found.values())


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


if __name__ == "__main__":
    sys.exit(main())
