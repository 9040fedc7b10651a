"""torch's compiler, which the optimizers import although nothing here is compiled."""

import importlib
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def load_compiler() -> None:
    """Import it now, and remove the empty temporary directory that it creates."""
    if "torch._dynamo" in sys.modules:
        return
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("torchinductor_*"))
    importlib.import_module("torch._dynamo")
    for made in set(folder.glob("torchinductor_*")) - before:
        with suppress(OSError):  # another process may use it already
            made.rmdir()
