"""The studio in a real browser: every view, by pointer and by key, its files, its links, and hostile text."""

import json
import shutil
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

from browser import find
from dragoman.studio.subjects import Subjects
from studio.asking import TEXT
from studio.browsing import DRAWN, READY, VIEWS, Page, opened, running

if find() is None:
    warnings.warn(
        "NO BROWSER: the studio is not tested in one; apt-get install chromium chromium-driver", stacklevel=1
    )
pytestmark = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")

TAGS = ("<img src=x onerror=hacked()>", "<script>hacked()</script>", "<svg onload=hacked()>", "{{hacked()}}")
ENDS = ("", "'", '"', "`", "</text>", "</svg>", "]]>", "-->", "</textarea>", "${hacked()}", "\\u003c", "&lt;")
HOSTILE = [
    *(end + tag for tag in TAGS for end in ENDS),
    *(tag + end for tag in TAGS for end in ENDS[1:]),
    "javascript:hacked()", "<iframe srcdoc='<script>hacked()</script>'>", "\u202e<b>", "<a href=//x.test>",
    "\0<i>", "<style>*{display:none}</style>", "<base href=//x.test>", "__proto__",
]  # fmt: skip


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "data"])
def test_every_view_opens_and_is_saved(view: str, page: Page) -> None:
    page.click(f"[data-view={view}]")
    page.drawn(DRAWN[view])
    assert page.text("#problem") == ""
    assert page.run("return location.hash").startswith(f"#{view}?")
    drawing = ElementTree.fromstring(page.saved("svg"))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(drawing.iter())) > 10
    assert page.saved("png").startswith("\x89PNG")


def test_typing_translates_and_a_piece_can_be_forced(page: Page) -> None:
    page.show("translate")
    page.click("#text")
    page.run("document.getElementById('text').select()")
    page.browser.press(*"ab dec")
    page.until("return location.hash.includes('text=ab+dec')")
    page.drawn(DRAWN["translate"])
    written = page.text("#written")
    page.click(".piece[data-at='1']")
    page.until("return document.querySelector('.piece[data-at=\"1\"]').ariaPressed === 'true'")
    other = page.run(
        "return document.querySelector('.others li:not(.own) [data-force]:not(:disabled)').dataset.force"
    )
    page.click(f"[data-force='{other}']")
    page.until("return document.querySelectorAll('.piece.forced').length === 2")
    page.drawn()
    assert page.text("#written") != written
    page.click("#free")
    page.until("return document.querySelectorAll('.piece.forced').length === 0")
    page.until("return document.getElementById('written').textContent === values[0]", written)
    page.click("tr.choice:nth-child(2)")
    page.until("return location.hash.includes('target=')")


def test_hovering_links_words_and_heads_are_switched_off(page: Page) -> None:
    page.show("attention", "run=transformer&text=abc+de&words=0&threshold=0.01")
    half = page.run("return document.querySelector('.drawing svg').getBoundingClientRect().width") / 2
    lines = page.run("return document.querySelector('.drawing svg').querySelectorAll('path').length")
    page.browser.point_at(".drawing svg", int(half) - 12)
    page.until("return document.querySelector('.readout').textContent.includes('looks at')")
    assert page.run("return document.querySelectorAll('.drawing svg [font-weight=\"700\"]').length") == 1
    page.run("document.querySelector('.drawing svg').dispatchEvent(new PointerEvent('pointerleave'))")
    assert page.run("return document.querySelector('.drawing svg').querySelectorAll('path').length") == lines
    page.click("[data-show='1']")
    page.until("return document.querySelector('.readout').textContent.includes('head 2')")
    page.click("[data-off='0']")
    page.until("return document.getElementById('anew') !== null")
    page.click("[data-key=grid]")
    page.until("return document.querySelector('[data-module]') !== null")
    assert page.count("[data-module]") == 4
    page.click("#weigh")
    page.until("return document.getElementById('weigh').disabled")
    page.click("[data-module][data-head='1']")
    page.until("return location.hash.includes('mode=map')")
    page.run("document.querySelector('.drawing svg').focus()")
    page.browser.press("\ue014", "\ue015")  # right, down
    page.until("return document.querySelector('.readout').textContent.includes('looks at')")


def test_each_run_has_its_own_search(page: Page) -> None:
    """The page shows what `translate` gives: with the beam and the length penalty of the run."""
    page.show("translate", "run=transformer")
    page.run(
        "const run = document.getElementById('run'); run.value = 'lstm'; "
        "run.dispatchEvent(new Event('change'))"
    )
    page.until("return location.hash.includes('run=lstm')")
    page.drawn(DRAWN["translate"])
    values = (
        "const [beam, alpha] = [...document.querySelectorAll('#view input[type=range]')].map((e) => e.value);"
    )
    page.until(f"{values} return Number(beam) === 3 && Number(alpha) === 0.5")
    assert "beam=" not in page.run("return location.hash")
    page.show("translate", "run=transformer")
    page.until(f"{values} return Number(beam) === 5 && Number(alpha) === 1")


def test_a_link_restores_the_view(page: Page) -> None:
    page.show("attention", "run=transformer&text=abc&mode=map&heads=1&module=decoder.layers.0.self_attention")
    before = (
        page.text(".readout"),
        page.run("return document.querySelector('.drawing svg image').href.baseVal"),
    )
    link = page.run("return location.hash")
    page.show("beam")
    page.show("attention", link.partition("?")[2])
    page.until("return document.querySelector('.readout').textContent === values[0]", before[0])
    assert page.run("return document.querySelector('.drawing svg image').href.baseVal") == before[1]
    assert "decoder attention, layer 1, head 2" in before[0]


def test_the_tree_grows_and_masked_cells_are_seen(page: Page) -> None:
    page.show("beam", "run=transformer&text=abc&beam=3")
    nodes = page.count("g[data-fate]")
    assert page.count("g[data-fate=pruned]") > 0
    page.show("beam", "run=transformer&text=abc&beam=3&step=2")
    page.until("return document.querySelectorAll('g[data-fate]').length < values[0]", nodes)
    page.show("head", "run=transformer&text=abc&module=decoder.layers.0.self_attention&position=1")
    page.until("return document.querySelector('[data-masked]') !== null")
    pieces = page.run("return document.querySelectorAll('[data-step=all] g[role=button]').length")
    hidden = page.run("return document.querySelectorAll('[data-step=all] [data-masked]').length")
    assert hidden == pieces * (pieces - 1) / 2
    page.click("[data-step=all] g[role=button]:nth-of-type(1) text")
    page.until("return !location.hash.includes('position=1')")


def test_the_tree_of_a_prompt_opens_where_the_choice_begins(page: Page) -> None:
    """The steps of a prompt have one candidate each; all that is chosen would stand beyond the margin."""
    page.resize(390)
    page.show("beam", "run=gpt&text=abc+dec+abc+dec&beam=3")
    page.until("return document.querySelector('.drawing svg [data-fate=pruned]') !== null")
    seen = """const room = document.querySelector('.drawing').getBoundingClientRect();
        const box = document.querySelector('.drawing svg g[data-fate=pruned]').getBoundingClientRect();
        const scrolled = document.querySelector('.drawing').scrollLeft > 0;
        return [scrolled, room.left <= box.left && box.right <= room.right];"""
    assert page.run(seen) == [True, True]
    assert page.run("return [...document.querySelectorAll('th')].map((one) => one.textContent)") == [
        *("text", "pieces", "log p", "rank by log p", "score = log p ÷ pieces^1.0", "rank by score")
    ]
    page.resize(None)


def test_a_test_set_that_was_opened_is_shown_first(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("src\ttgt\nabc\tcba\nde\ted\n", encoding="utf-8")
    subjects = Subjects([runs / "transformer"], device="cpu", text=TEXT)
    name = subjects.add_test([str(tmp_path / "own.tsv")])
    with running(subjects) as address, opened(address, tmp_path) as page:
        page.show("data", "run=transformer&beam=1")
        said = "return document.getElementById('view').textContent.includes(values[0])"
        page.until(said, f"2 of 2 sentences of {name}")
        page.run(
            "const set = document.querySelector('#view select'); set.value = '~validation';"
            "set.dispatchEvent(new Event('change'));"
        )
        page.until(said, "of the validation set")


def test_models_without_attention_say_so(page: Page) -> None:
    page.run("location.hash = '#attention?run=lstm&text=abc'")
    page.until("return document.querySelector('.empty')?.textContent.includes('no attention')")
    page.show("attention", "run=gpt&text=abc")
    page.show("compare", "left=transformer&right=lstm&text=abc")
    page.until("return document.getElementById('view').textContent.includes('has no attention')")


def test_keys_theme_and_training(page: Page) -> None:
    page.show("training", "run=transformer&text=abc")
    page.until("return document.querySelectorAll('.drawing image').length === 1")
    assert page.count(".wrong, .right") > 0
    shown = page.run("return document.querySelector('.drawing image').href.baseVal")
    page.show("training", "run=transformer&text=abc&time=0000004&sample=0")
    page.until("return document.querySelector('.drawing image').href.baseVal !== values[0]", shown)
    page.run("document.activeElement.blur()")
    theme = page.run("return document.documentElement.dataset.theme")
    page.browser.press("d", "2")
    page.until("return document.documentElement.dataset.theme !== values[0]", theme)
    page.until("return location.hash.startsWith('#attention')")
    page.browser.press("?")
    page.until("return document.getElementById('keys').open")
    page.click("#keys button")


def test_hostile_text_is_text(page: Page) -> None:
    """All of them in every drawing, and some through the whole of it: typed, translated and shown."""
    assert len(set(HOSTILE)) >= 100
    counted = "return document.querySelectorAll('script, img, iframe, style, base, a, object, embed').length"
    before = page.run(counted)
    script = Path(__file__).with_name("hostile.js").read_text("utf-8")
    whole = ElementTree.fromstring(page.run(script, HOSTILE))
    assert not {"script", "img", "iframe"} & {element.tag.partition("}")[2] for element in whole.iter()}
    rest = {"run": "transformer", "beam": 1, "target": "", "forced": "", "masked": ""}
    for text in HOSTILE[::5]:
        change = {"view": "translate", "text": text, **rest}
        page.run("const { set } = await import('/assets/state.js'); set(values[0]);", change)
        page.until(f"{READY} && document.getElementById('text').value === values[1]", ".piece", text)
    assert page.run(counted) == before
    assert page.run("return window.violations") == []


def test_the_name_of_a_run_is_text(runs: Path, tmp_path: Path) -> None:
    """A directory may be called as one likes."""
    name = "<img src=x onerror=hacked()>"
    shutil.copytree(runs / "transformer", tmp_path / name)
    subjects = Subjects([tmp_path / name], device="cpu", text=TAGS[1])
    with running(subjects) as address, opened(address, tmp_path) as page:
        for view in ("translate", "training"):
            page.show(view)
            page.until("return document.body.textContent.includes(values[0])", name)
            assert page.run("return document.querySelectorAll('img').length") == 0
        assert page.run("return window.violations") == []


def test_nothing_was_asked_elsewhere_and_nothing_went_wrong(page: Page) -> None:
    """Of all that the tests above have done."""
    events = [json.loads(entry["message"])["message"] for entry in page.browser.logs("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert any(url.endswith("/api/studio/attention") for url in asked)
    assert [url for url in asked if not url.startswith((page.address, "data:", "blob:", "chrome"))] == []
    assert [entry["message"] for entry in page.browser.logs("browser") if entry["level"] == "SEVERE"] == []
    assert page.run("return window.violations") == []
