"""Functions whose steps grow with the square of a text, each in a way that is easy to write by mistake."""

import re


def loops(text: str) -> int:
    return sum(one == other for one in text for other in text)


def copies(text: str) -> str:
    found = ""
    for char in text:
        found += char
    return found


def searches(text: str) -> int:
    return sum(text.find("b", at) for at in range(len(text)))


def slices(text: str) -> list[str]:
    found = []
    while text:
        found.append(text[:1])
        text = text[1:]
    return found


def patterns(text: str) -> re.Match[str] | None:
    return re.search(r"a+b", text)


def straight(text: str) -> list[str]:
    return [char for char in text if char != "b"]
