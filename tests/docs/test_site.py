"""The documentation site: navigation, links and anchors of all its pages; and, where mkdocs is installed, the
whole build."""

import importlib.util
import os
import posixpath
import re
import subprocess
import sys
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "site_tools"))
from pages import FENCE, LINK, links_in_site, markdown_of, notebook_as_markdown, pages_from_repository  # noqa: E402


@cache
def sources() -> dict[str, Path]:
    """Every page of the site with the file it is made from."""
    own = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    return own | {name: path for name, path in pages_from_repository().items() if name.endswith(".md")}


@cache
def text_of(name: str) -> str:
    return markdown_of(sources()[name], name)


def slug(title: str) -> str:
    """As Python-Markdown makes anchors of headings."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda match: match[1] or "", title)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


@cache
def anchors_of(name: str) -> set[str]:
    found: dict[str, int] = {}
    for title in re.findall(r"^#+ +(.+?)\s*$", FENCE.sub("", text_of(name)), re.MULTILINE):
        found[slug(title)] = found.get(slug(title), 0) + 1
    return {f"{name}_{n}" if n else name for name, count in found.items() for n in range(count)}


def settings() -> dict:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def nav_pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [page for part in parts for page in nav_pages(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    listed = nav_pages(settings()["nav"])
    assert len(set(listed)) == len(listed)
    assert set(listed) == {name for name in sources() if not name.startswith("measurements/")}


@pytest.mark.parametrize("name", sorted(sources()))
def test_links_lead_to_pages_and_anchors_of_the_site(name: str) -> None:
    files = set(sources()) | set(pages_from_repository())
    files |= {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()}
    broken = []
    for _, _, target in LINK.findall(FENCE.sub("", text_of(name))):
        place, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = posixpath.normpath(posixpath.join(posixpath.dirname(name), place)) if place else name
        if page not in files or (anchor and anchor not in anchors_of(page)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("name", sorted(sources()))
def test_lists_and_tables_have_an_empty_line_before_them(name: str) -> None:
    """Python-Markdown, unlike GitHub, takes them for text without it."""
    lines = FENCE.sub("", text_of(name)).splitlines()
    joined = [
        line
        for before, line in pairwise(lines)
        if re.match(r"([-*] |\d+\. |\|)", line)
        and before.strip()
        and not re.match(r"\s|[-*] |\d+\. |\||#", before)
    ]
    assert joined == []


def test_links_out_of_docs_lead_to_pages_of_the_site() -> None:
    text = "[a](../../recipes/results.md#x) [b](../../recipes/news-en-de.yaml) [c](../data.md)"
    moved = "[a](../recipes/results.md#x) b [c](../data.md)"
    assert links_in_site(text, "start/x.md") == moved
    picture = "![d](../recipes/results/news.png)"
    assert links_in_site(picture, "data.md") == "![d](recipes/results/news.png)"
    assert links_in_site("[a](docs/data.md) [b](LICENSE)", "project/changelog.md") == "[a](../data.md) b"
    assert links_in_site("```\n[a](b.md)\n```\n", "data.md") == "```\n[a](b.md)\n```\n"


def test_a_notebook_becomes_a_page() -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["2\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text."]},
        {"cell_type": "code", "source": ["print(1 + 1)"], "outputs": [printed]},
    ]
    drawn = {"output_type": "display_data", "data": {"image/png": "iVBO"}}
    cells.append({"cell_type": "code", "source": ["plot()"], "outputs": [drawn]})
    page = notebook_as_markdown({"cells": cells}, "x.ipynb")
    assert "](data:image/png;base64,iVBO)" in page
    assert page.startswith("# Title\nText.\n\n```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n")


def test_nothing_is_fetched_from_elsewhere() -> None:
    """No fonts, scripts or styles of other hosts in the settings and in the pages' own HTML."""
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert settings()["theme"]["font"] is False and "offline" in settings()["plugins"]
    assert "://" not in config.replace("(prefers-color-scheme", "")
    for path in [*DOCS.rglob("*.css"), *DOCS.rglob("*.js")]:
        assert not re.search(r"https?://|//[a-z]+\.", path.read_text("utf-8")), path


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed")
def test_the_site_can_be_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert {name.replace(".md", ".html") for name in sources()} <= pages
    assert (tmp_path / "search" / "search_index.js").is_file()
    fetched = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="?(?:https?:)?//', re.IGNORECASE)
    assert [page for page in sorted(pages) if fetched.search((tmp_path / page).read_text("utf-8"))] == []
