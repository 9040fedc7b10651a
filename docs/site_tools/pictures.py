"""Draw the pictures of docs/images anew, from runs that the tutorials make:

    python docs/site_tools/pictures.py runs/en-de runs/attention runs/one-vector

The first run is that of the translators' tutorial, the others are those of the students'. Pages are opened in
a headless Chromium, as in the browser tests.
"""

import base64
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "benchmarks"))
from browser import Browser  # noqa: E402

SENTENCE = "The cover must be removed after ten minutes."
NUMBER = "four thousand one hundred and thirty-four"
CROSS = "decoder.layers.1.cross_attention"
DONE = "return document.querySelector('#view[aria-busy=false]') !== null"


def main(run: Path, attention: Path, one_vector: Path) -> None:
    text = SENTENCE.replace(" ", "+")
    views = {
        "translate": f"translate?run={run.name}&text={text}",
        "attention": f"attention?run={run.name}&text={text}&module={CROSS}&heads=0.1"
        f"&masked={CROSS}~2.3&threshold=0.2",
        "heads": f"attention?run={run.name}&text={text}&module={CROSS}&mode=grid",
        "beam": f"beam?run={run.name}&text={text}&beam=3",
        "model": f"model?run={run.name}&text={text}&step=3&position=3",
        "head": f"head?run={run.name}&text={text}&module={CROSS}&position=3",
        "compare": f"compare?left={attention.name}&right={one_vector.name}&text={NUMBER.replace(' ', '+')}",
        "data": f"data?run={run.name}&count=20&chosen=4&sort=unsure",
        "training": f"training?run={run.name}&text={text}",
    }
    with tempfile.TemporaryDirectory() as home, Browser(Path(home)) as browser:
        with started("studio", run, attention, one_vector) as address:
            browser.open(f"{address}#{views['translate']}")
            for name, hash_ in views.items():
                browser.run("document.getElementById('view')?.setAttribute('aria-busy', 'true')")
                browser.run("location.hash = values[0]; dispatchEvent(new Event('hashchange'))", hash_)
                browser.until(DONE)
                shoot(browser, f"studio-{name}")
        with started("serve", run, "--memory", run) as address:
            browser.open(address)
            browser.run("document.getElementById('text').value = values[0]; soon()", SENTENCE)
            browser.until("return document.querySelector('#result .sentence') !== null")
            browser.click("#result .word[data-word='1']")
            browser.until("return document.querySelectorAll('#others button').length > 0")
            browser.point_at("h1")
            shoot(browser, "service")
    for figure, *options in (("alignment", "--words"), ("importance",), ("beam", "--beam", "3"), ("curves",)):
        command = ["explain", run, SENTENCE, "--figure", figure, *options]
        subprocess.run([*dragoman(*command), "--out", IMAGES / f"explain-{figure}.svg"], check=True)


def dragoman(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "dragoman", *map(str, arguments)]


@contextmanager
def started(*arguments: object) -> Iterator[str]:
    """The address of a command that serves a page."""
    command = dragoman(*arguments, "--port", "0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        line = next(line for line in child.stderr if "http://" in line)
        try:
            yield re.findall(r"http://\S+", line)[0]
        finally:
            child.terminate()


def shoot(browser: Browser, name: str) -> None:
    """The whole page, in as few colours as it has."""
    from PIL import Image

    browser.devtools("Emulation.clearDeviceMetricsOverride")
    high = browser.run("return document.documentElement.scrollHeight")
    size = {"width": 1265, "height": high, "deviceScaleFactor": 1, "mobile": False}  # without the scroll bar
    browser.devtools("Emulation.setDeviceMetricsOverride", **size)
    browser.run("await new Promise((resolve) => setTimeout(resolve, 600))")  # lines fade in
    browser.run("scrollTo(0, 0)")  # a header that stays at the top would cover what stands there
    shot = browser.devtools("Page.captureScreenshot", format="png")
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(256).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
