"""Where the protected spans of a source belong in its translation, by attention weights between words.

    source        Click <b>the red button</b> at {url} .
    its units     Click    the red button     at       .        what the model translated
    translation   Klicken Sie auf den roten Knopf bei .
    placed        Klicken Sie auf <b>den roten Knopf</b> bei {url}.

An element becomes the run of target units with the greatest sum of 2p − 1, where p is the share of a unit's
weight on the content of the element. The run lies inside that of the enclosing element and does not overlap
its neighbours, so nesting is kept. A span without content follows the translation of its left neighbour or,
if it is glued to the right one, precedes the translation of that.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dragoman.text.markup import partners, role
from dragoman.text.spans import Span
from dragoman.text.word_boundaries import Place

_CLOSING = frozenset(".,;:!?)]}»”’…。，！？")


@dataclass(frozen=True)
class Mark:
    """A span, where it was cut out, and whether there was white space beside it (None: the edge of the
    text)."""

    span: Span
    place: int
    space_before: bool | None
    space_after: bool | None


@dataclass
class _Node:
    """A single span or an element: its marks, the source units inside it, its target gaps."""

    marks: tuple[int, ...]
    content: tuple[int, int]
    children: "list[_Node]" = field(default_factory=list)
    interval: tuple[int, int] = (0, 0)


def arrange(
    marks: Sequence[Mark],
    source: tuple[str, Sequence[Place]],
    target: tuple[str, Sequence[Place]],
    weights: np.ndarray,
) -> list[tuple[int, int]]:
    """Every mark with the gap it goes to (gap g is before target unit g), in the order of writing. Source and
    target are texts with their units; `weights` has a row a target unit, a column a source unit. It takes
    steps in proportion to the size of `weights` and to the number of marks."""
    _, source_units = source
    of_source, of_target = _are_words(*source), _are_words(*target)
    starts = [start for start, _ in source_units]
    root = _tree(marks, [bisect_left(starts, mark.place) for mark in marks], len(source_units))
    root.interval = (0, len(weights))
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    shares = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights / total, axis=1)], axis=1)
    ends_in_mark = all(bool(places) and text[places[-1][0]] in _CLOSING for text, places in (source, target))
    weights = np.where(of_target[:, None] >= of_source[None], weights, 1e-9 * weights)  # words with words
    waiting = [root]
    while waiting:
        node = waiting.pop()
        elements = [child for child in node.children if child.content[0] < child.content[1]]
        if len(elements) == 1 and elements[0].content == node.content:
            elements[0].interval = node.interval
        elif elements:
            _place_elements(elements, node, shares, of_source, of_target)
        waiting += elements
        gaps: dict[tuple[int, bool], int] = {}
        edges = sorted(element.interval for element in elements)
        for child in node.children:
            if child.content[0] == child.content[1]:
                place = child.content[0], _is_glued_right(marks[child.marks[0]])
                if place not in gaps:
                    gaps[place] = _out_of(_gap(*place, weights, node, ends_in_mark), edges)
                gap = gaps[place]
                child.interval = (gap, gap)
                for inner in _below(child):
                    inner.interval = (gap, gap)
    return _written(root)


def _are_words(text: str, places: Sequence[Place]) -> np.ndarray:
    return np.array([text[start].isalnum() for start, _ in places], dtype=bool)


def _tree(marks: Sequence[Mark], places: Sequence[int], count: int) -> _Node:
    pairs = partners([mark.span for mark in marks])
    root = _Node((), (0, count))
    open_nodes = [root]
    for number, (place, partner) in enumerate(zip(places, pairs, strict=True)):
        if partner is not None and partner < number:
            open_nodes.pop()
            continue
        end = place if partner is None else places[partner]
        node = _Node((number,) if partner is None else (number, partner), (place, end))
        open_nodes[-1].children.append(node)
        if partner is not None:
            open_nodes.append(node)
    return root


def _place_elements(
    elements: Sequence[_Node], parent: _Node, shares: np.ndarray, of_source: np.ndarray, of_target: np.ndarray
) -> None:
    """The longest first, each apart from those before it."""
    taken = np.zeros(len(shares), dtype=bool)
    for child in sorted(elements, key=lambda e: e.content[0] - e.content[1]):
        inside = shares[:, child.content[1]] - shares[:, child.content[0]]
        at_least = of_target | ~of_source[slice(*child.content)].any()  # around a word, if it was
        child.interval = _run_of(inside, at_least, parent, taken)
        taken[slice(*child.interval)] = True


def _run_of(inside: np.ndarray, at_least: np.ndarray, parent: _Node, taken: np.ndarray) -> tuple[int, int]:
    """The run of free target units inside the parent with the greatest sum of 2p − 1, or else the one unit
    with the greatest p. Units that are not among `at_least` add nothing by themselves."""
    low, high = parent.interval
    best, best_sum, start, running = (low, low), 0.0, low, 0.0
    strongest, most = (low, low), (False, -1.0)
    for unit in range(low, high):
        if taken[unit]:
            start, running = unit + 1, 0.0
            continue
        share, counts = float(inside[unit]), bool(at_least[unit])
        if (counts, share) > most:
            strongest, most = (unit, unit + 1), (counts, share)
        running += 2 * share - 1 if counts else min(0.0, 2 * share - 1)
        if running > best_sum:
            best, best_sum = (start, unit + 1), running
        if running <= 0:
            start, running = unit + 1, 0.0
    return best if best_sum > 0 else strongest


def _is_glued_right(mark: Mark) -> bool:
    return mark.space_after is False and mark.space_before is not False


def _gap(right: int, glued_right: bool, weights: np.ndarray, parent: _Node, ends_in_mark: bool) -> int:
    """The gap for a span between the source units `right` − 1 and `right`."""
    low, high = parent.interval
    first, last = parent.content
    if low == high or right <= first:
        return low
    if right >= last:
        return high
    if ends_in_mark and right == weights.shape[1] - 1 and high == len(weights):
        return high - 1
    unit = right if glued_right else right - 1
    return low + int(weights[low:high, unit].argmax()) + (not glued_right)


def _out_of(gap: int, edges: Sequence[tuple[int, int]]) -> int:
    """The nearest edge, if the gap is inside an element that the span was not in."""
    before = bisect_left(edges, (gap, gap)) - 1
    start, end = edges[before] if before >= 0 else (gap, gap)
    if start < gap < end:
        return start if gap - start < end - gap else end
    return gap


def _below(node: _Node) -> list[_Node]:
    found, waiting = [], list(node.children)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += child.children
    return found


def _written(root: _Node) -> list[tuple[int, int]]:
    """Marks from left to right: the opening tag of an element, its content, its closing tag."""
    found: list[tuple[int, int]] = []
    waiting: list[tuple[int, int] | _Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            found.append(node)
            continue
        if node.marks:
            found.append((node.interval[0], node.marks[0]))
        if len(node.marks) == 2:
            waiting.append((node.interval[1], node.marks[1]))
        ordered = sorted(enumerate(node.children), key=lambda c: (*c[1].interval, c[0]), reverse=True)
        waiting += [child for _, child in ordered]
    return found


def with_spans(
    translation: str,
    target_units: Sequence[Place],
    placed: Sequence[tuple[int, int]],
    marks: Sequence[Mark],
    spaced: bool,
) -> str:
    """The translation with every mark in its gap. `spaced` puts spaces around marks that are not tags."""
    parts: list[str] = []
    at = before = 0
    while at < len(placed):
        gap = placed[at][0]
        upto = at
        while upto < len(placed) and placed[upto][0] == gap:
            upto += 1
        left_end = target_units[gap - 1][1] if gap else 0
        right_start = target_units[gap][0] if gap < len(target_units) else len(translation)
        parts.append(translation[before:left_end])
        here = [marks[number] for _, number in placed[at:upto]]
        right = translation[right_start : right_start + 1]
        parts.append(_filled(here, gap > 0, translation[left_end:right_start], right, spaced))
        before, at = right_start, upto
    return "".join(parts) + translation[before:]


def _filled(here: Sequence[Mark], has_left: bool, space: str, right: str, spaced: bool) -> str:
    """The marks of one gap with the white space between and around them."""
    between = [_between(a, b, spaced) for a, b in pairwise(here)]
    separators = [_before(here[0], space, spaced) if has_left else "", *between]
    separators.append(_after(here[-1], space, right, spaced) if right else "")
    apart = space and has_left and right and not any(separators)
    if apart and not all(map(_separates, here)):  # two words that were apart stay apart
        closing = 0
        while closing < len(here) and _belongs_left(here[closing]):
            closing += 1
        separators[closing] = " "
    texts = [mark.span.text for mark in here]
    return "".join(part for pair in zip(separators, [*texts, ""], strict=True) for part in pair)


def _separates(mark: Mark) -> bool:
    """`one<br>two`, `one&nbsp;two`."""
    glued = mark.space_before is False and mark.space_after is False
    return glued and mark.span.kind in ("tag", "entity") and role(mark.span) == "alone"


def _belongs_left(mark: Mark) -> bool:
    return role(mark.span) == "close" or (mark.space_before is False and mark.space_after is not False)


def _before(mark: Mark, space: str, spaced: bool) -> str:
    if role(mark.span) == "open" or mark.space_before is None:
        return " " if space or (spaced and mark.span.kind != "tag") else ""
    return " " if mark.space_before or (spaced and mark.span.kind != "tag") else ""


def _after(mark: Mark, space: str, right: str, spaced: bool) -> str:
    if spaced and mark.span.kind != "tag":
        return " "
    if role(mark.span) == "close" or mark.space_after is None:
        return " " if space else ""
    return " " if mark.space_after and (space or right not in _CLOSING) else ""


def _between(left: Mark, right: Mark, spaced: bool) -> str:
    adjacent = left.span.end == right.span.start
    if adjacent and not spaced:
        return ""
    if role(left.span) == "open" or role(right.span) == "close":
        return " " if (left.space_after if role(left.span) == "open" else right.space_before) else ""
    tags = left.span.kind == "tag" and right.span.kind == "tag"
    return "" if tags and not (left.space_after or right.space_before) else " "
