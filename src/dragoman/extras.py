"""The optional parts of dragoman: what each is for, which packages it needs, and how to install it."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Extra:
    purpose: str
    modules: tuple[str, ...]
    """Modules of the installed packages that are imported."""

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed. Nothing is imported."""
        return [module for module in self.modules if find_spec(module) is None]


EXTRAS = {
    "train": Extra("train, and translate with PyTorch", ("torch", "jaxtyping")),
    "fast": Extra("translate with CTranslate2, without PyTorch", ("ctranslate2",)),
    "onnx": Extra("export for ONNX Runtime, and check such an export", ("onnx", "onnxruntime")),
    "serve": Extra(
        "translate over HTTP",
        ("ctranslate2", "fastapi", "starlette", "h11", "pydantic", "multipart", "rapidfuzz"),
    ),
    "studio": Extra(
        "look into runs in a browser", ("torch", "jaxtyping", "fastapi", "starlette", "h11", "pydantic")
    ),
    "demo": Extra("the demo", ("torch", "jaxtyping", "fastapi", "starlette", "h11", "pydantic", "babel")),
    "parquet": Extra("read and write Parquet", ("pyarrow",)),
    "images": Extra("read PNG and JPEG", ("PIL",)),
    "rouge": Extra("score summaries with ROUGE", ("rouge_score",)),
    "plots": Extra("draw pictures", ("matplotlib",)),
    "cluster": Extra("work on several machines, and on object storage", ("ray", "fsspec")),
    "tensorboard": Extra("log to TensorBoard", ("tensorboard",)),
}


def extra_of(module: str) -> str | None:
    """The extra that installs a module, the smallest first."""
    return next((name for name, extra in EXTRAS.items() if module in extra.modules), None)


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
    """The origin of this installation. Empty if unknown."""
    import json
    from importlib import metadata

    try:
        text = metadata.distribution("dragoman").read_text("direct_url.json")
        found = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
