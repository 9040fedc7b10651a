"""Compiled maps of characters, as SentencePiece writes them: a double array and the texts behind it."""

import struct
from collections.abc import Mapping
from typing import Any

BLOCK = 256


def charsmap(replacements: Mapping[str, str]) -> bytes:
    texts, trie = b"", {}
    for text, other in replacements.items():
        node: dict[int, Any] = trie
        for byte in text.encode():
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += other.encode() + b"\0"
    units = _DoubleArray(trie).units
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + texts


class _DoubleArray:
    """By first fit: a node's children lie where they fit in around a base that no other node has."""

    def __init__(self, trie: dict[int, Any]) -> None:
        self.units = [0] * BLOCK
        self.used = {0}
        self.bases: set[int] = set()
        self._place(trie, 0, 0)

    def _place(self, node: dict[int, Any], here: int, label: int) -> None:
        base = 1
        while base in self.bases or any(base ^ byte in self.used for byte in node):
            base += 1
        self.units += [0] * max(0, (base | BLOCK - 1) + 1 - len(self.units))
        self.bases.add(base)
        self.used.update(base ^ byte for byte in node)
        self.units[here] = (here ^ base) << 10 | (0 in node) << 8 | label
        for byte, child in node.items():
            if byte:
                self._place(child, base ^ byte, byte)
            else:
                self.units[base] = 1 << 31 | child
