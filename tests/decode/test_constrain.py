"""Rules on the next piece against loops in Python, and what they promise about text."""

import math
import random
import re
from dataclasses import replace

import pytest
import torch

from decode.constrained import KINDS, TEXTS, WORDS, some_words, translator, wild
from dragoman.decode.rules.constraints import Constraints, constraints_for
from dragoman.decode.rules.forbid import NoRepeatedNgram
from dragoman.decode.search.batch import RepetitionPenalty, Rules
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.text.automaton import automaton
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import has_phrase
from searching import search

SEVERAL = torch.randint(3, 12, (5, 4), generator=torch.Generator().manual_seed(0))
MASK = torch.ones(5, 4, dtype=torch.bool)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_repeated_ngram_equals_loops(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    vocab = wild(9, 0).vocab
    for length in range(9):
        prefix = torch.randint(3, 6, (6, length), generator=generator)
        scores = torch.randn(6, 9, generator=generator)
        expected = scores.clone()
        expected[:, 0] = -math.inf
        for row, pieces in enumerate(prefix.tolist()):
            seen = {tuple(pieces[i : i + n]) for i in range(length - n + 1)}
            for piece in range(9):
                if length >= n - 1 and (*pieces[length - n + 1 :], piece)[-n:] in seen:
                    expected[row, piece] = -math.inf
        scores[:, 0] = -math.inf  # padding, as Rules forbid it
        assert torch.equal(NoRepeatedNgram(vocab, n)(scores, prefix, torch.zeros(6).long()), expected)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("n", [1, 2])
def test_searches_repeat_no_ngram(beam: int, n: int) -> None:
    model = wild(12, 3, eos_bias=-4.0)
    found = search(Scorer([model]), SEVERAL, MASK, SearchConfig(beam=beam, n_best=beam, no_repeat_ngram=n))
    for hypothesis in (h for row in found for h in row):
        ngrams = [hypothesis.tokens[i : i + n] for i in range(len(hypothesis.tokens) - n + 1)]
        assert len(set(ngrams)) == len(ngrams)


@pytest.mark.parametrize("beam", [1, 3])
def test_where_nothing_may_come_a_sentence_ends(beam: int) -> None:
    """Six pieces, none twice, and at least twenty: impossible, so it ends with a true score."""
    model = wild(9, 1)
    config = SearchConfig(beam=beam, no_repeat_ngram=1, min_length=20, max_extra=30)
    for best, *_ in search(Scorer([model]), SEVERAL % 6 + 3, MASK, config):
        assert len(best.tokens) <= 7
        assert all(math.isfinite(score) for score in best.token_scores)
    short = SearchConfig(
        beam=beam, min_length=20, max_length=4
    )  # the greatest length wins, with a true score
    for best, *_ in search(Scorer([model]), SEVERAL % 6 + 3, MASK, short):
        assert len(best.tokens) == 4
        assert all(math.isfinite(score) for score in best.token_scores)


def test_repetition_penalty_raises_to_a_power() -> None:
    scores = torch.randn(2, 6).log_softmax(-1)
    ranked = RepetitionPenalty(1.5)(scores, torch.tensor([[3, 3, 4], [5, 5, 5]]), torch.tensor([0, 0]))
    for row, pieces in enumerate([{3, 4}, {5}]):
        for piece in range(6):
            power = 1.5 if piece in pieces else 1.0
            assert ranked[row, piece].exp() == pytest.approx(
                float(scores[row, piece].exp()) ** power, abs=1e-6
            )


@pytest.mark.parametrize("beam", [1, 4])
def test_a_penalty_changes_what_is_found_but_not_the_scores_reported(beam: int) -> None:
    model, plain = wild(12, 3, eos_bias=-3.0).double(), SearchConfig(beam=beam, n_best=beam)
    strict = replace(plain, repetition_penalty=3.0)
    before = search(Scorer([model]), SEVERAL, MASK, plain)
    after = search(Scorer([model]), SEVERAL, MASK, strict)
    variety = [
        sum(len(set(best.tokens)) / len(best.tokens) for best, *_ in found) for found in (before, after)
    ]
    assert variety[1] > variety[0]
    for row, found in enumerate(after):
        assert [h.score(strict) for h in found] == sorted((h.score(strict) for h in found), reverse=True)
        for h in found:
            tgt_in = torch.tensor([[1, *h.tokens[:-1]]])
            with torch.no_grad():
                again = model.project(model(SEVERAL[row : row + 1], MASK[:1], tgt_in))[0].log_softmax(-1)
            true = again.gather(1, torch.tensor(h.tokens)[:, None])[:, 0].tolist()
            assert h.token_scores == pytest.approx(true, abs=1e-5)
            if beam > 1:
                counts = [3.0 if piece in h.tokens[:i] else 1.0 for i, piece in enumerate(h.tokens)]
                assert h.ranked == pytest.approx(
                    sum(c * s for c, s in zip(counts, true, strict=True)), abs=1e-3
                )


def test_rules_without_reweighing_hand_back_the_same_numbers() -> None:
    scores = torch.randn(2, 12)
    assert Rules(wild(12, 0).vocab)(scores, torch.zeros(2, 0).long(), torch.tensor([0, 1])) is scores


PREFIXES = [
    "new",
    "new ",
    "the ca",
    "",
    "x",
    "«el niñ",
    " the",
    "cat. ",
    "лод",
    "a  ",
    "…",
    "new york ",
    "\u0301q",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_translations_begin_with_their_prefix(kind: str, beam: int, is_open: bool) -> None:
    settings = SearchConfig(beam=beam, n_best=beam, max_ratio=0, max_extra=3, no_repeat_ngram=2)
    translate = translator(kind, seed=beam, eos_bias=2.0)
    found = translate.hypotheses(
        ["the cat"] * len(PREFIXES), prefixes=PREFIXES, prefix_open=is_open, search=settings
    )
    for prefix, hypotheses in zip(PREFIXES, found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.text.startswith(prefix)
            rest = hypothesis.text[len(prefix) :]
            if not is_open and prefix[-1:].isalpha() and rest:
                assert not rest[0].isalnum()


def test_an_open_prefix_can_become_a_longer_piece() -> None:
    tokenizer = Tokenizer.train(TEXTS * 3, KINDS["start"])
    closed = constraints_for(tokenizer, prefix="the new")
    opened = constraints_for(tokenizer, prefix="the new", prefix_open=True)
    assert tokenizer.pieces(closed.head) == tokenizer.pieces(tokenizer.encode("the new"))
    assert (tokenizer.decode(opened.head), opened.tail) == ("the", b" new")
    assert constraints_for(tokenizer, prefix="the ").tail == b" "


@pytest.mark.parametrize("kind", KINDS)
def test_the_automaton_finds_whole_words_however_they_are_cut(kind: str) -> None:
    """Random texts of random pieces: a piece is refused exactly when the phrase is there and ended."""
    chance = random.Random(7)
    tokenizer = Tokenizer.train(TEXTS, KINDS[kind])
    banned = ["cat", "new york", "york city", "лодка", "ca", "niño", "…", "at."]
    read = automaton(tuple(banned), tokenizer.spelling)
    found = 0
    for _ in range(300):
        text = "".join(chance.choice([*WORDS, " ", " ", ".", "c", "at", "ca", "s", "ки"]) for _ in range(5))
        ids = tokenizer.spell(text)
        if chance.random() < 0.5:
            ways = [tokenizer.spell(c) if chance.random() < 0.5 else _bytes(tokenizer, c) for c in text]
            ids = [i for way in ways for i in way]
        state, hit = 0, False
        for i in ids:
            hit |= bool(read.finds[state, i])
            state = int(read.after[state, i])
        hit |= bool(read.holds[state])
        held = any(has_phrase(text, phrase) for phrase in banned)
        found += held
        # Pieces that are parts of characters may be taken for a boundary: then more is refused, never less.
        whole = all(
            tokenizer.spelling.pieces[i] < b"\x80" or len(tokenizer.spelling.pieces[i]) > 1 for i in ids
        )
        assert hit == held if whole else hit >= held, (text, ids)
    assert found > 50


def _bytes(tokenizer: Tokenizer, character: str) -> list[int]:
    first = len(tokenizer.config.first_pieces) - 256
    return [first + byte for byte in character.encode("utf-8")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 4])
def test_forbidden_phrases_never_come(kind: str, beam: int) -> None:
    """Forbid what comes by itself, again and again, and see that it is gone."""
    settings = SearchConfig(beam=beam, n_best=beam, max_ratio=1, max_extra=8)
    banned: set[str] = set()
    texts = ["the cat sat", "new york"]
    for step in range(9):
        if step % 3 == 0:
            translate = translator(kind, seed=beam + step, eos_bias=-1.0)
        found = [
            h.text
            for row in translate.hypotheses(texts, search=settings, forbidden=sorted(banned))
            for h in row
        ]
        assert not any(has_phrase(text, phrase) for text in found for phrase in banned)
        words = {w for text in found for w in re.findall(r"\w+|[^\w\s\ufffd]", text)}
        banned |= set(sorted(words)[:4])
    assert len(banned) > 2


def test_forbidden_phrases_of_one_sentence_leave_the_others_alone() -> None:
    translate = translator("char", seed=1, eos_bias=-1.0)
    texts = ["the cat", "new york", "the cat"]
    before = translate.translate(texts)
    word = re.findall(r"[^\s\ufffd]+", before[0])[0]
    after = [row[0].text for row in translate.hypotheses(texts, forbidden=[[word], [], []])]
    assert after[1:] == before[1:]
    assert not has_phrase(after[0], word)


def test_contradictions_and_empty_phrases_are_refused() -> None:
    tokenizer = Tokenizer.train(TEXTS, KINDS["start"])
    for fields, message in [
        ({"prefix": "the cat sat", "forbidden": ["cat"]}, "prefix: .*'cat'"),
        ({"required": ["new york"], "forbidden": ["york"]}, "required: .*'new york'"),
        ({"required": [" "]}, "required: .*' '"),
        ({"required": [[]]}, "required"),
        ({"forbidden": [""]}, "forbidden"),
    ]:
        with pytest.raises(UserError, match=message):
            constraints_for(tokenizer, **fields)  # type: ignore[arg-type]
    assert constraints_for(tokenizer, prefix="the ca", prefix_open=True, forbidden=["ca"]).forbidden == (
        "ca",
    )
    assert constraints_for(tokenizer, required=[["york", "jersey"]], forbidden=["york"]).required == (
        constraints_for(tokenizer, required=["jersey"]).required
    )


def test_lists_of_another_length_are_refused() -> None:
    translate = translator("char", seed=1)
    for fields in (
        {"prefixes": ["a"]},
        {"required": [["a"]]},
        {"forbidden": [["a"]]},
        {"forbidden": ["a", ["b"]]},
    ):
        with pytest.raises(UserError, match=next(iter(fields))):
            translate.hypotheses(["the cat", "new"], **fields)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="spelling"):
        search(Scorer([wild(12, 0)]), SEVERAL, MASK, SearchConfig(), [Constraints(head=(3,))] * 5)


def test_a_blank_text_is_asked_about_only_if_something_has_to_come() -> None:
    translate = translator("start", seed=1)
    assert translate.hypotheses([""], forbidden=["cat"])[0][0].text == ""
    assert translate.hypotheses([""], prefixes=["the cat"])[0][0].text.startswith("the cat")
    assert has_phrase(translate.hypotheses(["  "], required=[["mat"]])[0][0].text, "mat")


@pytest.mark.parametrize(("field", "value"), [("no_repeat_ngram", -1), ("repetition_penalty", 0.5)])
def test_impossible_settings_are_refused(field: str, value: float) -> None:
    with pytest.raises(UserError, match=field):
        replace(SearchConfig(), **{field: value})


def test_words_are_chosen_the_same_way_in_every_run() -> None:
    assert some_words(random.Random(1), 3) == some_words(random.Random(1), 3)
