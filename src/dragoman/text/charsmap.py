"""SentencePiece's compiled map of characters, checked before the library tokenizers runs it.

    u32      bytes of the trie
    trie     a double array (Yata et al. 2007) of u32 units, over the UTF-8 of what is replaced
    texts    UTF-8: what is put there, each text up to the next zero byte

A unit at index i has bits 0-7 label, 8 "a key ends here", 9 "shift the offset", 10-30 offset, 31 "this is a
value". The children of i are at i ^ offset ^ label. Where a key ends, the value at i ^ offset is an index
into the texts. The library checks none of this, and panics on a damaged map.
"""

import base64
import binascii
from itertools import pairwise

import numpy as np

from dragoman.errors import UserError

LARGEST = 4 << 20
LONGEST_TEXT = 100
"""Bytes that may replace one character; Unicode compatibility forms need 33."""
_BLOCK = 256
_LEADS = ((0x80, 0), (0xC2, -1), (0xE0, 1), (0xF0, 2), (0xF5, 3), (0x100, -1))
"""For lead bytes below each bound, the number of continuation bytes; −1: not a lead byte."""

Array = np.ndarray


def check_charsmap(encoded: str) -> int:
    """Refuse a map that could make the library panic. Returns the length of its longest replacement in
    bytes."""
    if len(encoded) > 2 * LARGEST:
        raise UserError("precompiled_charsmap: too large for such a map")
    try:
        data = base64.b64decode(encoded.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise UserError("precompiled_charsmap: expected base64") from None
    damaged = UserError("precompiled_charsmap: damaged: this is not a map of characters")
    size = int.from_bytes(data[:4], "little")
    if len(data) > LARGEST or not 4 <= size <= len(data) - 4 or size % 4:
        raise damaged
    texts = data[4 + size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError:
        raise damaged from None
    longest = max(map(len, texts.split(b"\0")))
    units = np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64)
    if longest > LONGEST_TEXT or not _is_sound(units, np.frombuffer(texts, np.uint8)):
        raise damaged
    return longest


def _is_sound(units: Array, texts: Array) -> bool:
    """Whether, for every input, all indices exist, keys end at the end of characters, and values point to the
    beginnings of characters."""
    labels = np.where(units >> 31, 0, units & 0xFF)
    bases = np.arange(len(units)) ^ ((units >> 10) & 0x1FFFFF) << ((units & 0x200) >> 6)
    ends = (units >> 8 & 1).astype(bool)
    wanted = np.arange(len(units)) ^ labels  # where the base of its parent has to be
    by_base = np.argsort(wanted, kind="stable")
    sorted_bases = wanted[by_base]
    seen = np.zeros((len(units), 4), dtype=bool)  # places, with so many bytes of a character to come
    places, to_come = np.zeros(1, np.int64), np.zeros(1, np.int64)
    while len(places):
        base = bases[places]
        if (base | _BLOCK - 1).max() >= len(units):
            return False
        first, last = (np.searchsorted(sorted_bases, base, side) for side in ("left", "right"))
        parents = np.repeat(np.arange(len(places)), last - first)
        children = by_base[np.arange(len(parents)) - np.repeat(np.cumsum(last - first) - last, last - first)]
        following = _following(to_come[parents], labels[children])
        places, to_come = children[following >= 0], following[following >= 0]
        fresh = ~seen[places, to_come]
        places, to_come = places[fresh], to_come[fresh]
        seen[places, to_come] = True
        ending = places[ends[places]]
        if len(ending) and not _end_well(ending, to_come[ends[places]], bases, units, texts):
            return False
    return True


def _end_well(ending: Array, to_come: Array, bases: Array, units: Array, texts: Array) -> bool:
    if bases[ending].max() >= len(units) or to_come.any():
        return False
    values = units[bases[ending]] & 0x7FFFFFFF
    if values.max() > len(texts):
        return False
    inside = values[values < len(texts)]
    return not (texts[inside] & 0xC0 == 0x80).any()


def _following(to_come: Array, labels: Array) -> Array:
    """The number of bytes of the character after this one; −1 for invalid UTF-8."""
    leads = np.full(256, -1)
    for (below, _), (bound, count) in pairwise(((0, 0), *_LEADS)):
        leads[below:bound] = count
    leads[0] = -1  # a zero byte ends the search
    continues = labels & 0xC0 == 0x80
    return np.where(to_come > 0, np.where(continues, to_come - 1, -1), leads[labels])
