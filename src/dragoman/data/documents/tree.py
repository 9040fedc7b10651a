"""An XML document with the place of everything in its text, so that a part can be changed and no other."""

import re
from collections.abc import Iterator, Mapping

from dragoman.data.documents.inline import Inline
from dragoman.data.documents.unit import Check, unchecked
from dragoman.data.formats.xml import MAX_DEPTH, feed, hardened_parser, refuse_depth

_ATTRIBUTE = re.compile(r"""(?<![^\s=<>/"'])([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")


class Node:
    """An element: `text[start:open_end]` is its start tag, `text[close_start:end]` its end tag. In an empty
    element (`<a/>`) all but `start` are the same."""

    __slots__ = (
        *("name", "attributes", "start", "line", "open_end", "close_start", "end", "empty"),
        "children",
    )

    def __init__(self, name: str, attributes: dict[str, str], start: int, line: int) -> None:
        self.name, self.attributes, self.start, self.line = name, attributes, start, line
        self.open_end = self.close_start = self.end = start
        self.empty = False
        self.children: list[Node | str] = []
        """Elements, and pieces of text: a text may come in several."""

    def elements(self, *names: str) -> "Iterator[Node]":
        return (child for child in self.children if isinstance(child, Node) and child.name in names)

    def first(self, name: str) -> "Node | None":
        return next(self.elements(name), None)

    def below(self, *names: str) -> "Iterator[Node]":
        """Descendants with one of these names."""
        waiting = [child for child in reversed(self.children) if isinstance(child, Node)]
        while waiting:
            node = waiting.pop()
            if node.name in names:
                yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, Node)]


def parse_tree(text: str, where: str, check: Check = unchecked) -> Node:
    """The root element, with offsets into `text`."""
    builder = _Builder(text, where, check)
    data = text.encode("utf-8")
    for _ in feed(builder.parser, (data[at : at + (1 << 18)] for at in range(0, len(data), 1 << 18)), where):
        pass
    return builder.root.children[0]  # type: ignore[return-value]


class _Builder:
    """Builds the tree. A tag ends where the next event begins, so it listens to every event."""

    def __init__(self, text: str, where: str, check: Check) -> None:
        self._check = check
        self._data = text.encode("utf-8")
        self._bytes = self._chars = 0
        self.where = where
        self.root = Node("", {}, 0, 1)
        self._open = [self.root]
        self._tag: Node | None = None
        self._closed: Node | None = None
        self.parser = parser = hardened_parser(where, "utf-8")
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        for name in ("Comment", "ProcessingInstruction", "StartCdataSection", "EndCdataSection", "Default"):
            setattr(parser, f"{name}Handler", lambda *_: self._place())

    def _place(self) -> int:
        """The offset in characters; the tag before it ends here."""
        at = self.parser.CurrentByteIndex
        self._chars += len(self._data[self._bytes : at].decode("utf-8"))
        self._bytes = at
        if self._tag is not None:
            self._tag.open_end, self._tag = self._chars, None
        if self._closed is not None:
            self._closed.end, self._closed = self._chars, None
        return self._chars

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if len(self._open) > MAX_DEPTH:
            refuse_depth(self.where, line)
        self._check(1 + len(attributes))
        node = Node(name, attributes, self._place(), line)
        self._open[-1].children.append(node)
        self._open.append(node)
        self._tag = node

    def _end(self, _name: str) -> None:
        node = self._open.pop()
        node.close_start = node.end = self._place()
        node.empty = node.open_end == node.end and self._data[self._bytes - 2 : self._bytes] == b"/>"
        self._closed = None if node.empty else node

    def _text(self, data: str) -> None:
        self._check(1)
        self._place()
        self._open[-1].children.append(data)


def collect(
    text: str, node: Node, inline: Inline, around: Mapping[str, str | None], prefix: str = ""
) -> None:
    """Give the content of a node to `inline`. `around` names the elements that have text inside, with None,
    and those that are one half of a pair of codes, with the attribute that both halves share. All others
    stand alone, with all that is in them."""
    for child in node.children:
        if isinstance(child, str):
            inline.text(child)
            continue
        name = child.name.removeprefix(prefix)
        if name in around and around[name] is None and not child.empty:
            inline.open(text[child.start : child.open_end], child.start)
            collect(text, child, inline, around, prefix)
            inline.close(text[child.close_start : child.end], child.start)
        elif name in around and (shared := child.attributes.get(around[name] or "")) is not None:
            (inline.open if name in OPENING else inline.close)(text[child.start : child.end], shared)
        else:
            inline.alone(text[child.start : child.end])


OPENING = frozenset({"bpt", "bx", "sc", "sm"})


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """A start tag with these attributes set; the others keep their spelling."""
    for name, value in values.items():
        found = next((match for match in _ATTRIBUTE.finditer(tag) if match[1] == name), None)
        if found is not None:
            tag = f'{tag[: found.start(2)]}"{value}"{tag[found.end(2) :]}'
        else:
            end = tag.rindex("/>") if tag.endswith("/>") else tag.rindex(">")
            tag = f'{tag[:end].rstrip()} {name}="{value}"{tag[end:]}'
    return tag


def escape_xml(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(char for char in text if char >= " " or char in "\t\n\r")


def indentation(text: str, node: Node) -> str:
    """The white space before an element, if a line begins with it."""
    start = node.start
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    spaces = text[start : node.start]
    return spaces if "\n" in spaces else ""
