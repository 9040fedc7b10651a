"""A studio that runs, and a page of it in a browser."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from browser import Browser
from dragoman.serve.run import listen
from dragoman.studio.app import build
from dragoman.studio.subjects import Subjects
from dragoman.studio.workshop import Workshop

VIEWS = ("translate", "attention", "beam", "model", "head", "compare", "data", "training")
DRAWN = {
    "translate": ".piece",
    "attention": ".drawing svg text",
    "beam": ".drawing svg [data-fate]",
    "model": "#stage svg rect",
    "head": ".step svg rect",
    "compare": ".drawing svg image",
    "data": "tr.choice",
    "training": ".charts svg path",
}
READY = "return !!document.querySelector('#view[aria-busy=false] ' + values[0])"


class Page:
    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.run, self.until, self.click = browser.run, browser.until, browser.click

    def show(self, view: str, query: str = "", css: str = "") -> None:
        """By its address, in the page that is loaded; `query` may change what is shown."""
        self.run(
            "document.getElementById('view').ariaBusy = 'true'; const before = location.hash; "
            "location.hash = values[0]; "
            "if (location.hash === before) window.dispatchEvent(new Event('hashchange'));",
            f"{view}?{query}",
        )
        self.drawn(css or DRAWN[view])

    def drawn(self, css: str = "*") -> None:
        self.until(READY, css)

    def text(self, css: str) -> str:
        return self.run("return document.querySelector(values[0])?.textContent ?? ''", css)

    def count(self, css: str) -> int:
        return self.run("return document.querySelectorAll(values[0]).length", css)

    def resize(self, width: int | None) -> None:
        """The window; None is its own size."""
        if width is None:
            self.browser.devtools("Emulation.clearDeviceMetricsOverride")
        else:
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            self.browser.devtools("Emulation.setDeviceMetricsOverride", **size)

    def reload(self, css: str = "*") -> None:
        self.run("document.getElementById('view').ariaBusy = 'true'; location.reload()")
        self.drawn(css)

    def saved(self, button: str) -> str:
        """What a click on a button would save, as text; of a picture the first bytes."""
        return self.run(
            """const make = URL.createObjectURL;
            const blob = await new Promise((resolve, reject) => {
              URL.createObjectURL = (made) => { resolve(made); return make.call(URL, made); };
              document.getElementById(values[0]).click();
              setTimeout(() => reject(new Error('nothing was saved')), 8000);
            }).finally(() => { URL.createObjectURL = make; });
            const bytes = new Uint8Array(await blob.slice(0, 8).arrayBuffer());
            return blob.type === 'image/png' ? String.fromCharCode(...bytes) : await blob.text();""",
            button,
        )


@contextlib.contextmanager
def running(subjects: Subjects, workshop: Workshop | None = None) -> Iterator[str]:
    """The address of a studio in a thread of its own."""
    app = build(subjects, workshop=workshop)
    server = uvicorn.Server(uvicorn.Config(app, ws="none", log_config=None, access_log=False))
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def opened(address: str, folder: Path, css: str = ".piece") -> Iterator[Page]:
    """In a browser that notes what its policy forbids, and whether a script of ours was called."""
    with Browser(folder) as browser:
        browser.open(address)
        browser.run(
            "window.violations = []; document.addEventListener('securitypolicyviolation', "
            "(event) => window.violations.push(event.violatedDirective)); "
            "window.hacked = () => window.violations.push('hacked');"
        )
        found = Page(browser, address)
        found.drawn(css)
        yield found
