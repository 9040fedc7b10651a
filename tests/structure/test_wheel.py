"""What a person gets from the wheel with the extra `demo`: the wheel alone, in an empty environment."""

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

import httpx
import pytest

from serve.exported import small_export

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"


GUARD = 3600
"""Seconds after which something hangs: torch is installed and a model trained here, on a busy machine too."""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONUTF8": "1", "COLUMNS": "100"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=GUARD,
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
    pip, scripts = pip_of(home), home / "bin"
    done = run(*pip, f"{wheel}[demo]", cwd=home)
    if done.returncode:  # no package index can be reached: borrow what it needs, and install the wheel alone
        done = run(*pip, "--no-index", "--no-deps", wheel, cwd=home)
        assert done.returncode == 0, done.stderr
        packages = next(home.glob("lib/python*/site-packages"))
        warnings.warn("no package index: the dependencies were borrowed, not installed", stacklevel=1)
        (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"])
    yield scripts
    shutil.rmtree(home)  # torch is large, and pytest keeps the folders of three runs


def pip_of(home: Path) -> list[str | Path]:
    """The command that installs into a new environment."""
    venv.create(home, with_pip=True)
    options = ["--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    return [home / "bin" / "python", "-m", "pip", *options, "--constraint", ROOT / "constraints.txt"]


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    files = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".typed", ".html", ".css", ".js", ".json")
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
    assert float(exact[1]) > 10  # about 90; who guesses is right in one of some 36,500 dates
    assert "dragoman translate runs/demo" in done.stdout

    date = run(dragoman, "translate", "runs/demo", "9 mai 2026", "Saturday, May 9, 2026", cwd=tmp_path)
    assert date.returncode == 0, date.stderr
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d\n){2}", date.stdout)

    wrong = run(dragoman, "translate", "runs/nothing", "9 mai 2026", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("dragoman: ") and wrong.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_server_from_an_environment_without_torch(wheel: Path, tmp_path: Path) -> None:
    home, export = tmp_path / "venv", small_export(tmp_path / "export")
    done = run(*pip_of(home), f"{wheel}[serve]", cwd=tmp_path)
    if done.returncode:
        pytest.skip("no package index can be reached, and what could be borrowed has torch beside it")
    has_torch = "import importlib.util as u; print(u.find_spec('torch'))"
    assert run(home / "bin" / "python", "-c", has_torch, cwd=tmp_path).stdout == "None\n"
    command = [home / "bin" / "dragoman", "serve", export, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            address = process.stderr.readline().split()[0]
            asked = {"texts": ["the cat sat on {name}."], "source": "en", "target": "de"}
            found = httpx.post(f"{address}api/v1/translate", json=asked, timeout=GUARD)
            assert found.status_code == 200 and "{name}" in found.json()["translations"][0]["text"]
            looked = {"text": "the cat", "source": "en", "target": "de"}
            refused = httpx.post(f"{address}api/v1/explain", json=looked, timeout=GUARD)
            assert refused.status_code == 400 and "shows no attention" in refused.json()["error"]
        finally:
            process.terminate()
    shutil.rmtree(home)
