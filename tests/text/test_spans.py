"""Which spans are found, by kind."""

from itertools import pairwise

import pytest

from dragoman.errors import UserError
from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS, SpanKind, find

CASES: list[tuple[SpanKind, str, list[str]]] = [
    ("url", "See (https://a.b/c_(d)?x=1). Or www.foo.de, ok.", ["https://a.b/c_(d)?x=1", "www.foo.de"]),
    ("url", "[text](http://x.de/a) and <http://y.de>", ["http://x.de/a", "http://y.de"]),
    ("url", "http:// and www. and :// are none", []),
    ("url", "git+ssh://h/p; https://x/{id}!", ["git+ssh://h/p", "https://x/{id}"]),
    ("email", "Write to a.b+c@x-y.co.uk, or @me, a@b, a@b.c.", ["a.b+c@x-y.co.uk"]),
    ("number", "1,234.56 12.03.2024 3.5% 10:30 1 234", ["1,234.56", "12.03.2024", "3.5%", "10:30"]),
    ("number", "5 of 20, v1.2 and 1st; 12345, $5, -3, +49, 20°C", ["12345", "$5", "-3", "+49", "20°C"]),
    ("number", "1\u202f234,5 and 2024-05-06T10:30:00Z.", ["1\u202f234,5", "2024-05-06T10:30:00Z"]),
    ("placeholder", "{name} {} {0, number} {{ user.x }}", ["{name}", "{}", "{0, number}", "{{ user.x }}"]),
    ("placeholder", "{a note here} {open {{ x y } }}", []),
    ("printf", "%s %d files, %1$s %(n)s %-5.2f", ["%s", "%d", "%1$s", "%(n)s", "%-5.2f"]),
    ("printf", "%% %{x} %hello", ["%%", "%{x}", "%he"]),
    ("printf", "100% sure, 50%d, 5 % discount", []),
    ("variable", "$HOME/bin ${A_B} $5 A$AP $", ["$HOME", "${A_B}"]),
    ("tag", "<b>x</b> <br/> </p > <!-- c -->", ["<b>", "</b>", "<br/>", "</p >", "<!-- c -->"]),
    ("tag", "<a href='x>y' disabled/><x:y a=1>", ["<a href='x>y' disabled/>", "<x:y a=1>"]),
    ("tag", "a <b and c> d, 1 < 2 > 0, <3, <a href=\"x>", []),
    ("entity", "&nbsp; &#160; &#xA0; AT&T; R&D & ; &;", ["&nbsp;", "&#160;", "&#xA0;", "&T;"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "expected"), CASES)
def test_spans_of_one_kind(kind: SpanKind, text: str, expected: list[str]) -> None:
    spans = find(text, [kind])
    assert [span.text for span in spans] == expected
    assert all(text[span.start : span.end] == span.text and span.kind == kind for span in spans)


def test_spans_do_not_overlap_and_come_in_order() -> None:
    text = " ".join(text for _, text, _ in CASES)
    spans = find(text, ALL_KINDS)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert {span.kind for span in spans} == set(ALL_KINDS)
    assert "number" not in {span.kind for span in find(text, DEFAULT_KINDS)}


@pytest.mark.parametrize(
    "text", ["", "Plain words, 12 of them: a sentence (of sorts).", "naïve café – «oui»?"]
)
def test_plain_text_has_none(text: str) -> None:
    assert find(text, ALL_KINDS) == []


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UserError, match=r"url.*'names'"):
        find("x", ["names"])  # pyright: ignore[reportArgumentType]
