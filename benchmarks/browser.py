"""A real browser by the W3C WebDriver protocol: Debian's chromium and chromedriver, spoken to with urllib."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's own name for a reference
GUARD = 600.0
"""Seconds after which something hangs; a busy machine takes its time."""


def find() -> tuple[str, str] | None:
    """The browser and its driver; None where either is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    def __init__(self, home: Path, width: int = 1280, height: int = 900) -> None:
        found = find()
        assert found is not None
        port = free_port()
        self._log = (home / "driver.log").open("wb")
        # A browser of its own home leaves nothing behind in that of the person who runs the tests.
        environment = os.environ | {"HOME": str(home)}
        self._driver = subprocess.Popen(
            [found[1], f"--port={port}"], stdout=self._log, stderr=self._log, env=environment
        )
        self._base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += [f"--user-data-dir={home / 'profile'}", f"--window-size={width},{height}"]
        arguments += ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
        options = {"binary": found[0], "args": arguments}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._session = ""
        self._await_driver()
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"

    def _await_driver(self) -> None:
        for _ in range(round(GUARD / 0.05)):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.05)
        raise AssertionError("chromedriver does not answer")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=GUARD) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, self._session + path, body)

    def open(self, address: str) -> None:
        self.ask("POST", "/url", {"url": address})

    def run(self, script: str, *values: Any) -> Any:
        """A script that may wait: what it returns, or what its promise becomes."""
        whole = (
            "const done = arguments[arguments.length - 1];"
            f"(async (...arguments_) => {{ {script} }})(...arguments).then((value) => done([value]), "
            "(error) => done({ error: String(error) }));"
        ).replace("arguments_", "values")
        found = self.ask("POST", "/execute/async", {"script": whole, "args": list(values)})
        assert isinstance(found, list), found
        return found[0] if found else None

    def until(self, script: str, *values: Any, seconds: float = GUARD) -> Any:
        """What a script returns, as soon as it is something."""
        end = time.monotonic() + seconds
        while not (found := self.run(script, *values)):
            assert time.monotonic() < end, f"never came true: {script}"
            time.sleep(0.03)
        return found

    def click(self, css: str) -> None:
        element = self.ask("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]
        self.ask("POST", f"/element/{element}/click", {})

    def point_at(self, css: str, right: int = 0, down: int = 0) -> None:
        """The pointer to the middle of an element, or so many pixels from there."""
        element = self.ask("POST", "/element", {"using": "css selector", "value": css})
        move = {"type": "pointerMove", "duration": 0, "origin": element, "x": right, "y": down}
        pointer = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": [move],
        }
        self.ask("POST", "/actions", {"actions": [pointer]})

    def press(self, *keys: str) -> None:
        presses = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": presses}]})

    def logs(self, kind: str) -> list[dict[str, Any]]:
        return self.ask("POST", "/se/log", {"type": kind})

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self) -> bytes:
        return base64.b64decode(self.ask("GET", "/screenshot"))

    def close(self) -> None:
        try:
            if self._session:
                self.ask("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(10)
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
