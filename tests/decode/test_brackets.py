"""The rule of brackets against brute force, and what it promises about every search."""

import itertools
import random
from dataclasses import replace

import pytest
import torch

from decode.constrained import KINDS, wild
from dragoman.decode.rules.brackets import Balanced, brackets_of
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, SampleSearch, SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.text.piece_bytes import Spelling
from dragoman.text.tokenizer import Tokenizer

PIECES = [b"", b"", b"", b" ", b"(", b")", b"[", b"]", b"a", b"))", b"([", b"])(", b"(]", b")[", b"()a"]
EOS = 2
TREES = ["(S (NP (DT the) (NN cat)) (VP sits))", "(S (X [a]) (NP b))", "f(g(x), h[1])", "((a) [b] ((c)))"] * 3


def stack_after(text: str, pairs: str) -> str | None:
    """What is open, and None where something is closed that is not."""
    stack = ""
    for character in text:
        if character in pairs[0::2]:
            stack += character
        elif character in pairs[1::2]:
            if not stack or stack[-1] != pairs[pairs.index(character) - 1]:
                return None
            stack = stack[:-1]
    return stack


@pytest.mark.parametrize("pairs", ["()", "()[]"])
@pytest.mark.parametrize("limit", [4, 7])
def test_what_may_come_next_equals_brute_force(pairs: str, limit: int) -> None:
    """Every valid beginning of up to three pieces, and some longer ones."""
    rule = Balanced(
        pairs, Vocab(len(PIECES), len(PIECES), shared=True), Spelling(PIECES), torch.tensor([limit])
    )
    chance = random.Random(limit)
    rows = [row for size in range(4) for row in itertools.product(range(3, len(PIECES)), repeat=size)]
    rows += [tuple(chance.choices(range(3, len(PIECES)), k=size)) for size in (4, 5, 6) for _ in range(400)]
    checked = 0
    for row in rows:
        text = b"".join(PIECES[piece] for piece in row).decode()
        stack = stack_after(text, pairs)
        room = limit - 2 - len(row)
        if stack is None or room < -1 or len(stack) > room + 1:
            continue
        checked += 1
        scores = torch.zeros(1, len(PIECES))
        rule(scores, scores.clone(), torch.tensor([row], dtype=torch.long), torch.tensor([0]))
        for piece in range(len(PIECES)):
            after = stack_after(text + PIECES[piece].decode(), pairs)
            right = not stack if piece == EOS else after is not None and len(after) <= room
            # At the limit the search ends by itself; what is open by then was closed before.
            if room >= 0 or piece == EOS:
                assert bool(scores[0, piece] == 0) == right, (text, PIECES[piece], room)
    assert checked > 50


def test_rows_side_by_side_do_not_see_each_other() -> None:
    """Some close what is not open, as a prefix may: that does not count."""
    rule = Balanced(
        "()", Vocab(len(PIECES), len(PIECES), shared=True), Spelling(PIECES), torch.tensor([20, 9])
    )
    chance = random.Random(1)
    rows = [chance.choices(range(3, len(PIECES)), k=5) for _ in range(80)]
    sentences = [number % 2 for number in range(80)]
    scores = torch.zeros(80, len(PIECES))
    rule(scores, scores.clone(), torch.tensor(rows), torch.tensor(sentences))
    for row, sentence, found in zip(rows, sentences, scores, strict=True):
        depth, room = 0, (13, 2)[sentence]
        for character in b"".join(PIECES[piece] for piece in row).decode():
            depth = max(0, depth + (character == "(") - (character == ")"))
        for number, piece in enumerate(PIECES):
            after = stack_after("(" * depth + piece.decode(), "()")
            right = not depth if number == EOS else after is not None and len(after) <= max(room, depth - 1)
            assert bool(found[number] == 0) == right, (row, piece)


def test_what_a_piece_closes_and_opens() -> None:
    assert brackets_of(b"a])([(", "()[]") == ((2, 1), (1, 2, 1))
    assert brackets_of(b"([])a", "()[]") == ((), ())
    assert brackets_of(b"(]", "()[]") is None
    assert brackets_of(b"(]", "()") == ((), (1,))
    assert brackets_of("é〈".encode(), "()[]") == ((), ())


def _translator(kind: str, seed: int) -> Translator:
    """A model with random weights that likes brackets."""
    tokenizer = Tokenizer.train(TREES, replace(KINDS[kind], specials=()))
    model = wild(tokenizer.size, seed, eos_bias=1.0)
    liked = [place for place, piece in enumerate(tokenizer.spelling.pieces) if set(piece) & set(b"()[]")]
    with torch.no_grad():
        model.projection.bias[liked] += 3.0
    return Translator(model, tokenizer, tokenizer)


SEARCHES: list[SearchConfig] = [
    BeamSearch(beam=1),
    BeamSearch(beam=4, n_best=4, loop_guard=False),
    BeamSearch(beam=4, n_best=2, groups=2, no_repeat_ngram=2),
    BeamSearch(beam=2, min_length=5, repetition_penalty=1.5),
    SampleSearch(n_best=6, temperature=1.5),
    ExhaustiveSearch(beam=2, max_nodes=30),
]


@pytest.mark.parametrize("kind", ["start", "end", "char", "word", "byte"])
def test_every_search_keeps_brackets_valid(kind: str) -> None:
    texts = [*TREES[:4], "a b c", "(S"]
    broken = 0
    for seed, search in enumerate(SEARCHES):
        own = _translator(kind, seed)
        for limit in (3, 14):
            free = replace(search, max_length=limit)
            for found in own.hypotheses(texts, search=replace(free, brackets="()[]")):
                assert all(stack_after(one.text, "()[]") == "" for one in found), [one.text for one in found]
            broken += sum(
                stack_after(one.text, "()[]") != ""
                for own_ in own.hypotheses(texts, search=free)
                for one in own_
            )
    assert broken > 10  # without the rule


def test_a_prefix_wins_and_brackets_are_valid_behind_it() -> None:
    own = _translator("char", 3)
    search = BeamSearch(beam=3, max_length=30, brackets="()")
    for prefix, behind in (("(S (", "(("), ("a) b", "")):
        (best, *_), *_ = own.hypotheses(["(a)"], prefixes=[prefix], prefix_open=True, search=search)
        assert best.text.startswith(prefix)
        assert stack_after(behind + best.text[len(prefix) :], "()") == ""


def test_a_stream_keeps_them_too() -> None:
    own = _translator("start", 1)
    search = BeamSearch(beam=2, max_length=20, brackets="()[]")
    assert stack_after("".join(part.text for part in own.stream(TREES[0], search=search)), "()[]") == ""


@pytest.mark.parametrize("brackets", ["(", "(()", "()()", "«»", "(\n"])
def test_other_brackets_are_refused(brackets: str) -> None:
    with pytest.raises(UserError, match="brackets: expected pairs of ASCII characters"):
        BeamSearch(brackets=brackets)


def test_a_vocabulary_that_could_not_close_is_refused() -> None:
    spelling = Spelling([b"", b"", b"", b" ", b"("])
    with pytest.raises(UserError, match="no piece of the vocabulary is '\\)' alone"):
        Balanced("()", Vocab(5, 5, shared=True), spelling, torch.tensor([5]))
    with pytest.raises(UserError, match="does not know the text of its pieces"):
        jobs = [Job((3, EOS))]
        SearchBatch.of(jobs, BeamSearch(brackets="()"), Vocab(5, 5, shared=True), torch.device("cpu"))
