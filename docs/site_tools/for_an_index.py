"""Prepare a checkout for a package index, which shows the README by itself and knows no repository:

    python docs/site_tools/for_an_index.py https://github.com/OWNER/NAME v0.1.0

Links and pictures of README.md become addresses in the repository, and pyproject.toml gets them too. The
release workflow does it before it builds; the address of the repository is known only there.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)")


def with_addresses(markdown: str, repository: str, tag: str) -> str:
    """The text with no link that is relative."""

    def address(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({repository}/{kind}/{tag}/{link[3]})"

    return _LINK.sub(address, markdown)


def with_urls(pyproject: str, repository: str, tag: str) -> str:
    """The metadata of the package with the addresses that an index lists."""
    pages = {
        "Source": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Changes": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = "".join(f'{name} = "{page}"\n' for name, page in pages.items())
    return f"{pyproject.rstrip()}\n\n[project.urls]\n{lines}"


def main(repository: str, tag: str) -> None:
    for name, change in (("README.md", with_addresses), ("pyproject.toml", with_urls)):
        path = ROOT / name
        path.write_text(change(path.read_text("utf-8"), repository.rstrip("/"), tag), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
