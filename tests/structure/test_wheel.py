"""What a person gets from `pip install 'dragoman[demo]'`: the wheel alone, in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"


def run(*command: str | Path, cwd: Path, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONUTF8": "1", "COLUMNS": "100"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("dragoman-*.whl"))


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of commands of a new environment with the wheel and what it needs."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(home, with_pip=True)
    scripts = home / "bin"
    pip = [
        scripts / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-compile",
    ]
    constraints = ROOT / "constraints.txt"
    done = run(*pip, "--constraint", constraints, f"{wheel}[demo]", cwd=home)
    if done.returncode:  # no package index can be reached: borrow what it needs, and install the wheel alone
        done = run(*pip, "--no-index", "--no-deps", wheel, cwd=home)
        assert done.returncode == 0, done.stderr
        packages = next(home.glob("lib/python*/site-packages"))
        warnings.warn("no package index: the dependencies were borrowed, not installed", stacklevel=1)
        (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"])
    yield scripts
    shutil.rmtree(home)  # torch is large, and pytest keeps the folders of three runs


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".typed", ".html", ".css", ".js")
    }
    assert {name for name in names if ".dist-info/" not in name} == files
    assert "dragoman/py.typed" in names
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_demo_from_an_empty_environment(commands: Path, tmp_path: Path) -> None:
    dragoman = commands / "dragoman"
    where = run(commands / "python", "-c", "import dragoman; print(dragoman.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(commands.parent), where.stdout + where.stderr
    assert run(dragoman, "--version", cwd=tmp_path).stdout.startswith("dragoman ")

    done = run(dragoman, "demo", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    exact = re.search(r"held-out dates\D+\d+\D+\d+\D+([\d.]+)%", done.stdout)
    assert exact is not None, done.stdout
    assert float(exact[1]) > 80
    assert "dragoman translate runs/demo" in done.stdout

    date = run(dragoman, "translate", "runs/demo", "9 mai 2026", "Saturday, May 9, 2026", cwd=tmp_path)
    assert date.returncode == 0, date.stderr
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d\n){2}", date.stdout)

    wrong = run(dragoman, "translate", "runs/nothing", "9 mai 2026", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("dragoman: ") and wrong.stderr.count("\n") == 1
