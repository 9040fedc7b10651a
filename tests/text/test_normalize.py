import unicodedata

import pytest

from dragoman.errors import UserError
from dragoman.text.segment import nfc


def test_it_is_nfc_and_nothing_else():
    assert nfc("e\u0301") == "é"
    assert nfc("plain") == "plain"
    assert nfc("\u212b") == "Å"
    kept = " a\t\u2028\x00\u200d\ufeff "
    assert nfc(kept) == kept == unicodedata.normalize("NFC", kept)


@pytest.mark.parametrize("text", ["\ud800", "ab\udfffcd", "é\udc80"])
def test_a_lone_surrogate_is_refused_by_place(text: str):
    place = next(i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff")
    with pytest.raises(
        UserError, match=rf"character {place + 1} is a lone surrogate \(U\+{ord(text[place]):04X}"
    ):
        nfc(text)
