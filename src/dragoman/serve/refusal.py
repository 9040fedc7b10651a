"""Error answers to clients, in the format of each dialect."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal

Dialect = Literal["own", "libretranslate", "deepl", "apertium", "tmserver", "openai"]


class Refusal(Exception):
    """Ends a request with this status. The message must not contain text of the request."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


def busy(message: str, status: int = 429, seconds: int = 1) -> Refusal:
    """The server is overloaded. The client is told when to retry."""
    return Refusal(status, message, {"Retry-After": str(seconds)})


def dialect_of(method: str, path: str) -> Dialect:
    if path.startswith(("/v2/", "/v3/")):
        return "deepl"
    if path.startswith("/tm/"):
        return "tmserver"
    if path.startswith("/v1/"):
        return "openai"
    if (
        path == "/"
        or path.startswith(("/api/", "/assets/"))
        or path in ("/docs", "/metrics", "/openapi.json", "/favicon.ico")
    ):
        return "own"
    if path in ("/listPairs", "/listLanguageNames", "/identifyLang"):
        return "apertium"
    return "apertium" if path == "/translate" and method == "GET" else "libretranslate"


def shape(dialect: Dialect, status: int, message: str) -> dict[str, Any]:
    """The body of an error. Clients crash on other shapes: `deepl` on a list, `libretranslatepy` on a missing
    body."""
    if dialect == "deepl":
        return {"message": message}
    if dialect == "openai":
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}
    if dialect == "apertium":
        phrase = HTTPStatus(status).phrase
        return {
            "status": "error",
            "code": status,
            "message": phrase,
            "explanation": message,
            "responseData": {"translatedText": None},
            "responseDetails": message,
            "responseStatus": status,
        }
    return {"error": message}
