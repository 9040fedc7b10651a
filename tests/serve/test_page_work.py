"""The page at `/` for a day of work: other words, links, confidence, the memory, corrections, a glossary."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import deepl
import pytest
from libretranslatepy import LibreTranslateAPI

from browser import Browser, find
from dragoman.serve.app import Options
from dragoman.serve.corrections import Corrections
from dragoman.serve.keys import Keys
from dragoman.serve.service import Service
from serve.live import in_a_thread
from serve.standin import service_of, shouter
from serve.test_live import KEY
from serve.test_page import MESSAGE, RESULT, SAVES, choose, element, ready

pytestmark = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")

HIDDEN = "return values[0].map((id) => document.getElementById(id).hidden)"
SHOWN = "return state.shown && state.shown.asked === values[0] && !result.classList.contains('waiting')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def learning(file: Path) -> Service:
    service = service_of()
    service.corrections = Corrections(service.limits, file)
    return service


def write(browser: Browser, text: str) -> None:
    browser.run("text.value = values[0]; soon()", text)
    browser.until(SHOWN, text)


def texts(browser: Browser, css: str) -> list[str]:
    return browser.run("return [...document.querySelectorAll(values[0])].map((one) => one.textContent)", css)


def test_from_a_click_on_the_page_to_the_answer_of_a_client(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "corrections.tmx"
    with in_a_thread(learning(file), Options(keys=Keys([KEY]))) as address:
        libre = LibreTranslateAPI(address, KEY)
        client = deepl.DeepLClient(KEY, server_url=address)
        before = str(client.translate_text("Press the key.", source_lang="EN", target_lang="DE"))
        assert before == libre.translate("Press the key.", "en", "de") == "PRESS THE KEY."
        browser.open(f"{address}docs")  # which needs no key
        browser.run("sessionStorage.setItem('key', values[0])", KEY)
        browser.open(address)
        ready(browser)
        write(browser, "Hello you. Press the key. Bye.")
        browser.click("#result .sentence[data-sentence='1'] .word")
        browser.run("document.getElementById('edit').value = 'Drücke die Taste.'")
        browser.click("#save")
        browser.until("return document.getElementById('saved').textContent.startsWith('Saved')")
        browser.until(RESULT, "HELLO YOU. Drücke die Taste. BYE.")
        after = str(client.translate_text("Press the key.", source_lang="EN", target_lang="DE"))
        assert after == libre.translate("Press the key.", "en", "de") == "Drücke die Taste."
        write(browser, "Press the key. ")
        assert texts(browser, "#note") == ["from the translation memory"]
    assert [one.target for one in Corrections(service_of().limits, file)] == ["Drücke die Taste."]
    severe = [one for one in browser.logs("browser") if one["level"] == "SEVERE"]
    assert severe == []


def test_other_words_and_other_sentences(browser: Browser) -> None:
    with in_a_thread(service_of()) as address:
        browser.open(address)
        ready(browser)
        write(browser, "One two three. Four five.")
        browser.click("#result .sentence[data-sentence='0'] .word[data-word='1']")
        browser.until("return document.querySelectorAll('#others button').length > 1")
        assert texts(browser, "#others-title") == ["Instead of «TWO»"]
        assert texts(browser, "#others strong") == list("ABCDEFGH")
        assert texts(browser, "#card-words button") == ["Whole sentence", "ONE", "TWO", "THREE."]
        assert texts(browser, "#card-words button[aria-pressed=true]") == ["TWO"]
        browser.click("#others li:nth-child(2) button")
        browser.until(RESULT, "ONE B way FOUR FIVE.")
        browser.run("document.querySelector('#result .sentence[data-sentence=\"1\"]').focus()")
        browser.press("\ue007")  # Enter
        browser.until("return document.activeElement.id === 'edit'")
        browser.until("return document.getElementById('card-source').textContent === 'Four five.'")
        browser.until("return document.querySelectorAll('#others button').length === 7")
        assert texts(browser, "#others-title") == ["Other translations"]
        browser.press("\ue00c")  # Escape
        browser.until("return document.getElementById('card').hidden")
        assert browser.run("return document.activeElement.dataset.sentence") == "1"


def test_words_are_linked_and_doubts_are_marked(browser: Browser) -> None:
    with in_a_thread(service_of()) as address:
        browser.open(address)
        ready(browser)
        write(browser, "Yes 😀 maybe no. Last one.")
        browser.point_at("#result .word[data-word='2']")
        browser.until("return document.querySelectorAll('.linked').length === 2")
        assert texts(browser, ".linked") == ["maybe", "MAYBE"]
        assert texts(browser, "#result .unsure") == ["MAYBE"]
        assert browser.run(HIDDEN, ["legend", "legend-unsure", "legend-memory"]) == [False, False, True]
        assert browser.run("return document.querySelector('#result .unsure').title") == "probability 14%"
        box = "const box = document.querySelector('#mirror [data-sentence=\"1\"]').getBoundingClientRect();"
        x, y = browser.run(f"{box} return [box.x + box.width / 2, box.y + box.height / 2]")
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        pointer = {"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}, "actions": [move]}
        browser.ask("POST", "/actions", {"actions": [pointer]})
        browser.until("return document.querySelectorAll('.linked').length === 2")
        browser.until("return document.querySelectorAll('.linked')[0].textContent === 'Last'")


def test_what_comes_from_the_memory_is_explained_and_no_memory_is_not_mentioned(browser: Browser) -> None:
    with in_a_thread(service_of()) as address:
        browser.open(address)
        ready(browser)
        write(browser, "The cat sat on the mat.")
        browser.until("return document.querySelector('#result .memory') !== null")
        assert browser.run(HIDDEN, ["legend", "legend-unsure", "legend-memory"]) == [False, True, False]
        browser.click("#result .sentence")
        assert browser.run(HIDDEN, ["matches-side"]) == [False]
        browser.run(
            "state.info.corrections = false; state.info.pairs.forEach((pair) => { pair.memory = 0; })"
        )
        browser.run("openCard(0)")
        assert browser.run(HIDDEN, ["matches-side"]) == [True]


def test_a_similar_sentence_is_shown_with_its_difference_and_taken(browser: Browser) -> None:
    with in_a_thread(service_of()) as address:
        browser.open(address)
        ready(browser)
        write(browser, "The cat sat on a mat.")
        browser.click("#result .sentence")
        browser.until("return document.querySelectorAll('#matches button').length > 0")
        assert (texts(browser, "#matches del")[0], texts(browser, "#matches ins")[0]) == ("the", "a")
        browser.click("#matches button")
        browser.until(RESULT, "Die Katze saß auf der Matte.")


def test_the_glossary_and_the_languages_are_remembered(browser: Browser) -> None:
    with in_a_thread(service_of(("en", "de"), ("de", "en"))) as address:
        browser.open(address)
        ready(browser)
        choose(browser, "#source", "en")
        browser.run("document.getElementById('terms').open = true")
        browser.run(
            "const area = document.getElementById('glossary'); area.value = 'heart attack = Herzinfarkt\\nx';"
            "area.dispatchEvent(new Event('change'))"
        )
        write(browser, "A heart attack.")
        browser.until(RESULT, "A Herzinfarkt.")
        browser.open(address)
        browser.until("return document.getElementById('source').value === 'en'")
        assert texts(browser, "#terms-count") == ["(1)"]


def test_documents_show_their_progress_and_can_be_stopped(browser: Browser, tmp_path: Path) -> None:
    service = service_of()
    shouter(service).go_on.clear()
    with in_a_thread(service) as address:
        browser.open(address)
        browser.run(SAVES)
        ready(browser)
        for name in ("a.txt", "b.txt", "c.txt"):
            (tmp_path / name).write_text(f"This is {name[0]}", "utf-8")
        path = {"text": "\n".join(str(tmp_path / name) for name in ("a.txt", "b.txt"))}
        browser.ask("POST", f"/element/{element(browser, '#file')}/value", path)
        browser.until("return document.querySelectorAll('#jobs progress').length === 2")
        browser.until("return document.querySelectorAll('#jobs button').length === 2")
        browser.click("#jobs li:nth-child(1) button")
        browser.until("return document.querySelectorAll('#jobs progress').length === 1")
        shouter(service).go_on.set()
        browser.until("return document.querySelectorAll('#jobs progress').length === 0")
        assert sorted(text[5:] for text in texts(browser, "#jobs li")) == ["done", "stopped"]
        assert browser.run("return window.saved.length") == 2


def test_right_to_left_dark_and_narrow(browser: Browser, tmp_path: Path) -> None:
    """Nothing is wider than a phone, and Arabic begins at the right."""
    with in_a_thread(learning(tmp_path / "c.tmx")) as address:
        metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        browser.devtools("Emulation.setDeviceMetricsOverride", **metrics)
        browser.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        for page in ("", "docs"):
            browser.open(address + page)
            fits = "return innerWidth === 390 && document.documentElement.scrollWidth <= innerWidth"
            assert browser.run(fits)
        browser.open(address)
        ready(browser)
        write(browser, "مرحبا بالعالم maybe. ثانية.")
        browser.click("#result .sentence")
        browser.click("#card-words button")
        browser.until("return document.querySelectorAll('#others button').length > 0")
        assert browser.run(fits)
        for css in ("#text", "#result", "#edit"):
            side = "return getComputedStyle(document.querySelector(values[0])).direction"
            assert browser.run(side, css) == "rtl"
        browser.devtools("Emulation.clearDeviceMetricsOverride")
        browser.devtools("Emulation.setEmulatedMedia", features=[])


def test_an_error_of_the_server_is_told_in_the_card(browser: Browser, tmp_path: Path) -> None:
    service = learning(tmp_path / "c.tmx")
    with in_a_thread(service) as address:
        browser.open(address)
        ready(browser)
        write(browser, "Hello.")
        browser.click("#result .sentence")
        browser.click("#card-words button")
        browser.until("return document.querySelectorAll('#others button').length > 0")
        browser.run("document.getElementById('edit').value = 'x'.repeat(5001)")
        browser.click("#save")
        browser.until("return document.getElementById('saved').textContent.startsWith('Invalid request')")
        assert len(service.corrections or ()) == 0
        browser.run("text.value = '\\0'; soon()")
        browser.until(MESSAGE, "Invalid request: NUL")


def test_a_file_with_corrections_is_fetched(browser: Browser, tmp_path: Path) -> None:
    service = learning(tmp_path / "c.tmx")
    assert service.corrections is not None
    asyncio.run(service.corrections.put(("en", "de"), "Yes", "Ja"))
    with in_a_thread(service) as address:
        browser.open(address)
        browser.run(SAVES)
        ready(browser)
        browser.click("#fetch")
        browser.until("return window.saved.length === 2")
        found, name = browser.run("return window.saved")
        assert name == "corrections.tmx" and "<seg>Ja</seg>" in found and json.dumps(found)
