"""What the site has beside docs/: files of the repository, notebooks, and the generated reference.

mkdocs is not needed here, so the tests can check the same pages without building the site.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOVED = {
    "README.md": "index.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
}
"""Where a file of the repository is in the site."""
FOLDERS = {"docs": "", "benchmarks/results": "measurements", "recipes": "recipes", "notebooks": "notebooks"}
COPIED = (".png", ".svg", ".tsv")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.MULTILINE | re.DOTALL)


def site_path(path: str) -> str | None:
    """Where a file, given from the root of the repository, is in the site; None if it is not there."""
    if path in MOVED:
        return MOVED[path]
    for folder, place in FOLDERS.items():
        if path.startswith(f"{folder}/") and (folder == "docs" or path.endswith((".md", ".ipynb", *COPIED))):
            below = path.removeprefix(f"{folder}/")
            return posixpath.join(place, below.replace(".ipynb", ".md"))
    return None


def source_path(path: str) -> str:
    """The file of the repository that a page of the site was made from."""
    for source, place in MOVED.items():
        if path == place and source != "README.md":
            return source
    for folder, place in FOLDERS.items():
        if place and path.startswith(f"{place}/"):
            source = f"{folder}/{path.removeprefix(f'{place}/')}"
            return source.replace(".md", ".ipynb") if folder == "notebooks" else source
    return f"docs/{path}"


def pages_from_repository() -> dict[str, Path]:
    """Pages and pictures of the site that are not in docs/, with their files."""
    sources = [ROOT / name for name in MOVED if name != "README.md"]
    sources += sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    sources += sorted((ROOT / "notebooks").glob("*.ipynb"))
    sources += sorted(path for path in (ROOT / "recipes").rglob("*") if path.suffix in (".md", *COPIED))
    return {site_path(source.relative_to(ROOT).as_posix()) or "": source for source in sources}


def markdown_of(source: Path, page: str) -> str:
    """The text of a page as the site has it: links lead to pages of the site."""
    if source.suffix == ".ipynb":
        text = notebook_as_markdown(json.loads(source.read_text("utf-8")), source.name)
    else:
        text = source.read_text("utf-8")
    return generated_parts(links_in_site(text, page))


def links_in_site(text: str, page: str) -> str:
    """Links between files of the repository, as links between pages. One out of the site becomes text."""
    folder = posixpath.dirname(source_path(page))

    def moved(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        name, _, anchor = target.partition("#")
        if not name or re.match(r"[a-z]+:", target):
            return match[0]
        place = site_path(posixpath.normpath(posixpath.join(folder, name)))
        if place is None:
            return label
        relative = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"{mark}[{label}]({relative}{'#' + anchor if anchor else ''})"

    parts, at = [], 0
    for fence in FENCE.finditer(text):  # code stays as it is
        parts += [LINK.sub(moved, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(moved, text[at:])])


def notebook_as_markdown(notebook: dict, name: str) -> str:
    """Cells one after the other, code with what it printed. The notebook itself can be downloaded."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![What the cell has drawn](data:image/png;base64,{data['image/png']})")
            else:
                printed = "".join(output.get("text", data.get("text/plain", [])))
                parts.append(f"```text\n{printed.rstrip()}\n```")
    parts.append(f"This page is a notebook: `notebooks/{name}` in the repository.")
    return "\n\n".join(parts) + "\n"


def generated_parts(text: str) -> str:
    """Put the reference that is made from the code where a page asks for it."""
    for name, make in (("commands", commands), ("http api", http_api), ("measurements", measurements)):
        if f"<!-- all {name} -->" in text:
            text = text.replace(f"<!-- all {name} -->", make())
    return text


def measurements() -> str:
    """A list of all files of benchmarks/results by their titles."""
    found = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    titles = [(path.read_text("utf-8").partition("\n")[0].lstrip("# "), path.name) for path in found]
    return "\n".join(f"- [{title}](measurements/{name})" for title, name in titles)


def commands() -> str:
    """The help of every command, in groups."""
    from typer.main import get_command

    from dragoman.cli.help import GROUPS
    from dragoman.cli.main import app

    group = get_command(app)
    context = group.make_context("dragoman", [], resilient_parsing=True)
    parts = []
    for title, names in GROUPS.items():
        parts.append(f"### {title}")
        for name in names:
            command = group.get_command(context, name)  # type: ignore[attr-defined]
            with command.make_context(name, [], parent=context, resilient_parsing=True) as inner:
                inner.terminal_width = inner.max_content_width = 96
                parts.append(f"#### dragoman {name}\n\n```text\n{command.get_help(inner).rstrip()}\n```")
    return "\n\n".join(parts)


def http_api() -> str:
    """Our own HTTP API as FastAPI describes it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from serve.standin import client_of, echoes, service_of  # type: ignore[import-not-found]

    described = client_of(service_of(), models=echoes("echo")).get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    parts, shown = [], set()
    for path, operations in described["paths"].items():
        for verb, operation in operations.items():
            parts.append(f"### {verb.upper()} {path}\n\n{operation.get('description', '')}")
            rows = [_row(one["name"], one["schema"] | one) for one in operation.get("parameters", [])]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                rows += _fields(content["schema"], schemas)
                shown.add(_name(content["schema"]))
            parts.append(_table(rows))
            content = operation["responses"]["200"].get("content", {})
            answer = content.get("application/json", {}).get("schema")
            if answer:
                listed = answer.get("type") == "array"
                shown.add(_name(answer))
                rows = _fields(answer["items"] if listed else answer, schemas)
                parts.append(f"Answer{', a list of' if listed else ''}:\n\n{_table(rows)}" if rows else "")
    for name, schema in schemas.items():
        if name not in shown and (rows := _fields(schema, schemas)) and not name.startswith("Body_"):
            parts.append(f"### {name}\n\n{schema.get('description', '')}\n\n{_table(rows)}")
    return "\n\n".join(part for part in parts if part.strip())


def _name(schema: dict) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _fields(schema: dict, schemas: dict) -> list[tuple[str, str, str]]:
    found = schemas.get(_name(schema), schema)
    return [_row(name, field) for name, field in found.get("properties", {}).items()]


def _row(name: str, field: dict) -> tuple[str, str, str]:
    return f"`{name}`", _type(field), field.get("description", "").replace("\n", " ").replace("<", "&lt;")


def _type(schema: dict) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    name = _name(schema) or schema.get("type", "any")
    return f"{name}, default `{json.dumps(schema['default'])}`" if "default" in schema else name


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Without a column of meanings where none is given."""
    if not rows:
        return ""
    width = 3 if any(meaning for _, _, meaning in rows) else 2
    lines = [("field", "type", "meaning"), ("---", "---", "---"), *rows]
    return "\n".join("| " + " | ".join(line[:width]) + " |" for line in lines)
