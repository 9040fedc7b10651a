"""For everybody: names, roles, contrast, keys, right-to-left text, small windows, and what is remembered."""

import pytest

from browser import find
from studio.browsing import DRAWN, VIEWS, Page, script

pytestmark = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")

NAMED = {"button", "combobox", "slider", "checkbox", "textbox", "tab", "tabpanel", "heading", "dialog"}
ARABIC = "اب ج"


def unnamed(page: Page) -> list[str]:
    """Roles of what a screen reader would find without a name."""
    nodes = page.browser.devtools("Accessibility.getFullAXTree")["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"] in NAMED
        and not node.get("name", {}).get("value", "").strip()
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_can_be_read_and_operated(page: Page, theme: str) -> None:
    page.run(
        "if (document.documentElement.dataset.theme !== values[0]) document.getElementById('theme').click()",
        theme,
    )
    for width in (390, 1280):
        page.resize(width)
        for view in VIEWS:
            page.show(view, "run=transformer&text=abc+de")
            assert page.run(script("audit.js")) == [], (view, width)
            assert unnamed(page) == [], (view, width)
            wide = page.run("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], (view, wide)
    page.resize(None)


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
    assert page.run(script("audit.js")) == []
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
