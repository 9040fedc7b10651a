"""The optional parts of dragoman: what each is for, which packages it needs, and how to install it."""

import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Extra:
    purpose: str
    modules: tuple[str, ...]
    """What is imported of the packages that it installs."""

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed. Nothing is imported."""
        return [module for module in self.modules if find_spec(module) is None]


EXTRAS = {
    "train": Extra("train, and translate with PyTorch", ("torch", "jaxtyping")),
    "fast": Extra("translate with CTranslate2, without PyTorch", ("ctranslate2",)),
    "serve": Extra(
        "translate over HTTP",
        ("ctranslate2", "fastapi", "starlette", "h11", "pydantic", "multipart", "rapidfuzz"),
    ),
    "studio": Extra(
        "look into runs in a browser", ("torch", "jaxtyping", "fastapi", "starlette", "h11", "pydantic")
    ),
    "demo": Extra("the demo", ("torch", "jaxtyping", "fastapi", "starlette", "h11", "pydantic", "babel")),
    "parquet": Extra("read and write Parquet", ("pyarrow",)),
    "plots": Extra("draw pictures", ("matplotlib",)),
    "tensorboard": Extra("log to TensorBoard", ("tensorboard",)),
}


def extra_of(module: str) -> str | None:
    """The extra that installs a module, the smallest first."""
    return next((name for name, extra in EXTRAS.items() if module in extra.modules), None)


def install_command(extra: str) -> str:
    """The command that installs an extra from where this dragoman came from: a checkout, a repository, a file
    or an index."""
    package = Path(__file__).parent
    checkout = package.parents[1]
    if package.parent.name == "src" and (checkout / "pyproject.toml").is_file():
        return _from_directory(checkout, extra)
    try:
        told = distribution("dragoman").read_text("direct_url.json")
    except PackageNotFoundError:
        told = None
    if told is None:
        return f"pip install 'dragoman[{extra}]'"
    origin = json.loads(told)
    if "dir_info" in origin:
        return _from_directory(Path(unquote(urlsplit(origin["url"]).path)), extra)
    if "vcs_info" in origin:
        version = origin["vcs_info"]
        return f"pip install 'dragoman[{extra}] @ {version['vcs']}+{origin['url']}@{version['commit_id']}'"
    return f"pip install 'dragoman[{extra}] @ {origin['url']}'"


def _from_directory(directory: Path, extra: str) -> str:
    place = "." if directory == Path.cwd() else str(directory)
    return f"pip install '{place}[{extra}]'"
