"""mkdocs: the pages of the site that are not in docs/, and links that lead to them."""

from typing import Any

from mkdocs.structure.files import File, Files
from pages import ROOT, markdown_of, pages_from_repository


def on_files(files: Files, config: Any) -> Files:
    for page, source in pages_from_repository().items():
        if source.suffix in (".md", ".ipynb"):
            files.append(File.generated(config, page, content=source.read_text("utf-8")))
        else:
            files.append(File.generated(config, page, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ARG001
    name = page.file.src_uri
    return markdown_of(pages_from_repository().get(name, ROOT / "docs" / name), name)
