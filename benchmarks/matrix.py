"""Which versions of Python and PyTorch does the package work with? Each pair is installed and tested.

    python benchmarks/matrix.py                          all pairs of PAIRS whose Python is found here
    python benchmarks/matrix.py 3.12:2.13.0 3.13:none    some, and the table keeps the others

Every pair has an environment of its own in a temporary folder, with the package and all its extras as pip
chooses them, and runs a quick part of the suite. `none` is for machines where PyTorch for a Python can only
be had with gigabytes of GPU libraries: the package without torch, and the tests that need none. The table is
benchmarks/results/matrix.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from anywhere import Outcome, Setting, run_suite

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "matrix.md"
PAIRS = ("3.11:2.10.0", "3.11:2.13.0", "3.12:2.13.0", "3.13:2.13.0", "3.13:2.15.0")
NO_TORCH = "none"
WITHOUT_TORCH = ("text", "data", "serve", "evaluate", "test_files.py")
TOOLS = (
    *("pytest>=8.3", "pytest-xdist>=3.6", "jaxtyping>=0.3", "beartype>=0.19", "hypothesis>=6.100"),
    *("httpx>=0.27", "deepl>=1.20", "libretranslatepy>=2.1", "schemathesis>=4.0", "babel>=2.14"),
)
"""What the tests need that go without torch."""
QUICK = (
    *("nn", "models", "learning", "kernels", "engines", "checkpoint"),
    *("battery/test_readers.py", "battery/test_runs.py", "text", "cli"),
    *("training/test_resume.py", "training/test_api.py", "training/test_text.py"),
    *("data/test_prepared.py", "data/test_formats.py", "serve/test_own.py"),
)
HEAD = "| Python | torch | ctranslate2 | numpy | passed | failed | skipped | seconds | |"
VERSIONS = (
    "import sys, ctranslate2, numpy\n"
    "try: from torch import __version__ as torch\n"
    "except ImportError: torch = 'none'\n"
    "print(sys.version.split()[0], torch, ctranslate2.__version__, numpy.__version__)"
)


def find_python(version: str) -> str | None:
    """On the path, or where pyenv puts it."""
    own = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(own.glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


def install(python: str, torch: str, folder: Path) -> tuple[Path, str]:
    """The Python of a new environment, and what pip said where it could not install."""
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    own = folder / "venv" / "bin" / "python"
    pip = [str(own), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    package = [f"torch=={torch}", "-e", ".[all]", "--group", "dev"]
    if torch == NO_TORCH:
        package = ["-e", ".[parquet,plots,serve]", *TOOLS]
    for arguments in (["--upgrade", "pip>=25.1"], package):
        done = subprocess.run([*pip, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return own, done.stderr.strip().splitlines()[-1]
    return own, ""


def try_pair(pair: str) -> str:
    """A line of the table."""
    version, _, torch = pair.partition(":")
    python = find_python(version)
    if python is None:
        return f"| {version} | {torch} | | | | | | | there is no Python {version} here |"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        own, problem = install(python, torch, folder)
        if problem:
            return f"| {version} | {torch} | | | | | | | not installed: {problem} |"
        versions = subprocess.run([str(own), "-c", VERSIONS], capture_output=True, text=True, check=True)
        arguments = ["--numprocesses", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
        arguments += without_torch(own) if torch == NO_TORCH else [f"tests/{place}" for place in QUICK]
        found = run_suite(own, arguments, Setting("as it is"), folder)
    return line(versions.stdout.split(), found)


def without_torch(python: Path) -> list[str]:
    """What pytest is told so that no file is collected that needs it."""
    places = [f"tests/{place}" for place in WITHOUT_TORCH]
    command = [str(python), "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *places]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    needing = [row.split()[1] for row in done.stdout.splitlines() if row.startswith("ERROR ")]
    return [*places, *(f"--ignore={file}" for file in needing)]


def line(versions: list[str], found: Outcome) -> str:
    counts = found.passed, len(found.failed), found.skipped, round(found.seconds)
    failed = ", ".join(f"`{name}`" for name in found.failed)
    return f"| {' | '.join((*versions, *map(str, counts)))} | {failed} |"


def write(lines: dict[str, str]) -> None:
    page = [
        "# Versions of Python and PyTorch",
        "",
        "`python benchmarks/matrix.py`: the package with all its extras, and a quick part of the suite "
        f"({len(QUICK)} folders and files); in rows without torch, the tests that need none.",
        "",
        HEAD,
        "|" + " --- |" * 9,
        *(lines[pair] for pair in sorted(lines)),
    ]
    RESULTS.write_text("\n".join(page) + "\n", encoding="utf-8")


def known() -> dict[str, str]:
    """The lines of the table that is there, by pair."""
    if not RESULTS.exists():
        return {}
    rows = [row for row in RESULTS.read_text("utf-8").splitlines() if row.startswith("| 3.")]
    cells = {row: [cell.strip() for cell in row.split("|")] for row in rows}
    return {f"{'.'.join(c[1].split('.')[:2])}:{c[2].partition('+')[0]}": row for row, c in cells.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="*", default=[], help="PYTHON:TORCH")
    lines = known()
    for pair in parser.parse_args().pairs or PAIRS:
        print(f"\n=== Python and torch {pair} ===", flush=True)
        lines[pair] = try_pair(pair)
        write(lines)
        print(lines[pair], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
