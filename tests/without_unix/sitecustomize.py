"""Takes away what Windows lacks and dragoman must not need, from every Python process whose PYTHONPATH has
this folder: dragoman cannot import `fcntl`, and it cannot fork. A test that forks by itself is skipped."""

import builtins
import os
import sys

_WITHOUT_FCNTL = ["dragoman"]
_real_import = builtins.__import__


def _guarded(name, globals=None, *rest, **named):
    if name == "fcntl" and str((globals or {}).get("__name__")).split(".")[0] in _WITHOUT_FCNTL:
        raise ModuleNotFoundError("No module named 'fcntl'")
    return _real_import(name, globals, *rest, **named)


def _fork():
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] == "dragoman":
            raise AttributeError("module 'os' has no attribute 'fork'")
        frame = frame.f_back
    import pytest

    pytest.skip("the test forks")


builtins.__import__ = _guarded
os.fork = os.forkpty = _fork
