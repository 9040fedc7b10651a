"""What a person gets from the wheel with an extra: an environment with the wheel and what the extra names."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from serve.exported import small_export
from structure.test_deploy import steps as steps_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"
TINY_DEMO = Path(__file__).parents[1] / "tiny_demo.py"
GUARD = 600
"""Seconds after which something hangs, on a busy machine too."""


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


def environment_with(wheel: Path, extra: str, home: Path) -> Path:
    """The folder of commands of a new environment: the wheel, installed, and links to the packages that it
    asks for with an extra. They are those of this environment, and there is no other."""
    venv.create(home, with_pip=find_spec("pip") is None)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python] if find_spec("pip") else [python, "-m", "pip"]
    install = ["--disable-pip-version-check", "install", "--quiet", "--no-compile", "--no-index", "--no-deps"]
    done = run(*pip, *install, wheel, cwd=home)
    assert done.returncode == 0, done.stderr
    (packages,) = home.glob("lib/python*/site-packages")
    (own,) = packages.glob("dragoman-*.dist-info")
    for needed in closure(PathDistribution(own), extra):
        for name in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
            link = packages / name
            if not link.exists():
                link.symlink_to(str(needed.locate_file(name)))
    return home / "bin"


def closure(top: Distribution, extra: str) -> list[Distribution]:
    """All that it asks for, and what that asks for, as far as it is installed here."""
    found: dict[str, Distribution] = {}
    waiting = [(top, extra)]
    while waiting:
        asking, with_extra = waiting.pop()
        for text in asking.requires or ():
            asked = Requirement(text)
            if asked.marker is not None and not asked.marker.evaluate({"extra": with_extra}):
                continue
            for more in {"", *asked.extras}:
                key = f"{asked.name}[{more}]"
                if key not in found:
                    try:
                        found[key] = distribution(asked.name)
                    except PackageNotFoundError:  # for another platform, or the test says what is missing
                        continue
                    waiting.append((found[key], more))
    return list(found.values())


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("environment") / "venv"
    yield environment_with(wheel, "demo", home)
    shutil.rmtree(home)


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


def test_the_demo_from_an_empty_environment(commands: Path, tmp_path: Path) -> None:
    dragoman = commands / "dragoman"
    where = run(commands / "python", "-c", "import dragoman; print(dragoman.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(commands.parent), where.stdout + where.stderr
    assert run(dragoman, "--version", cwd=tmp_path).stdout.startswith("dragoman ")

    done = run(commands / "python", "-P", TINY_DEMO, "--out", "runs/demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"held-out dates\D+30\D+\d+\D+[\d.]+%", done.stdout)
    assert "translate runs/demo" in done.stdout

    dates = run(dragoman, "translate", "runs/demo", "9 mai 2026", "Saturday, May 9, 2026", cwd=tmp_path)
    assert dates.returncode == 0 and dates.stdout.count("\n") == 2, dates.stderr

    wrong = run(dragoman, "translate", "runs/nothing", "9 mai 2026", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("dragoman: ") and wrong.stderr.count("\n") == 1


def test_the_container_that_serves_step_by_step(wheel: Path, tmp_path: Path) -> None:
    """The environment, without PyTorch; the command; the check of health."""
    home, export, keys = tmp_path / "venv", small_export(tmp_path / "export"), tmp_path / "keys.txt"
    steps = steps_of(ROOT / "deploy" / "Dockerfile.serve")
    (extra,) = (found[1] for _, rest in steps if (found := re.search(r"pip install '\.\[(\w+)\]'", rest)))
    environment_with(wheel, extra, home)
    has_torch = "import importlib.util as u; print(u.find_spec('torch'))"
    assert run(home / "bin" / "python", "-c", has_torch, cwd=tmp_path).stdout == "None\n"
    keys.write_text("a-key-of-a-client\n", encoding="utf-8")
    keys.chmod(0o600)
    places = {
        "dragoman": str(home / "bin" / "dragoman"),
        "/keys.txt": str(keys),
        "/models/en-de": str(export),
    }
    words = [word for name in ("ENTRYPOINT", "CMD") for word in json.loads(dict(steps)[name])]
    command = [*(places.pop(word, word) for word in words), "--port", "0"]
    assert not places
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            port = process.stderr.readline().split()[0].rstrip("/").rpartition(":")[2]
            check = json.loads(dict(steps)["HEALTHCHECK"].partition("CMD ")[2])
            assert check[0] == "python" and ":5000/" in check[-1]
            check = [home / "bin" / "python", *check[1:-1], check[-1].replace(":5000/", f":{port}/")]
            assert run(*check, cwd=tmp_path).returncode == 0
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=GUARD) as client:
                asked = {"texts": ["the cat sat on {name}."], "source": "en", "target": "de"}
                assert client.post("/api/v1/translate", json=asked).status_code == 401
                client.headers["Authorization"] = "Bearer a-key-of-a-client"
                found = client.post("/api/v1/translate", json=asked)
                assert found.status_code == 200 and "{name}" in found.json()["translations"][0]["text"]
                looked = {"text": "the cat", "source": "en", "target": "de"}
                refused = client.post("/api/v1/explain", json=looked)
                assert refused.status_code == 400 and "shows no attention" in refused.json()["error"]
        finally:
            process.terminate()
            process.communicate(timeout=GUARD)
    assert process.returncode == 0
    shutil.rmtree(home)
