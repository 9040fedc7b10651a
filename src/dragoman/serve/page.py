"""The page at `/`: one file, no request to anywhere else, and only the script in it may run."""

import base64
import hashlib
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response


def router_of() -> APIRouter:
    page = Path(__file__).with_name("page.html").read_text("utf-8")
    policy = "; ".join([
        "default-src 'none'",
        f"script-src '{_hash(page, 'script')}'",
        f"style-src '{_hash(page, 'style')}'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ])  # fmt: skip
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return Response(status_code=204)

    return router


def _hash(page: str, element: str) -> str:
    """As a browser takes it: of what stands between the tags."""
    inside = page.split(f"<{element}>")[1].split(f"</{element}>")[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(inside.encode("utf-8")).digest()).decode("ascii")
