"""What a network reads of an example: marks, segments, parts, and places in characters."""

import numpy as np
import pytest

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import AnswerSpan, Example
from dragoman.data.labelled.examples import Labelled, collate_rows
from dragoman.data.labelled.layout import Layout, locate_pieces
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

TEXTS = ["the cat sat on the mat", "a café near the Straße", "naïve 日本 words, here"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, TokenizerConfig(vocab_size=330))


def one(task: TaskConfig, tokenizer: Tokenizer, *texts: str, target=None):
    return Layout(task, tokenizer).items([Example(texts, target, "here")])


def test_pairs_have_marks_and_segments(tokenizer: Tokenizer) -> None:
    task = TaskConfig("pair", labels=("no", "yes"))
    (item,) = one(task, tokenizer, "the cat", "a mat", target="yes")
    first, second = tokenizer.encode("the cat"), tokenizer.encode("a mat")
    assert item.rows[0].ids.tolist() == [1, *first, 2, *second, 2]
    assert item.rows[0].segments.tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert item.target.tolist() == [1]


def test_both_orders_and_choices_are_rows_of_one_example(tokenizer: Tokenizer) -> None:
    task = TaskConfig("similarity", scores=(1.0, 5.0), both_orders=True)
    (item,) = one(task, tokenizer, "the cat", "a mat", target=4.0)
    there, back = item.rows
    (swapped,) = one(task, tokenizer, "a mat", "the cat")
    assert back.ids.tolist() == swapped.rows[0].ids.tolist() != there.ids.tolist()
    assert item.target.tolist() == [0.75]
    (item,) = one(TaskConfig("choice"), tokenizer, "the cat", "sat", "on", "near", target=2)
    assert [row.ids.tolist() for row in item.rows] == [
        [1, *tokenizer.encode("the cat"), 2, *tokenizer.encode(word), 2] for word in ("sat", "on", "near")
    ]


def test_the_longer_text_gives_way(tokenizer: Tokenizer) -> None:
    layout = Layout(TaskConfig("pair", labels=("x",), max_length=16), tokenizer)
    (item,) = layout.items([Example(("the cat sat on the mat " * 4, "a mat"), "x", "here")])
    second = tokenizer.encode("a mat")
    assert len(item.rows[0].ids) == 16
    assert item.rows[0].ids.tolist()[-len(second) - 1 :] == [*second, 2]
    assert layout.cut == 1


def test_the_first_piece_of_a_word_bears_its_label(tokenizer: Tokenizer) -> None:
    task = TaskConfig("tag", labels=("O", "B-x"), max_length=10)
    words = ("the", "Straßen", "near", "wordy", "cat", "mats")
    items = one(task, tokenizer, *words, target=("O", "B-x", "O", "O", "B-x", "O"))
    assert len(items) > 1
    assert [word for item in items for word in item.words] == list(range(6))
    assert np.concatenate([item.target for item in items]).tolist() == [0, 1, 0, 0, 1, 0]
    for item in items:
        assert len(item.rows[0].ids) <= 10
        for word, place in zip(item.words, item.places, strict=True):
            pieces = tokenizer.encode(words[word])
            assert item.rows[0].ids[place : place + len(pieces)].tolist() == pieces
    batch = collate_rows(items, task)
    assert batch.asked is not None
    assert batch.num_tokens == 6
    assert batch.ids.flatten()[batch.asked].tolist() == [tokenizer.encode(word)[0] for word in words]


def test_a_word_that_is_longer_than_a_sequence_is_cut_and_keeps_its_label(tokenizer: Tokenizer) -> None:
    task = TaskConfig("tag", labels=("O", "B-x"), max_length=10)
    long = "日本" * 9
    assert len(tokenizer.encode(long)) > 8
    items = one(task, tokenizer, "the", long, "mat", target=("O", "B-x", "O"))
    assert [item.words for item in items] == [(0,), (1,), (2,)]
    assert items[1].rows[0].ids.tolist() == [1, *tokenizer.encode(long)[:8], 2]
    assert items[1].target.tolist() == [1] and items[1].places.tolist() == [1]


@pytest.mark.parametrize("kind", ["bpe", "char", "byte", "word"])
@pytest.mark.parametrize("text", [*TEXTS, "  two\u2003spaces\n and 🙂 more ", "cafe\u0301 x"])
def test_pieces_stand_where_their_spelling_says(kind, text: str) -> None:
    tokenizer = Tokenizer.train(TEXTS, TokenizerConfig(kind=kind, vocab_size=330))
    pieces = locate_pieces(tokenizer, text)
    covered = sorted({place for piece in pieces for place in range(piece.start, piece.end)})
    assert covered == [place for place, char in enumerate(text) if not char.isspace()]
    for piece in pieces:
        spelt = tokenizer.bytes_of(piece.id).strip()
        if "\u0301" not in text and len(spelt.decode("utf-8", "ignore").encode()) == len(spelt):
            assert text[piece.start : piece.end] == spelt.decode()
    assert [piece.start for piece in pieces] == sorted(piece.start for piece in pieces)


def test_every_answer_is_whole_in_a_part_and_found_again(tokenizer: Tokenizer) -> None:
    context = "a café near the Straße, where the cat sat on naïve mats. " * 4
    task = TaskConfig("span", max_length=40, overlap=16)
    for text in ("cat", "the Straße", "naïve mats"):
        start = context.rindex(text)
        items = one(task, tokenizer, "the cat?", context, target=(AnswerSpan(start, text),))
        found = [item for item in items if item.target.any()]
        assert found
        for item in found:
            first, last = (int(place) - int(item.places[0]) for place in item.target)
            assert item.context[first].start <= start < item.context[first].end
            assert item.context[last].start < start + len(text) <= item.context[last].end
            ids = item.rows[0].ids[item.places].tolist()
            assert ids == [piece.id for piece in item.context]
        assert {piece.start for item in items for piece in item.context} == {
            piece.start for piece in locate_pieces(tokenizer, context)
        }


def test_corpora_are_counted_in_items(tokenizer: Tokenizer) -> None:
    from dragoman.data.sampler import CorpusRange

    task = TaskConfig("tag", labels=("O", "B-x"), max_length=8)
    examples = [Example(("cat", "mat") * n, ("O", "B-x") * n, f"f:{n}") for n in (1, 5, 2)]
    labelled = Labelled(examples, task, tokenizer, [CorpusRange(0, 2, 1.0), CorpusRange(2, 3, 2.0)])
    owners = [item.example for item in labelled.items]
    assert [(c.start, c.end) for c in labelled.corpora] == [
        (0, owners.index(2)),
        (owners.index(2), len(owners)),
    ]
    assert labelled.origin(len(owners) - 1) == "f:2"
