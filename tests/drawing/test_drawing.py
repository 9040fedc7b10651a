"""The drawings of all pages, tested by node; and that there is one of each."""

import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError
from importlib.metadata import files as files_of
from importlib.resources import files
from pathlib import Path

import pytest

from dragoman.drawing import assets
from dragoman.probe.page import fill_template
from dragoman.serve.page import SCRIPTS as SERVICE
from dragoman.serve.page import asset

STUDIO = {
    path.name: path.read_text("utf-8") for path in Path(str(files("dragoman.studio") / "assets")).glob("*.js")
}
SCRIPTS = {name: text for name, text in assets().items() if name.endswith(".js")} | STUDIO
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the drawings with")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drawing")
    (found / "package.json").write_text('{"type": "module"}')
    for name, text in SCRIPTS.items():
        (found / name).write_text(text, encoding="utf-8")
    for path in Path(__file__).parent.glob("*.mjs"):
        (found / path.name).write_text(path.read_text("utf-8"), encoding="utf-8")
    return found


def node(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@needs_node
def test_the_drawings(folder: Path) -> None:
    done = node(folder, "--test", "--test-reporter=tap", "drawing.test.mjs")
    assert done.returncode == 0, done.stdout[-4000:]


def linter() -> str | None:
    """The program that the package oxlint has brought along."""
    try:
        found = [str(file.locate()) for file in files_of("oxlint") or () if file.stem == "oxlint"]
    except PackageNotFoundError:
        return None
    return found[0] if found else None


@pytest.mark.skipif(linter() is None, reason="no oxlint to check the scripts with")
def test_no_script_has_a_name_that_is_not_declared_or_not_used(folder: Path) -> None:
    """All modules, and the scripts of the service's page as the one script that they become."""
    (folder / "service.js").write_text("".join(asset(f"{name}.js") for name in SERVICE), encoding="utf-8")
    (folder / "bundle.js").write_text(
        fill_template({}).split("<script>")[1].split("</script>")[0], encoding="utf-8"
    )
    for names, options in (([*SCRIPTS, "service.js"], []), (["bundle.js"], ["--allow", "no-unused-vars"])):
        command = [str(linter()), "-c", str(Path(__file__).with_name("oxlint.json"))]
        done = subprocess.run(
            [*command, *options, *names], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_every_export_is_used_somewhere() -> None:
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("*.mjs"))
    page = (files("dragoman.probe") / "assets" / "page.js").read_text("utf-8")
    for name, text in SCRIPTS.items():
        for each in re.findall(r"^export (?:async )?(?:function|const) (\w+)", text, re.MULTILINE):
            others = [own for other, own in SCRIPTS.items() if other != name]
            assert any(re.search(rf"\b{each}\b", own) for own in (*others, tests, page)), (name, each)


def test_there_is_one_of_each_drawing() -> None:
    """Pages draw with these modules; none has a heat-map or a tree of its own."""
    page = (files("dragoman.probe") / "assets" / "page.js").read_text("utf-8")
    for text in (page, *STUDIO.values()):
        assert "createElementNS" not in text and "createImageData" not in text
    made = [name for name, text in SCRIPTS.items() if "createElementNS" in text]
    assert made == ["dom.js"]


def test_light_and_dark_have_the_same_names() -> None:
    style = assets()["design.css"]
    blocks = re.findall(r":root[^{]*\{([^{}]*)\}", style)
    names = [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in blocks]
    assert len(names) == 3
    assert names[1] == names[2], "by choice and by the system: the same"
    assert set(names[1]) <= set(names[0])
    used = {
        name
        for text in (style, *(path.read_text("utf-8") for path in _styles()))
        for name in re.findall(r"var\((--[\w-]+)\)", text)
    }
    assert used <= set(names[0]), "a page that needs a colour takes one of the design's"


def _styles() -> list[Path]:
    return [
        Path(str(files(package) / "assets" / name))
        for package, name in (
            ("dragoman.studio", "style.css"),
            ("dragoman.probe", "page.css"),
            ("dragoman.serve", "page.css"),
            ("dragoman.serve", "docs.css"),
        )
    ]
