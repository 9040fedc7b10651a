"""The page at `/` in a real browser: a text, a document, a key, and text that looks like markup."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import ELEMENT, Browser, find
from dragoman.serve.app import Options
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.memory import TranslationMemory
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
        choose(browser, "#target", "de")
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


HOSTILE = "<img src=x onerror=violations.push(1)>"
READY = "return document.getElementById('source').options.length > 0"
MESSAGE = "return document.getElementById('message').textContent.startsWith(values[0])"


def ready(browser: Browser) -> None:
    browser.run("localStorage.clear()")
    browser.until(READY)


def test_names_and_errors_are_text(browser: Browser, tmp_path: Path) -> None:
    """A file whose name is markup: while it is sent, when it is saved, and in what the server says of it."""
    with in_a_thread(service_of()) as address:
        browser.open(address)
        browser.run(SAVES)
        browser.until("return document.getElementById('source').options.length > 0")
        browser.run("document.getElementById('file').accept = ''")
        names = [f"{HOSTILE}.txt", f"{HOSTILE}.exe"]
        for name in names:
            (tmp_path / name).write_text("hi", "utf-8")
        path = {"text": "\n".join(str(tmp_path / name) for name in names)}
        browser.ask("POST", f"/element/{element(browser, '#file')}/value", path)
        browser.until("return window.saved.length === 2")
        assert browser.run("return window.saved") == ["HI", f"{HOSTILE}.de.txt"]
        told = "return [...document.querySelectorAll('#jobs li')].map((row) => row.textContent).sort()"
        browser.until(f"return ({told.removeprefix('return ')}).every((row) => !row.includes('Stop'))")
        refused, done = browser.run(told)
        assert refused.startswith(f"{HOSTILE}.exe{HOSTILE}.exe: expected a document")
        assert done == f"{HOSTILE}.txtdone"
        browser.run("send({ name: values[0], size: 1e12 })", HOSTILE)
        browser.until(MESSAGE, "The document is larger than this server takes.")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        assert browser.run("return window.violations") == []


def test_matches_of_the_memory_are_text(browser: Browser) -> None:
    service = service_of()
    service.memories = {
        ("en", "de"): TranslationMemory([("One little cat", HOSTILE), (f"One {HOSTILE}", HOSTILE)])
    }
    with in_a_thread(service) as address:
        browser.open(address)
        browser.run(SAVES)
        ready(browser)
        for typed in ("One little cat", "One little cut", f"One b{HOSTILE}"):
            browser.run("text.value = values[0]; translate()", typed)
            browser.until("return state.shown && state.shown.asked === values[0]", typed)
            browser.click("#result .sentence")
            browser.until(
                "return document.getElementById('matches').textContent.includes(values[0])", HOSTILE
            )
            browser.click("#card-words button")
            browser.until("return document.querySelectorAll('#others button').length > 0")
        browser.click("#matches button")
        browser.until(RESULT, HOSTILE)
        assert browser.run("return document.querySelectorAll('img').length") == 0
        assert browser.run("return window.violations") == []


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


def test_a_wrong_key_says_so_and_a_right_one_is_kept_for_the_tab(browser: Browser) -> None:
    with in_a_thread(service_of(), Options(keys=Keys([KEY]))) as address:
        browser.open(address)
        browser.until(MESSAGE, "Please give a key")
        shown = (
            "return ['bar', 'panes', 'files'].filter((id) => document.getElementById(id).offsetHeight > 0)"
        )
        assert browser.run(shown) == []  # none of it works without a key
        browser.click("#key")
        browser.press(*"not-this-one", "\ue007")
        browser.until(MESSAGE, "This key is not one of the server's.")
        assert browser.run("return sessionStorage.getItem('key')") is None
        browser.press(*KEY, "\ue007")  # what was typed is selected
        browser.until("return document.getElementById('lock').hidden")
        assert browser.run("return document.getElementById('message').textContent") == ""
        assert browser.run(shown) == ["bar", "panes", "files"]
        browser.open(address)
        browser.until("return document.getElementById('source').options.length > 0")
        assert browser.run("return document.getElementById('lock').hidden")
        assert KEY not in browser.run("return JSON.stringify(localStorage)")


def test_copy_without_the_clipboard_of_secure_pages(browser: Browser) -> None:
    """At an address that is neither https nor localhost a browser has no `navigator.clipboard`."""
    with in_a_thread(service_of()) as address:
        browser.open(address)
        browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        browser.run(
            "window.copied = []; document.execCommand = (name) => "
            "{ copied.push(name, document.activeElement.value); return copied.length < 3; }"
        )
        browser.until("return document.getElementById('source').options.length > 0")
        browser.run("text.value = 'Hi'; translate()")
        browser.until(RESULT, "HI")
        browser.click("#copy")
        browser.until("return document.getElementById('copy').textContent === 'Copied'")
        assert browser.run("return window.copied") == ["copy", "HI"]
        browser.click("#copy")
        browser.until(MESSAGE, "The browser does not let this page copy.")


def test_the_same_document_can_be_sent_again(browser: Browser, tmp_path: Path) -> None:
    document = tmp_path / "note.txt"
    document.write_text("hi", "utf-8")
    with in_a_thread(service_of(("en", "de"), ("de", "en"))) as address:
        browser.open(address)
        browser.run(SAVES)
        browser.until("return document.getElementById('source').options.length === 3")
        path = {"text": str(document)}
        browser.ask("POST", f"/element/{element(browser, '#file')}/value", path)
        browser.until(MESSAGE, "Choose the language of the document first.")
        choose(browser, "#source", "en")
        for times in (1, 2):
            browser.ask("POST", f"/element/{element(browser, '#file')}/value", path)
            browser.until("return window.saved.length === values[0]", 2 * times)


def test_a_text_that_is_too_long_leaves_the_translation(browser: Browser) -> None:
    with in_a_thread(service_of(limits=Limits(characters=20))) as address:
        browser.open(address)
        browser.until("return document.getElementById('source').options.length > 0")
        browser.run("text.value = 'Hi'; translate()")
        browser.until(RESULT, "HI")
        browser.run("text.value = 'Hi'.repeat(20); translate()")
        browser.until(MESSAGE, "The text has 40 characters, and this server translates 20 at a time.")
        browser.until(RESULT, "HI")
