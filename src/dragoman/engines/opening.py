"""Open an export of any engine with the interface of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Union

from dragoman.engines.manifest import CTRANSLATE2, ONNX, read_manifest
from dragoman.errors import UserError, missing_extra
from dragoman.extras import EXTRAS

if TYPE_CHECKING:
    from dragoman.engines.ctranslate2 import CTranslate2Translator
    from dragoman.engines.onnx_model import OnnxTranslator

_MODULES = {CTRANSLATE2: "fast", ONNX: "onnx"}
"""The extra that each engine needs."""


def open_export(
    directory: Path, which: str = "best", device: str = "auto"
) -> Union["CTranslate2Translator", "OnnxTranslator"]:
    """Open an export. It has one checkpoint, and runs on the CPU."""
    if which != "best":
        raise UserError(f"{directory}: this is an export, which holds one checkpoint; there is no '{which}'")
    if device not in ("auto", "cpu"):
        raise UserError(f"{directory}: this is an export, which runs on the CPU, not on '{device}'")
    engine = read_manifest(directory).engine
    refuse_without_packages(engine)
    if engine == ONNX:
        from dragoman.engines.onnx_model import OnnxTranslator

        return OnnxTranslator.open(directory)
    from dragoman.engines.ctranslate2 import CTranslate2Translator

    return CTranslate2Translator.open(directory)


def refuse_without_packages(engine: str) -> None:
    """Refuse with one sentence if the engine's packages are not installed."""
    extra = _MODULES[engine]
    if missing := EXTRAS[extra].missing:
        raise missing_extra(missing[0], extra, f"an export for {engine}")
