"""The page of an export: what is copied beside it, what it may load, and what it does in a browser."""

import functools
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from typer.testing import CliRunner

from browser import Browser, find
from dragoman.cli.main import app
from dragoman.decode.search.config import SearchConfig
from dragoman.engines.manifest import verify_export
from dragoman.engines.onnx_export import export_onnx
from dragoman.engines.onnx_page import library_files, write_page
from dragoman.errors import UserError
from engines.conftest import MakeModel

STAND_IN = """
// ort-wasm-simd-threaded.asyncify.mjs ort-wasm-simd-threaded.asyncify.wasm ort-wasm-of-another-version.wasm
export const env = { backends: { onnx: { wasm: {} } } };
export const pipeline = async (task, model, options) => {
  const about = await (await fetch(`${env.localModelPath}${model}/config.json`)).json();
  const paths = env.backends.onnx.wasm.wasmPaths;
  window.asked = [task, model, options, env.allowRemoteModels, paths, about.model_type];
  return async (text) => {
    if (text === 'fail') throw new Error('no such word');
    return [{ translation_text: text.toUpperCase() }];
  };
};
"""
"""What the page uses of transformers.js."""


def packages(directory: Path) -> Path:
    """A folder like node_modules."""
    main = directory / "@huggingface/transformers/dist/transformers.min.js"
    runtime = directory / "onnxruntime-web/dist"
    for folder in (main.parent, runtime):
        folder.mkdir(parents=True)
    main.write_text(STAND_IN, "utf-8")
    for ending in ("mjs", "wasm"):
        (runtime / f"ort-wasm-simd-threaded.asyncify.{ending}").write_text(ending)
        (runtime / f"ort-wasm-simd-threaded.jsep.{ending}").write_text("not for this one")
    return directory


@pytest.fixture
def page(tmp_path: Path, make_model: MakeModel) -> Path:
    export = export_onnx(
        make_model(), tmp_path / "export", search=SearchConfig(), languages=("en", "de"), quantize="int8"
    )
    return write_page(export, library_files(packages(tmp_path / "node_modules")), tmp_path / "page")


def test_everything_that_the_page_names_is_beside_it(page: Path) -> None:
    assert verify_export(page / "model") == []
    assert json.loads((page / "page.json").read_text("utf-8")) == {"languages": ["en", "de"], "dtype": "q8"}
    assert sorted(path.name for path in (page / "library").iterdir()) == [
        "ort-wasm-simd-threaded.asyncify.mjs",
        "ort-wasm-simd-threaded.asyncify.wasm",
        "transformers.min.js",
    ]
    html, script = ((page / name).read_text("utf-8") for name in ("index.html", "page.js"))
    for name in (*re.findall(r'(?:src|href)="([^"]+)"', html), *re.findall(r"from '([^']+)'", script)):
        assert (page / name).is_file(), name
    assert not re.search(r"https?://", html + script)
    policy = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', html)
    assert policy is not None and policy[1].startswith("default-src 'none'; ")
    sources = {source for rule in policy[1].split("; ") for source in rule.split()[1:]}
    assert sources == {"'none'", "'self'", "'wasm-unsafe-eval'", "blob:", "data:"}


def test_libraries_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not there; install it with  npm install @huggingface"):
        library_files(tmp_path)
    for path in packages(tmp_path / "node_modules").rglob("*.asyncify.wasm"):
        path.unlink()
    with pytest.raises(UserError, match=r"no ort-wasm….wasm of onnxruntime-web"):
        library_files(tmp_path / "node_modules")


def test_a_page_of_another_export_is_refused(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["export", str(tmp_path), "--page", str(tmp_path)])
    assert found.exit_code != 0 and "--page: a browser runs the export for ONNX" in str(found.exception)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(directory: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(directory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")
def test_the_page_translates_line_by_line(page: Path, tmp_path: Path) -> None:
    target = "return document.getElementById('target').textContent === values[0]"
    ready = "return !document.getElementById('translate').disabled"
    message = "return document.getElementById('message').textContent"
    with served(page) as address, Browser(tmp_path) as browser:
        browser.open(address)
        browser.until(ready)
        library = f"{address}library/"
        options = {"dtype": "q8", "device": "wasm"}
        asked = browser.run("return window.asked")
        assert asked == ["translation", "model", options, False, library, "marian"]
        assert browser.run("return document.title") == "en → de"
        browser.run("document.getElementById('source').value = values[0]", "a dog\n\n <b>two</b> ")
        browser.click("#translate")
        browser.until(target, "A DOG\n\n<B>TWO</B>")
        browser.run("document.getElementById('source').value = 'fail'")
        browser.click("#translate")
        browser.until("return document.getElementById('message').textContent.endsWith('no such word')")
        browser.until(ready)
        browser.run(
            "document.addEventListener('securitypolicyviolation', "
            "(event) => (window.refused = event.violatedDirective)); "
            "await fetch('https://example.org/').catch(() => null)"
        )
        assert browser.until("return window.refused") == "connect-src"
        (page / "model" / "config.json").unlink()
        browser.open(address)
        browser.until(f"{message}.startsWith('The model could not be loaded')")
