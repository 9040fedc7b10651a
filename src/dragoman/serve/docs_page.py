"""The page at `/docs`: requests of the native API and of the other dialects, with examples and without
scripts. On a server without translators it is also at `/`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from dragoman.serve.page import assembled, policy_of

_EXAMPLES: dict[str, Any] = {
    "text": "Good morning.",
    "texts": ["Good morning.", "Thank you."],
    "translation": "Guten Morgen.",
    "source": "en",
    "target": "de",
    "id": "ID",
    "prompts": ["It was a dark and"],
}
TRANSLATING = (
    ("LibreTranslate", "POST /translate", """-d q='Good morning.' -d source=en -d target=de"""),
    (
        "LibreTranslate",
        "POST /suggest",
        """-d q='Good morning.' -d s='Guten Morgen.' -d source=en -d target=de""",
    ),
    ("LibreTranslate", "POST /translate_file", """-F file=@page.html -F source=en -F target=de"""),
    ("DeepL", "POST /v2/translate", """-d text='Good morning.' -d source_lang=EN -d target_lang=DE"""),
    ("DeepL", "POST /v2/document", """-F file=@page.html -F source_lang=EN -F target_lang=DE"""),
    ("Apertium", "GET /translate", """--get -d langpair='en|de' --data-urlencode q='Good morning.'"""),
    ("tmserver", "GET /tm/en/de/unit/Good%20morning.", ""),
)
OPENAI = (
    ("OpenAI", "GET /v1/models", ""),
    (
        "OpenAI",
        "POST /v1/completions",
        """-H 'Content-Type: application/json' \\\n  -d '{"model": "NAME", "prompt": "It was a dark and"}'""",
    ),
    (
        "OpenAI",
        "POST /v1/chat/completions",
        """-H 'Content-Type: application/json' \\\n  -d '{"model": "NAME", "messages": """
        """[{"role": "user", "content": "How are you?"}]}'""",
    ),
    (
        "OpenAI",
        "POST /v1/embeddings",
        """-H 'Content-Type: application/json' \\\n  -d '{"model": "NAME", "input": "Good morning."}'""",
    ),
)


def router_of(described: Mapping[str, Any], others: Sequence[tuple[str, str, str]], home: bool) -> APIRouter:
    rows = "".join([*_own(described), *map(_other, others)])
    page = assembled("docs").replace("<!-- requests -->", rows)
    if home:
        page = page.replace('<a href="/">Translate</a> · ', "")
    headers = {"Content-Security-Policy": policy_of(page)}
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def show() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    if home:
        router.add_api_route("/", show)

    return router


def _own(described: Mapping[str, Any]) -> Iterator[str]:
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            fields = list(_fields(operation, schemas))
            table = "".join(
                f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{escape(told)}</td></tr>"
                for name, kind, told, _ in fields
            )
            yield _section(
                "dragoman",
                f"{method.upper()} {path}",
                operation.get("description", ""),
                f"<table><tr><th>field</th><th>type</th><th></th></tr>{table}</table>" if table else "",
                _curl(method.upper(), path, operation, fields),
            )


def _other(row: tuple[str, str, str]) -> str:
    dialect, asked, options = row
    method, _, path = asked.partition(" ")
    command = f"curl -s {options} $SERVER{path}" if method == "GET" else f"curl -s $SERVER{path} {options}"
    return _section(dialect, asked, "", "", command)


def _section(dialect: str, asked: str, told: str, table: str, command: str) -> str:
    return (
        f"<section><h2><code>{escape(asked)}</code> <small>{escape(dialect)}</small></h2>"
        f'<p>{escape(told)}</p>{table}<pre tabindex="0">{escape(command)}</pre></section>\n'
    )


def _fields(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Name, type and meaning of each field, and whether it is required."""
    for one in operation.get("parameters", ()):
        yield one["name"], _type(one["schema"]), one.get("description", ""), one.get("required", False)
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        for name, own in schema["properties"].items():
            yield name, _type(own), own.get("description", ""), name in schema.get("required", ())


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    return str(schema.get("type", "object"))


def _curl(
    method: str, path: str, operation: Mapping[str, Any], fields: list[tuple[str, str, str, bool]]
) -> str:
    given = {name: _EXAMPLES[name] for name, _, _, _ in fields if name in _EXAMPLES}
    place = f"$SERVER{path.replace('{id}', str(given.pop('id', '')))}"
    kinds = operation.get("requestBody", {}).get("content", {})
    if "multipart/form-data" in kinds:
        form = " ".join(f"-F {name}={value}" for name, value in {"file": "@page.html", **given}.items())
        return f"curl -s {place} {form}"
    if kinds:
        way = "" if method == "POST" else f"-X {method} "
        return f"curl -s {way}{place} -H 'Content-Type: application/json' \\\n  -d '{json.dumps(given)}'"
    query = " ".join(f"--data-urlencode '{name}={value}'" for name, value in given.items())
    way = "" if method == "GET" else f"-X {method} "
    return f"curl -s {way}--get {query} {place}" if query else f"curl -s {way}{place}"
