"""Plain data from files: JSON and YAML, held to limits, since a file may be a stranger's.

    size      bytes, before any of them is read
    values    how many a document may hold; a YAML alias counts as all that it stands for
    depth     how deep lists and mappings may lie in one another

A few hundred bytes of aliases can stand for gigabytes, and a few thousand brackets exhaust the stack of
whatever walks through them. What is refused here is refused in one sentence, before memory is taken for it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dragoman.errors import UserError, shown
from dragoman.files import read_regular

LARGEST_JSON, MOST_JSON_VALUES = 4 << 20, 100_000
LARGEST_YAML, MOST_YAML_VALUES = 1 << 20, 20_000
"""YAML is read a thousand times more slowly."""
DEEPEST = 64
_LONGEST_NUMBER = 64
_CONTAINERS = (dict, list, tuple)
_NUMBERS = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp")}
_TOO_DEEP = f"lists and mappings lie more than {DEEPEST} deep in one another"


def read_json(path: Path, limit: int = LARGEST_JSON, values: int = MOST_JSON_VALUES) -> Any:
    """The contents of a JSON file. A missing or unreadable file raises the system's OSError."""
    data = read_regular(path, limit)
    try:
        return parse_json(data, values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def parse_json(data: bytes, values: int = MOST_JSON_VALUES) -> Any:
    """The data of a JSON document. An error does not say which file it is about."""
    if sum(map(data.count, (b",", b"[", b"{"))) >= values:  # no value is without one of these but the first
        raise _too_many(values)
    try:
        found = json.loads(data, object_pairs_hook=_mapping)
    except UserError:
        raise
    except RecursionError:
        raise UserError(_TOO_DEEP) from None
    except ValueError:
        raise UserError("not valid JSON") from None
    _refuse_deep(found)
    return found


def read_yaml(path: Path) -> Any:
    """The contents of a YAML file. A missing or unreadable file raises the system's OSError."""
    data = read_regular(path, LARGEST_YAML)
    try:
        return parse_yaml(data)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: not valid YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML ({error})") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def parse_yaml(text: str | bytes) -> Any:
    """The data of a YAML document; raises yaml.YAMLError where it is none."""
    try:
        loader = _Loader(text)
        try:
            found = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, UserError):
        raise
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError):  # PyYAML's own, of odd values
        raise yaml.YAMLError("a value does not match its YAML tag") from None
    _refuse_deep(found)
    return found


class _Loader(yaml.SafeLoader):
    """The safe loader, which counts while it composes: before anything is made of what it has read."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self.values = self.depth = 0
        self.sizes: dict[str, int] = {}
        """Values that each anchor stands for."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self.sizes:
                raise UserError(f"the alias *{event.anchor} stands inside of what it stands for")
            self._count(self.sizes.get(event.anchor, 0))
            return super().compose_node(parent, index)
        before = self.values
        self._count(1)
        self.depth += 1
        if self.depth > DEEPEST:
            raise UserError(_TOO_DEEP)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if event.anchor is not None:
            self.sizes[event.anchor] = self.values - before
        if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise UserError(f"a number of {len(node.value):,} characters: {shown(node.value)}")
        return node

    def _count(self, values: int) -> None:
        self.values += values
        if self.values > MOST_YAML_VALUES:
            raise _too_many(MOST_YAML_VALUES)


def _too_many(values: int) -> UserError:
    return UserError(f"it holds more than {values:,} values, which are the most that are read")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise UserError(f"the field {shown(twice)} is there twice")
    return found


def _refuse_deep(data: Any) -> None:
    level = [data]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, _CONTAINERS)]
        if not level:
            return
    raise UserError(_TOO_DEEP)


def _inside(data: Any) -> Iterator[Any]:
    return iter(data.values() if isinstance(data, dict) else data if isinstance(data, _CONTAINERS) else ())
