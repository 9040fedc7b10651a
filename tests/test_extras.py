"""The advice of a missing extra is a command that works as it is printed."""

import tomllib
from pathlib import Path
from shlex import split
from typing import Any

import pytest

from dragoman import extras


def comes_from(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any]) -> None:
    monkeypatch.setattr(extras, "_origin", lambda: origin)


def test_from_a_directory_of_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sources = tmp_path / "my sources"
    sources.mkdir()
    comes_from(monkeypatch, {"url": sources.as_uri(), "dir_info": {}})
    assert split(extras.install_command("serve")) == ["pip", "install", f"{sources}[serve]"]
    comes_from(monkeypatch, {"url": sources.as_uri(), "dir_info": {"editable": True}})
    assert split(extras.install_command("serve")) == ["pip", "install", "-e", f"{sources}[serve]"]


def test_from_a_repository_or_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    repository = {"url": "https://example.org/d.git", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}
    comes_from(monkeypatch, repository)
    asked = "dragoman[fast] @ git+https://example.org/d.git@v1"
    assert split(extras.install_command("fast")) == ["pip", "install", asked]
    comes_from(monkeypatch, {"url": "file:///tmp/dragoman-1.whl", "archive_info": {}})
    assert split(extras.install_command("fast"))[2] == "dragoman[fast] @ file:///tmp/dragoman-1.whl"


@pytest.mark.parametrize(
    "origin", [{}, {"url": "file:///no/such/directory", "dir_info": {}}], ids=["unknown", "gone"]
)
def test_otherwise_from_a_checkout_and_never_by_name(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any]
) -> None:
    comes_from(monkeypatch, origin)
    assert extras.install_command("plots").startswith("pip install '.[plots]'")


def test_every_extra_exists() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert set(extras.EXTRAS) <= set(project["project"]["optional-dependencies"])
