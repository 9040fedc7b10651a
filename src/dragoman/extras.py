"""The optional parts of dragoman, and the command that installs each: the one place that knows it."""

from typing import Any

EXTRA_OF = {
    "torch": "train",
    "jaxtyping": "train",
    "babel": "demo",
    "pyarrow": "parquet",
    "matplotlib": "plots",
    "tensorboard": "tensorboard",
    "ctranslate2": "fast",
    **dict.fromkeys(("fastapi", "starlette", "h11", "pydantic", "multipart"), "serve"),
}
"""Which extra brings a module."""


def install_command(extra: str) -> str:
    """What to type to get an extra, as it works from any directory.

    The package is on no index, so its name alone would install nothing, or somebody else's package. Python
    keeps where an installation came from (direct_url.json of PEP 610): a directory of sources, a repository
    or an archive. Where it does not say, the command is the one for a checkout.
    """
    from pathlib import Path
    from shlex import quote
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    origin = _origin()
    url = origin.get("url") or ""
    if isinstance(origin.get("dir_info"), dict) and url.startswith("file:"):
        directory = url2pathname(urlsplit(url).path)
        if Path(directory).is_dir():
            editable = "-e " if origin["dir_info"].get("editable") else ""
            return f"pip install {editable}{quote(f'{directory}[{extra}]')}"
        url = ""
    if isinstance(origin.get("vcs_info"), dict):
        revision = origin["vcs_info"].get("requested_revision")
        url = f"{origin['vcs_info'].get('vcs', 'git')}+{url}{f'@{revision}' if revision else ''}"
    if url:
        return f"pip install {quote(f'dragoman[{extra}] @ {url}')}"
    return f"pip install '.[{extra}]'  in the directory of dragoman's sources"


def _origin() -> dict[str, Any]:
    """Where this installation came from; empty if that is not known."""
    import json
    from importlib import metadata

    try:
        text = metadata.distribution("dragoman").read_text("direct_url.json")
        found = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
