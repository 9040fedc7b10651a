"""Lessons: pages in order, each a view of the studio with a paragraph."""

import json
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from dragoman.errors import UserError


@cache
def lessons() -> dict[str, Any]:
    """All lessons by name, in teaching order."""
    return json.loads((files("dragoman.studio") / "assets" / "lessons.json").read_text("utf-8"))


def first_page(name: str) -> str:
    """The part of an address behind the #, which begins a lesson."""
    if name not in lessons():
        near = get_close_matches(name, lessons(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(
            f"--lesson {name}: there is none of this name; there are {', '.join(lessons())}{hint}"
        )
    page = lessons()[name]["pages"][0]
    return f"{page['view']}?{urlencode({'lesson': name} | page.get('set', {}))}"
