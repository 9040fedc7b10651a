"""Training from the page: `dragoman train` and others as child processes, on files of given directories.

    page ─ token ─▶ Workshop ─ sys.executable -m dragoman corpus | train | resume | evaluate | export | serve

One child at a time. It is a process like one of a terminal: it goes on if the page is closed, and is asked to
save and stop (SIGINT) when the studio ends.
"""

import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import UserError
from dragoman.system import interruption

MOST_FILES = 500
_DEEPEST = 4
_TAIL = 6000
"""Characters of a child's output that are shown."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")
_LOOK_SECONDS = 300
_STOP_SECONDS = 60
_HIDDEN = ("runs", "node_modules", "__pycache__")


class Workshop:
    def __init__(self, roots: Sequence[Path], runs: Path) -> None:
        self.roots = [root.resolve() for root in roots]
        self.runs = runs.resolve()
        self.token = secrets.token_urlsafe(24)
        self._child: subprocess.Popen[bytes] | None = None
        self._said = bytearray()
        self._what = ""
        self._lock = threading.Lock()

    def files(self) -> dict[str, Any]:
        """Files to train on: regular files below the directories, with their sizes."""
        found: list[dict[str, Any]] = []
        for root in self.roots:
            for folder, folders, names in os.walk(root):
                depth = len(Path(folder).relative_to(root).parts)
                folders[:] = sorted(
                    name for name in folders if depth < _DEEPEST and name[0] != "." and name not in _HIDDEN
                )
                for name in sorted(names):
                    path = Path(folder) / name
                    if name[0] != "." and path.is_file() and not path.is_symlink():
                        found.append({"path": str(path), "bytes": path.stat().st_size})
                    if len(found) >= MOST_FILES:
                        return {"files": found, "roots": [str(root) for root in self.roots], "more": True}
        return {"files": found, "roots": [str(root) for root in self.roots], "more": False}

    def check(self, names: Sequence[str]) -> list[str]:
        """Files that a page has named: below the directories, and nothing else."""
        found = []
        for name in names:
            path = Path(name).resolve()
            if not any(path.is_relative_to(root) for root in self.roots):
                raise UserError(f"{name[:200]}: outside the directories that were given with --data")
            if path.suffix.lower() in (".yaml", ".yml"):
                raise UserError(
                    f"{name[:200]}: a recipe can name files anywhere; train it on the command line"
                )
            if not path.is_file():
                raise UserError(f"{name[:200]}: there is no such file")
            found.append(str(path))
        if not found:
            raise UserError("choose the files to train on first")
        return found

    def directory(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise UserError(
                "name: letters, digits, dots, dashes and underscores, and a letter or digit first"
            )
        return self.runs / name

    def report(self, files: Sequence[str]) -> dict[str, Any]:
        return {"text": self._look("corpus", *self.check(files))}

    def plan(self, files: Sequence[str], name: str, minutes: float) -> dict[str, Any]:
        return {"text": self._look(*self._train(files, name, minutes), "--dry-run")}

    def start(self, files: Sequence[str], name: str, minutes: float) -> dict[str, Any]:
        return self._begin(f"train {name}", self._train(files, name, minutes))

    def resume(self, name: str) -> dict[str, Any]:
        return self._begin(f"resume {name}", ["resume", str(self.directory(name))])

    def evaluate(self, name: str, files: Sequence[str]) -> dict[str, Any]:
        return self._begin(f"evaluate {name}", ["evaluate", str(self.directory(name)), *self.check(files)])

    def export(self, name: str) -> dict[str, Any]:
        """Export to CTranslate2 with int8 weights, inside the run."""
        return self._begin(f"export {name}", ["export", str(self.directory(name)), "--quantize", "int8"])

    def serve(self, name: str) -> dict[str, Any]:
        """On loopback alone, at a port that is free."""
        return self._begin(f"serve {name}", ["serve", str(self.directory(name)), "--port", "0"])

    def stop(self) -> dict[str, Any]:
        """Stop like Ctrl-C: training saves a checkpoint, and can be resumed."""
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.send_signal(interruption())
        return self.state()

    def state(self) -> dict[str, Any]:
        child = self._child
        code = None if child is None else child.poll()
        text = self._said[-_TAIL:].decode("utf-8", errors="replace")
        return {
            "what": self._what,
            "running": child is not None and code is None,
            "code": code,
            "text": text,
            "address": self._address(text) if code is None else None,
            "runs": self._names(),
        }

    def close(self) -> None:
        self.stop()
        if self._child is not None:
            try:
                self._child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._child.terminate()

    def _names(self) -> list[str]:
        if not self.runs.is_dir():
            return []
        return sorted(path.parent.name for path in self.runs.glob("*/manifest.json"))

    def _address(self, text: str) -> str | None:
        """The address of the running service."""
        found = _ADDRESS.search(text) if self._what.startswith("serve ") else None
        return found and found[0]

    def _train(self, files: Sequence[str], name: str, minutes: float) -> list[str]:
        out = self.directory(name)
        return ["train", *self.check(files), "--out", str(out), "--minutes", f"{minutes:g}"]

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "dragoman", *arguments]

    def _look(self, *arguments: str) -> str:
        """The output of a command that only looks."""
        try:
            done = subprocess.run(
                self._command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(),
                timeout=_LOOK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"dragoman {arguments[0]}: no answer after {_LOOK_SECONDS} seconds") from None
        return done.stdout.decode("utf-8", errors="replace")

    def _begin(self, what: str, arguments: Sequence[str]) -> dict[str, Any]:
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                raise UserError(f"{self._what}: it is still running; stop it first")
            self._said.clear()
            self._what = what
            self._child = subprocess.Popen(
                self._command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,  # a Ctrl-C in the terminal of the studio is passed on by `close`
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
            )
            threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()
        return self.state()

    def _listen(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self._said += line
            if len(self._said) > 4 * _TAIL:
                del self._said[: -2 * _TAIL]
        child.stdout.close()
        child.wait()


def _environment() -> dict[str, str]:
    return os.environ | {"NO_COLOR": "1", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
