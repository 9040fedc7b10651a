"""XLIFF 1.2 (with sdlxliff and mqxliff) and 2.x: translations go into empty targets, marked for review.

1.2   <target state="needs-review-translation">; conf="Draft" in sdlxliff
2.x   <segment state="translated" subState="dragoman:needs-review">: translated, and not `reviewed`
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.tree import Node, collect, escape_xml, indentation, parse_tree, with_attributes
from dragoman.data.documents.unit import Check, Edit, Unit, UnitState, apply, unchecked
from dragoman.data.formats.xml import check_root
from dragoman.errors import UserError

_AROUND = {"g": None, "mrk": None, "hi": None, "bpt": "id", "ept": "id", "bx": "id", "ex": "id"}
_AROUND_2 = {"pc": None, "mrk": None}
_REVIEW = {"state": "needs-review-translation"}
_REVIEW_2 = {"state": "translated", "subState": "dragoman:needs-review"}


@dataclass
class _Target:
    """Where the translations of one trans-unit (1.2) or segment (2.x) are written, by unit number."""

    number: int
    """Number of the first unit."""
    owner: Node
    source: Node
    target: Node | None
    parts: dict[int, Node]
    """The `mrk`s of the source that are units; empty where the whole source is one."""
    target_parts: dict[str, Node]
    trados: dict[str, Node]


class XliffDocument:
    def __init__(self, text: str, where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._where, self._check = text, where, check
        root = parse_tree(text, where, check)
        prefix, colon, name = root.name.rpartition(":")
        check_root(name, "xliff", where, root.line)
        self._prefix = prefix + colon
        self._two = root.attributes.get("version", "1.2").startswith("2")
        self.units: list[Unit] = []
        self._targets: dict[int, _Target] = {}
        self._walk(root)

    def _walk(self, root: Node) -> None:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.attributes.get("translate") == "no":
                continue
            if node.name in (f"{self._prefix}trans-unit", f"{self._prefix}segment"):
                self._add(node)
            else:
                waiting += [child for child in reversed(node.children) if isinstance(child, Node)]

    def _add(self, node: Node) -> None:
        source, segmented, target = (
            node.first(self._prefix + name) for name in ("source", "seg-source", "target")
        )
        if source is None:
            return
        target_parts = self._segments(target)
        trados = {seg.attributes.get("id", ""): seg for seg in node.below("sdl:seg")}
        place = _Target(len(self.units), node, segmented or source, target, {}, target_parts, trados)
        whole_target = target is not None and not target_parts and _has_content(target)
        for mid, mark in self._segments(None if whole_target else segmented).items():
            here = target_parts.get(mid)
            done = (here is None and bool(target_parts)) or (here is not None and _has_content(here))
            place.parts[len(self.units)] = mark
            self._unit(node, mark, f"{_name(node)}:{mid}", done, place)
        if not place.parts:
            self._unit(node, source, _name(node), whole_target or bool(target_parts), place)

    def _segments(self, node: Node | None) -> dict[str, Node]:
        """The `mrk`s of a seg-source or a target that are segments."""
        found: dict[str, Node] = {}
        end = 0
        for mark in () if node is None else node.below(f"{self._prefix}mrk"):
            if mark.attributes.get("mtype") != "seg" or "mid" not in mark.attributes:
                continue
            mid = mark.attributes["mid"]
            if mid in found or mark.start < end:
                where = f"{self._where}:{mark.line}"
                raise UserError(f"{where}: the segment {mid[:40]!r} comes twice, or lies inside another")
            found[mid], end = mark, mark.end
        return found

    def _unit(self, node: Node, source: Node, name: str, done: bool, place: _Target) -> None:
        inline = Inline(self._check)
        collect(self._text, source, inline, _AROUND_2 if self._two else _AROUND, self._prefix)
        state: UnitState = "done" if done else "new"
        self._targets[len(self.units)] = place
        self.units.append(inline.unit(name, node.line, escape_xml, state))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        contents = {
            number: written_unit(self.units[number], text, escape_xml) for number, text in texts.items()
        }
        for place in {id(self._targets[number]): self._targets[number] for number in contents}.values():
            yield from self._state(place, contents)
            if place.parts and place.target_parts:
                for number, mark in place.parts.items():
                    if number in contents:
                        here = place.target_parts[mark.attributes["mid"]]
                        yield self._element(here, contents[number], {})
                if place.target is not None:
                    yield self._tag(place.target, _REVIEW)
                continue
            yield self._whole(place, self._content(place, contents))

    def _content(self, place: _Target, contents: Mapping[int, str]) -> str:
        """The content of a new target. For a segmented source, a copy of its segments with new text."""
        if not place.parts:
            return contents[place.number]
        changed = [
            Edit(mark.open_end, mark.close_start, contents.get(number, ""))
            for number, mark in place.parts.items()
        ]
        start, end = place.source.open_end, place.source.close_start
        moved = [Edit(edit.start - start, edit.end - start, edit.new) for edit in changed]
        return apply(self._text[start:end], moved)

    def _whole(self, place: _Target, content: str) -> Edit:
        attributes = {} if self._two else _REVIEW
        if place.target is not None:
            return self._element(place.target, content, attributes)
        name = f"{self._prefix}target"
        tag = with_attributes(f"<{name}>", attributes)
        new = f"{indentation(self._text, place.source)}{tag}{content}</{name}>"
        return Edit(place.source.end, place.source.end, new)

    def _element(self, node: Node, content: str, attributes: Mapping[str, str]) -> Edit:
        tag = with_attributes(self._text[node.start : node.open_end], attributes)
        tag = f"{tag[:-2].rstrip()}>" if node.empty else tag
        return Edit(node.start, node.end, f"{tag}{content}</{node.name}>")

    def _state(self, place: _Target, contents: Mapping[int, str]) -> Iterator[Edit]:
        values: dict[Node, dict[str, str]] = {}
        if self._two:
            values[place.owner] = _REVIEW_2
        elif place.owner.attributes.get("mq:status") == "NotStarted":
            values[place.owner] = {"mq:status": "Pretranslated"}
        for number, mark in place.parts.items():
            segment = place.trados.get(mark.attributes["mid"])
            if segment is not None and number in contents:
                values[segment] = {"conf": "Draft"}
        for node, attributes in values.items():
            yield self._tag(node, attributes)

    def _tag(self, node: Node, attributes: Mapping[str, str]) -> Edit:
        tag = self._text[node.start : node.open_end]
        return Edit(node.start, node.open_end, with_attributes(tag, attributes))


def _name(node: Node) -> str:
    return node.attributes.get("id", "")


def _has_content(node: Node) -> bool:
    return any(not isinstance(child, str) or child.strip() for child in node.children)
