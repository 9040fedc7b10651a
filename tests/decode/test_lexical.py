"""Required phrases: always there, found as well as brute force finds them, and the same in any batch."""

import itertools
import math
import random

import pytest
import torch

from decode.constrained import EOS, KINDS, LETTERS, some_words, translator, wild
from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.rules.required_phrases import Required
from dragoman.decode.search.beam_allocation import Banks, _rank_within
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.models.base import EncoderDecoder
from dragoman.text.word_boundaries import has_phrase, places_of
from searching import search

SOURCE = torch.tensor([[3, 4, 5, 3]]), torch.ones(1, 4, dtype=torch.bool)


def letters(text: str) -> tuple[int, ...]:
    return tuple(LETTERS.pieces.index(character.encode()) for character in text)


def as_text(tokens: tuple[int, ...]) -> str:
    return b"".join(LETTERS.pieces[token] for token in tokens).decode()


def requiring(*phrases: str) -> Constraints:
    """Each phrase one requirement; `|` separates variants."""
    sequences = tuple(tuple(map(letters, phrase.split("|"))) for phrase in phrases)
    return Constraints(required=sequences, spelling=LETTERS)


def all_that_satisfy(
    model: EncoderDecoder, limit: int, phrases: tuple[str, ...], alpha: float
) -> list[tuple[float, tuple]]:
    """Every text that has every phrase as whole words, scored in one forward pass a length."""
    found = []
    for length in range(1, limit):
        bodies = [
            body
            for body in itertools.product(range(3, 6), repeat=length)
            if all(any(has_phrase(as_text(body), way) for way in p.split("|")) for p in phrases)
        ]
        if not bodies:
            continue
        full = torch.tensor([(1, *body, EOS) for body in bodies])
        src = tuple(x.expand(len(full), -1) for x in SOURCE)
        with torch.no_grad():
            scores = model.project(model(*src, full[:, :-1])).log_softmax(-1)
        sums = scores.gather(2, full[:, 1:, None])[:, :, 0].sum(dim=1) / (length + 1) ** alpha
        found += [(s, (*body, EOS)) for s, body in zip(sums.tolist(), bodies, strict=True)]
    return sorted(found, reverse=True)


APART = [("a",), ("ab",), ("a", "b"), ("ab", "a"), ("bb|ba", "a")]
SHARING = [("a b", "b a"), ("b a|b", "b"), ("a b", "b")]


@pytest.mark.parametrize("phrases", [*APART, *SHARING], ids="+".join)
@pytest.mark.parametrize("seed", range(2))
def test_a_huge_beam_finds_what_brute_force_finds(seed: int, phrases: tuple[str, ...]) -> None:
    """Room is reckoned for phrases one after the other. So for those that can share pieces the model ends
    early here, far from the limit."""
    sharing = phrases in SHARING
    model, wanted = wild(6, seed, torch.float64, 3.0 if sharing else 0.0), requiring(*phrases)
    limit, alpha = max(7, wanted.required_pieces + 2), 0.0 if sharing else 1.0
    config = SearchConfig(beam=800, n_best=3, alpha=alpha, max_ratio=0, max_extra=7, stop="limit")
    found = search(Scorer([model]), *SOURCE, config, [wanted], LETTERS)[0]
    expected = all_that_satisfy(model, limit, phrases, alpha)[: 1 if sharing else 3]
    assert [h.tokens for h in found][: len(expected)] == [tokens for _, tokens in expected]
    best = found[0].score(SearchConfig(alpha=alpha))  # a sum in float32
    assert best == pytest.approx(expected[0][0], rel=1e-6)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("eos_bias", [-20.0, 20.0])
def test_every_phrase_comes_however_the_model_feels_about_it(beam: int, eos_bias: float) -> None:
    """All pairs and some triples of phrases that overlap, contain or begin like each other."""
    pool = ["a", "b", "ab", "aba", "a b", "b a", "abb", "b ab", "a a"]
    sets = [*itertools.combinations_with_replacement(pool, 2), *itertools.permutations(pool[2:6], 3)]
    model = wild(6, 7, eos_bias=eos_bias)
    src = tuple(x.expand(len(sets), -1) for x in SOURCE)
    config = SearchConfig(beam=beam, max_ratio=0, max_extra=5)
    found = search(Scorer([model]), *src, config, [requiring(*own) for own in sets], LETTERS)
    for own, (best, *_) in zip(sets, found, strict=True):
        text = as_text(best.tokens)
        for phrase in set(own):
            assert len(list(places_of(phrase, text))) >= own.count(phrase), (own, text)


def test_a_phrase_within_a_longer_word_does_not_count_and_is_not_in_the_way() -> None:
    """`cat` in `the catalogue`, letter by letter: dropping the word at hand must never use up the room."""
    model = wild(6, 3, eos_bias=-20.0)
    for own in [("ab abab", "ab"), ("a ab", "a", "a"), ("abab", "ab", "a"), ("b abb", "ab", "abb")]:
        for extra in range(1, 12):
            config = SearchConfig(beam=1, max_ratio=0, max_extra=extra)
            best = search(Scorer([model]), *SOURCE, config, [requiring(*own)], LETTERS)[0][0]
            assert all(has_phrase(as_text(best.tokens), phrase) for phrase in own), as_text(best.tokens)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 4])
def test_text_has_what_is_required_with_any_vocabulary(kind: str, beam: int) -> None:
    chance = random.Random(beam)
    asked = [some_words(chance, 3) for _ in range(24)]
    texts = [" ".join(some_words(chance, 4)) for _ in asked]
    translate = translator(kind, seed=beam)
    found = translate.hypotheses(
        texts, required=asked, search=SearchConfig(beam=beam, max_ratio=1, max_extra=2)
    )
    for own, (best, *_) in zip(asked, found, strict=True):
        for phrase in set(own):
            assert len(list(places_of(phrase, best.text))) >= own.count(phrase), (own, best.text)


def test_prefix_required_and_variants_together() -> None:
    for kind in KINDS:
        translate = translator(kind, seed=2)
        found = translate.hypotheses(
            ["new york"] * 3,
            prefixes=["the cat", "the new york", "x"],
            required=[["cat"], [["york", "jersey"], "cats"], [["лодка", "mat"], "niño"]],
            search=SearchConfig(beam=2, max_ratio=1, max_extra=3),
        )
        texts = [best.text for best, *_ in found]
        assert texts[0].startswith("the cat")
        assert texts[1].startswith("the new york") and has_phrase(texts[1], "cats")
        assert has_phrase(texts[2], "niño")
        assert has_phrase(texts[2], "лодка") or has_phrase(texts[2], "mat")


@pytest.mark.parametrize("beam", [1, 4])
def test_the_other_sentences_of_a_batch_change_nothing(beam: int) -> None:
    chance = random.Random(5)
    texts = [" ".join(some_words(chance, 5)) for _ in range(12)]
    asked = [some_words(chance, 4) if i % 3 else [] for i in range(12)]
    prefixes = ["the " if i % 4 == 1 else "" for i in range(12)]
    forbidden = [["cat", "…"] if i % 2 else [] for i in range(12)]
    asked = [[p for p in own if p not in ("cat", "…", "the cat")] for own in asked]
    translate = translator("start", seed=1, search=SearchConfig(beam=beam, n_best=beam))
    together = translate.hypotheses(texts, prefixes=prefixes, required=asked, forbidden=forbidden)
    for i, text in enumerate(texts):
        alone = translate.hypotheses(
            [text], prefixes=prefixes[i : i + 1], required=asked[i : i + 1], forbidden=forbidden[i : i + 1]
        )[0]
        assert [h.tokens for h in alone] == [h.tokens for h in together[i]]
    plain = translate.hypotheses(texts)
    for i in (0,):
        assert [h.tokens for h in plain[i]] == [h.tokens for h in together[i]]


def test_scores_are_those_of_rescoring() -> None:
    translate = translator("start", seed=4, search=SearchConfig(beam=4, n_best=2, repetition_penalty=1.3))
    text = "the new boat"
    found = translate.hypotheses(
        [text], required=[["york city", "cat"]], prefixes=["new"], forbidden=["the"]
    )[0]
    source = translate.src_tokenizer.encode(text)
    again = translate.score_ids([(source, h.tokens) for h in found], search=SearchConfig(alpha=1.0))
    for searched, rescored in zip(found, again, strict=True):
        assert searched.token_scores == pytest.approx(rescored.token_scores, abs=1e-5)
        assert searched.log_prob == math.fsum(searched.token_scores)
        assert searched.score == pytest.approx(rescored.score, abs=1e-5)


def test_what_is_needed_as_the_phrases_come() -> None:
    """After each text: the least that suffices once one more piece has been written."""
    wanted = requiring("ab b", "b")
    required = Required(wild(6, 0).vocab, [wanted], torch.tensor([20]))
    steps = {"": 5, "a": 4, "ab": 3, "ab ": 2, "ab bb": 6, "aab": 6, "b": 4, "b ": 3}
    for text, need in steps.items():
        prefix = torch.tensor([letters(text)], dtype=torch.long).view(1, -1)
        assert int(required.progress(prefix, torch.tensor([0])).then.min()) == need, text
    done = required.progress(torch.tensor([letters("ab b")]), torch.tensor([0]))
    assert not done.missing.any()


@pytest.mark.parametrize(("text", "following"), [("", "a"), ("a", "b"), ("b ", "a")])
def test_what_goes_on_with_a_phrase_has_the_first_turn(text: str, following: str) -> None:
    """However unlikely it is: after it least is needed. The likeliest piece has the second turn."""
    banks = Banks(Required(wild(6, 0).vocab, [requiring("ab", "a a")], torch.tensor([20])), EOS)
    scores = torch.full((1, 6), -torch.inf)
    likely = letters("b" if following == "a" else "a")
    scores[0, [*letters(following), *likely]] = torch.tensor([-9.0, -1.0])
    prefix = torch.tensor([letters(text)], dtype=torch.long)
    _, _, pieces = banks(scores, torch.zeros(1, 1), prefix, torch.tensor([0]), 2)
    assert pieces[0].tolist() == [*letters(following), *likely]


def test_ranks_within_banks() -> None:
    banks = torch.tensor([[3, 1, 3, 3, 1, 0]])
    assert _rank_within(banks).tolist() == [[0, 0, 1, 2, 1, 0]]


def test_what_is_required_comes_before_other_rules() -> None:
    """The same phrase twice where no piece may repeat; two phrases that may not stand side by side."""
    model = wild(6, 5, eos_bias=-3.0)
    config = SearchConfig(beam=2, max_ratio=0, max_extra=6, no_repeat_ngram=1)
    best = search(Scorer([model]), *SOURCE, config, [requiring("ab", "ab")], LETTERS)[0][0]
    assert len(list(places_of("ab", as_text(best.tokens)))) >= 2
    wanted = Constraints(required=requiring("a", "b").required, forbidden=("a b", "b a"))
    best = search(Scorer([model]), *SOURCE, SearchConfig(beam=2), [wanted], LETTERS)[0][0]
    text = as_text(best.tokens)
    assert has_phrase(text, "a") and has_phrase(text, "b")
    assert not has_phrase(text, "a b") and not has_phrase(text, "b a")
    assert all(math.isfinite(score) for score in best.token_scores)
