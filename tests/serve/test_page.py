"""The page at `/` in a real browser: a text, a document, a key, and text that looks like markup."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import ELEMENT, Browser, find
from dragoman.serve.app import Options
from dragoman.serve.keys import Keys
from serve.live import in_a_thread
from serve.standin import service_of
from serve.test_live import KEY

if find() is None:
    warnings.warn(
        "NO BROWSER: the page of the server is not tested in one; apt-get install chromium chromium-driver",
        stacklevel=1,
    )
pytestmark = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")

RESULT = "return document.getElementById('result').textContent === values[0]"
SAVES = """
window.violations = []; window.saved = [];
document.addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));
URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.unshift(text)); return '#'; };
HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); };
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def element(browser: Browser, css: str) -> str:
    return browser.ask("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]


def choose(browser: Browser, css: str, value: str) -> None:
    script = "const list = document.querySelector(values[0]); list.value = values[1]; "
    browser.run(script + "list.dispatchEvent(new Event('change'))", css, value)


def test_a_text_and_a_document_are_translated(browser: Browser, tmp_path: Path) -> None:
    with in_a_thread(service_of(("en", "de"), ("de", "en"))) as address:
        browser.open(address)
        browser.run(SAVES)
        browser.until("return document.getElementById('source').options.length === 3")
        choose(browser, "#source", "en")
        browser.click("#text")
        browser.press(*"Good day.")
        browser.until(RESULT, "GOOD DAY.")
        browser.run("document.getElementById('text').value = '<img src=x onerror=violations.push(1)> a'")
        browser.press(" ", "b")
        browser.until(RESULT, "<img src=x onerror=violations.push(1)> A B")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        document = tmp_path / "note.html"
        document.write_text("<p>Some <b>text</b>.</p>\n", "utf-8")
        browser.ask("POST", f"/element/{element(browser, '#file')}/value", {"text": str(document)})
        browser.until("return window.saved.length === 2")
        assert browser.run("return window.saved") == ["<p>SOME <b>TEXT</b>.</p>\n", "note.de.html"]
        assert browser.run("return [...violations, document.getElementById('message').textContent]") == [""]
        browser.click("#swap")
        browser.until("return document.getElementById('target').value === 'en'")


def test_a_key_is_asked_for(browser: Browser) -> None:
    with in_a_thread(service_of(), Options(keys=Keys([KEY]))) as address:
        browser.open(address)
        browser.until("return !document.getElementById('lock').hidden")
        browser.click("#key")
        browser.press(*KEY, "\ue007")
        browser.until("return document.getElementById('lock').hidden")
        browser.click("#text")
        browser.press(*"Hi")
        browser.until(RESULT, "HI")
