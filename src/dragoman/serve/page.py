"""The page at `/`: one file without external requests. Only its own script may run."""

import base64
import hashlib
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from dragoman.drawing import assets

SCRIPTS = ("ask", "languages", "translate", "sentence", "documents", "main")
"""Files of `assets/`, in the order in which they are joined into one script."""


def router_of() -> APIRouter:
    page = assembled("page", SCRIPTS)
    headers = {"Content-Security-Policy": policy_of(page)}
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return Response(status_code=204)

    return router


def asset(name: str) -> str:
    return (files("dragoman.serve") / "assets" / name).read_text("utf-8")


def assembled(name: str, scripts: tuple[str, ...] = ()) -> str:
    """A page with its style and scripts inlined."""
    style = assets()["design.css"] + asset(f"{name}.css")
    script = "".join(asset(f"{one}.js") for one in scripts)
    page = asset(f"{name}.html").replace("<style></style>", f"<style>{style}</style>")
    return page.replace("<script></script>", f"<script>{script}</script>")


def policy_of(page: str) -> str:
    script = f"script-src '{_hash(page, 'script')}'" if "<script>" in page else "script-src 'none'"
    return "; ".join([
        "default-src 'none'",
        script,
        f"style-src '{_hash(page, 'style')}'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ])  # fmt: skip


def _hash(page: str, element: str) -> str:
    """The CSP hash of an element's contents, as browsers compute it."""
    inside = page.split(f"<{element}>")[1].split(f"</{element}>")[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(inside.encode("utf-8")).digest()).decode("ascii")
