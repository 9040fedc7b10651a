"""For everybody: names, roles, contrast, keys, right-to-left text, small windows, and what is remembered."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from audit import out_of_reach, serious, severe, too_wide
from browser import Browser, find
from dragoman.cli.main import app
from serve.live import in_a_thread
from serve.standin import service_of
from studio.browsing import DRAWN, VIEWS, Page

pytestmark = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")

ARABIC = "اب ج"


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_every_view_can_be_read_and_operated(page: Page, theme: str, width: int) -> None:
    page.run(
        "if (document.documentElement.dataset.theme !== values[0]) document.getElementById('theme').click()",
        theme,
    )
    page.resize(width)
    for view in VIEWS:
        page.show(view, "run=transformer&text=abc+de")
        assert serious(page.browser) == [], view
        assert not too_wide(page.browser), view
        if theme == "light":
            assert out_of_reach(page.browser) == [], view
    page.resize(None)
    assert severe(page.browser) == []


@contextmanager
def dark_phone(browser: Browser) -> Iterator[None]:
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.devtools("Emulation.setDeviceMetricsOverride", **metrics)
    browser.devtools(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    yield
    browser.devtools("Emulation.clearDeviceMetricsOverride")
    browser.devtools("Emulation.setEmulatedMedia", features=[])


def check_page(browser: Browser) -> None:
    """In light and wide, then in dark and narrow."""
    assert serious(browser) == []
    assert out_of_reach(browser) == []
    with dark_phone(browser):
        assert serious(browser) == []
        assert not too_wide(browser)
    assert severe(browser) == []


def test_the_pages_of_the_service_can_be_read_and_operated(page: Page) -> None:
    browser = page.browser
    with in_a_thread(service_of()) as address:
        browser.open(address)
        browser.until("return document.getElementById('source').options.length > 0")
        browser.run(f"text.value = '{ARABIC} maybe. Four five.'; soon()")
        browser.until("return document.querySelectorAll('#result .sentence').length === 2")
        browser.click("#result .sentence")
        browser.click("#card-words button")
        browser.until("return document.querySelectorAll('#others button').length > 0")
        assert browser.run("return getComputedStyle(document.getElementById('text')).direction") == "rtl"
        check_page(browser)
        browser.open(f"{address}docs")
        check_page(browser)
    browser.open(page.address)
    page.drawn(DRAWN["translate"])


def test_the_page_of_explain_can_be_read_and_operated(page: Page, runs: Path, tmp_path: Path) -> None:
    file, browser = tmp_path / "look.html", page.browser
    done = CliRunner().invoke(
        app, ["explain", str(runs / "transformer"), ARABIC, "--html", str(file), "--device", "cpu"]
    )
    assert done.exit_code == 0, done.output
    browser.open(file.as_uri())
    browser.until("return document.querySelector('#map svg') !== null")
    assert browser.run("return getComputedStyle(document.getElementById('source')).direction") == "rtl"
    check_page(browser)
    links_words_and_files(page)
    browser.open(page.address)
    page.drawn(DRAWN["translate"])


def links_words_and_files(page: Page) -> None:
    """The other drawing, merged words, and what is saved."""
    browser = page.browser
    page.run("document.querySelector('#merging input').click()")  # by script: drawing replaces the control
    browser.until(
        "const seen = [...document.querySelectorAll('#map text')].map((each) => each.textContent);"
        "return values[0].every((word) => seen.includes(word))",
        ARABIC.split(),
    )
    page.run("document.querySelector('#mode [data-key=links]').click()")
    browser.until("return document.querySelector('#map path') && !document.querySelector('#map image')")
    page.run("document.querySelector('#map svg').focus()")
    browser.press("\ue014")  # right: the first of those that look
    assert " looks at " in page.text("#readout")
    check_page(browser)
    for place in ("map", "tree"):
        assert page.saved(f"{place}-svg").startswith("<?xml") and "PNG" in page.saved(f"{place}-png")


def test_buttons_are_told_apart(page: Page) -> None:
    page.show("translate", "run=transformer&text=abc")
    names = page.run("return [...document.querySelectorAll('[data-force]')].map((each) => each.ariaLabel)")
    assert len(set(names)) == len(names) > 1
    assert page.text("h1") == "Translate: transformer"
    assert (
        page.run("return document.getElementById('view').getAttribute('aria-labelledby')") == "tab-translate"
    )


def test_text_runs_from_right_to_left(page: Page) -> None:
    page.show("translate", f"run=transformer&text={ARABIC}")
    assert page.run("return document.getElementById('text').matches(':dir(rtl)')")
    assert page.run(
        "return ['#text', '#written', '.pieces', 'td.words'].every((css) => "
        "document.querySelector(css).getAttribute('dir') === 'auto')"
    )


def test_the_tree_is_gone_through_by_keys(page: Page) -> None:
    page.show("beam", "run=transformer&text=abc&beam=3")
    page.run("document.querySelector('.drawing svg').focus()")
    page.browser.press("\ue014")  # right: the first step
    page.until("return document.querySelector('.readout').textContent.startsWith('step 1:')")
    page.browser.press("\ue014", "\ue015")  # what came of it, and the next best
    page.until("return document.querySelector('.readout').textContent.startsWith('step 2:')")
    page.browser.press("\ue012")  # left: where it came from
    page.until("return document.querySelector('.readout').textContent.startsWith('step 1:')")


def test_what_was_chosen_is_remembered(page: Page) -> None:
    page.show("translate", "run=transformer&text=abc")
    before = page.run("return document.documentElement.dataset.theme")
    page.run("document.activeElement.blur()")
    page.browser.press("d", "z")
    page.reload(DRAWN["translate"])
    assert page.run("return document.documentElement.dataset.theme") != before
    assert page.run("return document.documentElement.hasAttribute('data-large')")
    page.browser.press("d", "z", "?")
    page.until("return document.getElementById('keys').open")
    page.click("#keys input")
    page.click("#keys button")
    page.run("document.activeElement.blur()")
    page.browser.press("d")
    assert page.run("return document.documentElement.dataset.theme") == before  # keys are off
    page.run("document.getElementById('help').click()")
    page.click("#keys input")
    page.click("#keys button")


def test_tabs_beyond_the_edge_are_hinted_at(page: Page) -> None:
    page.resize(390)
    page.show("translate", "run=transformer&text=abc")
    page.until("return document.getElementById('views').hasAttribute('data-more')")
    page.show("training", "run=transformer&text=abc")
    page.until("return !document.getElementById('views').hasAttribute('data-more')")
    page.resize(None)


def test_a_lesson_leads_through_the_views(page: Page) -> None:
    page.show("attention", "run=transformer&text=abc&lesson=attention")
    assert "1 of 5" in page.text("#lesson h2")
    assert serious(page.browser) == []
    for view in ("attention", "head", "compare", "training"):
        page.run(
            "document.getElementById('view').ariaBusy = 'true'; "
            "document.getElementById('lesson-next').click()"
        )
        page.drawn(DRAWN[view])
    assert page.run("return location.hash").startswith("#training?")
    page.run("location.hash = '#read?run=transformer&text=abc&lesson=pre-training&page=0'")
    page.until("return document.getElementById('lesson').textContent.includes('It takes a run of BERT')")
    page.run("[...document.querySelectorAll('#lesson button')].at(-1).click()")
    page.until("return document.getElementById('lesson').hidden")


def test_the_data_are_sorted_and_opened(page: Page) -> None:
    page.show("data", "run=transformer&text=abc&count=20&sort=best")
    values = page.run(
        "return [...document.querySelectorAll('tr.choice td:nth-child(2)')].map((e) => Number(e.textContent))"
    )
    assert values == sorted(values, reverse=True) and len(values) > 5
    page.run("document.querySelector('tr.choice button').focus()")
    page.browser.press("\ue007")  # Enter
    page.until("return document.querySelectorAll('.pairs li').length > 0")
    page.click("#look")
    page.until("return location.hash.startsWith('#translate?')")
    page.show("training", "run=transformer&text=abc")
    before = page.count(".charts path")
    page.click("[data-also=lstm]")
    page.until("return document.querySelectorAll('.charts path').length > values[0]", before)
