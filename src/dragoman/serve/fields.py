"""The fields of a request, from JSON, a form, or the query string."""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from dragoman.serve.refusal import Refusal

_MOST_FIELDS = 1000
_TRUE, _FALSE = ("1", "true", "yes"), ("0", "false", "no", "")


class Fields:
    """The fields of a request. A form field that occurs several times has a list as its value."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if isinstance(value, bool | int | float):
            value = str(value).lower()
        if value is None:
            raise Refusal(400, f"Invalid request: missing {name} parameter")
        if not isinstance(value, str):
            raise Refusal(400, f"Invalid request: {name} must be a text")
        return value

    def texts(self, name: str) -> list[str]:
        """One text or several."""
        value = self._values.get(name)
        if value is None:
            raise Refusal(400, f"Invalid request: missing {name} parameter")
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in found):
            raise Refusal(400, f"Invalid request: {name} must be a text or a list of texts")
        return found

    def names(self, name: str) -> tuple[str, ...]:
        """Names from a list, or from one text separated by commas."""
        if self._values.get(name) is None:
            return ()
        found = [part.strip() for text in self.texts(name) for part in text.split(",")]
        return tuple(part for part in found if part)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name, default)
        told = str(value).lower()
        if told not in _TRUE + _FALSE:
            raise Refusal(400, f"Invalid request: {name} must be true or false")
        return told in _TRUE

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self._values.get(name, default)
        try:
            number = int(str(value))
        except ValueError:
            raise Refusal(400, f"Invalid request: {name} must be a whole number") from None
        if not least <= number <= most:
            raise Refusal(400, f"Invalid request: {name} must be from {least} to {most}")
        return number

    def file(self, name: str) -> UploadFile:
        value = self._values.get(name)
        if not isinstance(value, UploadFile):
            raise Refusal(400, f"Invalid request: missing {name} parameter")
        return value


async def read_fields(request: Request) -> Fields:
    """The fields of a request. Those of the body take precedence over the query string. A GET may have a body
    too: some clients send one."""
    values = _grouped(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        try:
            if kind == "multipart/form-data":
                form = await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=1 << 20)
                items = form.multi_items()
            else:
                # Starlette takes unescaped bytes for Latin-1; curl -d sends what it is given, in UTF-8.
                text = (await request.body()).decode("utf-8")
                items = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except (HTTPException, MultiPartException, ValueError, LookupError, AttributeError):
            raise Refusal(400, "Invalid request: the form cannot be read") from None
        values |= _grouped(items)
    elif body := await request.body():
        values |= read_object(body)
    return Fields(values)


def read_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is not valid text
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid request: the body is not valid JSON") from None
    if not isinstance(found, dict):
        raise Refusal(400, "Invalid request: the body must be a JSON object")
    return found


def _grouped(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for name, value in items:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}
