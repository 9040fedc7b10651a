"""What a package index shows has no link that leads nowhere there."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site_tools"))
from for_an_index import with_addresses, with_urls  # noqa: E402

AT = "https://example.org/o/n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md#b)", f"[a]({AT}/blob/v1/docs/a.md#b)"),
        ("![a](docs/a.png)", f"![a]({AT}/raw/v1/docs/a.png)"),
        ("[a](https://b.org/c) [d](#e)", "[a](https://b.org/c) [d](#e)"),
    ],
)
def test_a_link(text: str, expected: str) -> None:
    assert with_addresses(text, AT, "v1") == expected


def test_the_readme() -> None:
    links = re.findall(r"\]\(([^)]*)\)", with_addresses((ROOT / "README.md").read_text("utf-8"), AT, "v1"))
    assert len(links) > 20 and all(link.startswith("https://") for link in links)


def test_the_metadata() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    before, after = tomllib.loads(text), tomllib.loads(with_urls(text, AT, "v1"))
    assert after["project"].pop("urls")["Changes"] == f"{AT}/blob/v1/CHANGELOG.md"
    assert after == before
