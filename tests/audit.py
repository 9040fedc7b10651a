"""What a person who does not see well, or uses no mouse, would miss on the page that a browser shows."""

from functools import cache
from importlib.resources import files

from browser import Browser

_FOUND = """
const { violations } = await axe.run(document, { resultTypes: ['violations'] });
return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
  .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`));
"""
_REACHED = "window.reached = new Set(); document.addEventListener('focusin', (e) => reached.add(e.target));"
_MISSED = """
const controls = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]');
return [...controls].filter((node) => !node.disabled && node.tabIndex >= 0 && node.checkVisibility() &&
  node.getClientRects().length && !reached.has(node)).map((node) => node.outerHTML.slice(0, 120));
"""
TAB = "\ue004"


@cache
def _axe() -> str:
    return (files("axe_core_python") / "axe.min.js").read_text("utf-8")


def serious(browser: Browser) -> list[str]:
    """Findings of axe-core that are serious or critical."""
    if not browser.run("return 'axe' in window"):
        browser.ask("POST", "/execute/sync", {"script": _axe(), "args": []})
    return browser.run(_FOUND)


def out_of_reach(browser: Browser, presses: int = 120) -> list[str]:
    """Controls that so many presses of the tab key do not come to."""
    browser.run(f"document.activeElement.blur(); {_REACHED}")
    browser.press(*[TAB] * presses)
    return browser.run(_MISSED)


def too_wide(browser: Browser) -> bool:
    return browser.run("return document.documentElement.scrollWidth > innerWidth")


def severe(browser: Browser) -> list[str]:
    """Errors in the console since it was last asked."""
    return [entry["message"] for entry in browser.logs("browser") if entry["level"] == "SEVERE"]
