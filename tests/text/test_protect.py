"""Protection: whatever a model writes, every span comes out once, unchanged, and markup stays nested."""

import random
from collections import Counter

import numpy as np
import pytest

from dragoman.text.markup import partners, well_formed
from dragoman.text.protect import carried, protect, restore
from dragoman.text.spans import ALL_KINDS, find
from dragoman.text.word_boundaries import units

WORDS = ["one", "two,", "three.", "naïve", "(", ")", "–", "五", "e\u0301t", "don't"]
SPANS = [
    "{a}", "{{b c}}", "%s", "%(n)d", "$HOME", "${x}", "http://a.b/c?d=1", "www.x.org", "a@b.de", "1,5%",
    "12345", "-3", "&nbsp;", "<br/>", "<br>", "<!-- c -->", "<img src='i.png' alt=\"1 > 0\">",
]  # fmt: skip
RUBBISH = [
    "<",
    ">",
    "{",
    "}",
    "%",
    "$",
    "&",
    "http://",
    "<!--",
    "-->",
    "@",
    ".",
    "1",
    "-",
    "/",
    "<a href='",
    "</b>",
]


def markup(chance: random.Random, depth: int = 0) -> list[str]:
    """Words, spans and nested elements, with or without white space between them."""
    parts: list[str] = []
    for _ in range(chance.randint(0, 6)):
        kind = chance.random()
        if kind < 0.25 and depth < 4:
            name = chance.choice(["b", "i", "a", "x:y"])
            attribute = chance.choice(["", " href='u'"])
            parts += [f"<{name}{attribute}>", *markup(chance, depth + 1), f"</{name}>"]
        else:
            parts.append(chance.choice(SPANS if kind < 0.5 else WORDS))
        parts.append(" " * (chance.random() < 0.6))
    return parts


def random_weights(chance: random.Random, translation: str, text: str) -> np.ndarray:
    rows, columns = len(units(translation)), len(units(text))
    return np.array([chance.random() ** 4 for _ in range(rows * columns)]).reshape(rows, columns)


@pytest.mark.parametrize("seed", range(8))
def test_every_span_comes_out_once_whatever_the_model_writes(seed: int) -> None:
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for round_number in range(400):
        source = "".join(markup(chance))
        said = WORDS + (SPANS + RUBBISH if round_number % 2 else ["<b>", "{a}"])
        between = chance.choice(["", " "])
        translation = between.join(chance.choices(said, k=chance.randint(0, 14)))
        protected = protect(source, ALL_KINDS)
        weights = random_weights(chance, translation, protected.text) if round_number % 3 else None
        text, how = restore(translation, protected, weights)
        expected = Counter(span.text for span in find(source, ALL_KINDS))
        found = find(text, ALL_KINDS)
        assert Counter(span.text for span in found) == expected, (source, translation, text)
        assert all(text.count(span) >= count for span, count in expected.items())
        if well_formed(protected.spans):
            assert well_formed(found), (source, text)
        seen[how] += 1
    assert seen["placed"] > 300


@pytest.mark.parametrize("seed", range(4))
def test_the_words_of_the_model_stay_as_they_are(seed: int) -> None:
    """Without the spans and white space, the text is what the model wrote."""
    chance = random.Random(seed)
    for _ in range(300):
        translation = " ".join(chance.choices(WORDS, k=chance.randint(1, 10)))
        protected = protect("".join(markup(chance)), ALL_KINDS)
        weights = random_weights(chance, translation, protected.text)
        text, _ = restore(translation, protected, weights)
        if not protected.text.strip():
            continue
        rest, at = "", 0
        for span in find(text, ALL_KINDS):
            rest, at = rest + text[at : span.start], span.end
        assert "".join((rest + text[at:]).split()) == "".join(translation.split())


def aligned(source: str, translation: str, order: list[int]) -> str:
    """Restored with weights that let target unit t look at source unit order[t]."""
    protected = protect(source)
    weights = np.full((len(units(translation)), len(units(protected.text))), 0.01)
    weights[np.arange(len(order)), order] = 1.0
    text, how = restore(translation, protected, weights)
    assert how == "placed"
    return text


def test_elements_go_where_their_words_went() -> None:
    source = "Click <b>the red button</b> at {url}."
    assert protect(source).text == "Click the red button at."
    got = aligned(source, "Klicken Sie auf den roten Knopf bei.", [0, 0, 4, 1, 2, 3, 4, 5])
    assert got == "Klicken Sie auf <b>den roten Knopf</b> bei {url}."
    got = aligned("The <i>cat</i> and the <b>dog</b>", "Der Hund und die Katze", [3, 4, 2, 0, 1])
    assert got == "Der <b>Hund</b> und die <i>Katze</i>"
    got = aligned("<p>Press <i>any</i> key, %s!</p>", "Beliebige Taste drücken!", [1, 2, 0, 4])
    assert got == "<p><i>Beliebige</i> Taste drücken %s!</p>"


def test_words_are_marked_not_their_punctuation() -> None:
    """Even where the attention of a full stop is what an element gets most of."""
    protected = protect("fix <b>the roof</b> of {x} a house.")
    weights = np.full((4, 6), 0.1)
    weights[3, 1:4] = 5.0  # the full stop looks at «the roof of»
    weights[1, 1:3] = 0.2
    text, _ = restore("ein Haus reparieren.", protected, weights)
    assert text == "ein <b>Haus</b> {x} reparieren."


def test_white_space_is_that_of_the_source() -> None:
    same = [0, 1, 2, 3, 4]
    assert aligned("<b>One</b>, two", "Eins, zwei", same[:3]) == "<b>Eins</b>, zwei"
    assert aligned("one<br>two", "eins zwei", same[:2]) == "eins<br>zwei"
    assert aligned("one <br> two", "eins zwei", same[:2]) == "eins <br> zwei"
    assert aligned("one ({x}) two", "eins () zwei", same[:4]) == "eins ({x}) zwei"
    assert aligned("{n}px wide", "breit px", [1, 0]) == "{n}breit px"  # the text's edge comes first
    assert aligned("See http://x.de now", "Siehe jetzt", same[:2]) == "Siehe http://x.de jetzt"
    assert aligned("a <b>b</b> c", "x y z", same[:3]) == "x <b>y</b> z"
    assert aligned("a <b> b </b> c", "x y z", same[:3]) == "x <b> y </b> z"
    assert aligned("a <b><i>b</i></b> c", "x y.", [0, 1, 2]) == "x <b><i>y</i></b>."


def test_nothing_but_spans_is_its_own_translation() -> None:
    source = "<b>{a}</b>  http://x.de"
    assert protect(source).text == ""
    assert restore("", protect(source)) == (source, "placed")


def test_what_the_model_copied_is_not_doubled() -> None:
    protected = protect("See {x} now")
    assert carried(protected, "Siehe jetzt {x}")
    assert not carried(protected, "Siehe {x} jetzt {x}")
    assert not carried(protected, "Siehe jetzt")
    assert restore("Siehe {x} jetzt {x}", protected)[0].count("{x}") == 1
    tags = protect("<b>a</b>")
    assert carried(tags, "x <b>y</b>")
    assert not carried(tags, "</b>x<b>")
    assert carried(protect("</b>a<b>"), "</b>x<b>")


def test_a_span_that_cannot_stand_anywhere_stands_at_the_end() -> None:
    """A comment that the model began would swallow it, here and at the end too: so it is taken apart."""
    protected = protect("a <!-- c --> b")
    weights = np.array([[0.0, 1.0]] * 3 + [[1.0, 0.0]])
    assert restore("<!--", protected, weights) == ("! <!-- c -->", "appended")
    assert restore("", protected) == ("<!-- c -->", "placed")


def test_cutting_leaves_text_as_if_nothing_had_been_there() -> None:
    cuts = {
        "See {x} for more": "See for more",
        "{x} one": "one",
        "one {x}": "one",
        "one {x}, two": "one, two",
        "one<br>two": "one two",
        "<b>o</b>ne": "one",
        "a {x} {y} b": "a b",
        "e\u0301 {x} e": "é e",
    }
    assert {source: protect(source).text for source in cuts} == cuts
    assert protect("  plain  text ").text == "  plain  text "


def test_tags_are_paired_by_nesting() -> None:
    spans = find("<a><b></b><br></A><c></d></c>")
    assert [s.text for s in spans] == ["<a>", "<b>", "</b>", "<br>", "</A>", "<c>", "</d>", "</c>"]
    assert partners(spans) == [4, 2, 1, None, 0, 7, None, 5]
    assert partners(find("<a><b></a></b>")) == [2, None, 0, None]
    assert not well_formed(find("<a><b></a></b>"))
    assert well_formed(find("<a>x<br>{y}</a><!-- <z> -->"))


def test_deep_and_long_markup_is_no_trouble() -> None:
    source = "<b>" * 3000 + "one" + "</b>" * 3000 + " {x}" * 500
    text, how = restore("eins", protect(source))
    assert how == "placed"
    assert well_formed(find(text)) and text.count("{x}") == 500
