"""More pieces for a vocabulary that exists."""

from itertools import pairwise

import pytest

from dragoman.errors import UserError
from dragoman.text.bpe import merging
from dragoman.text.extend_vocabulary import extended, origins
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.text.tokenizer_file import read_vocabulary_file

OLD = ["the man sleeps in the house", "the woman sleeps", "a man in the street <here>"] * 3
NEW = ["žena spí v domě", "muž spí", "žena jde domů, muž jde s ní"] * 3


def old(**options: object) -> Tokenizer:
    return Tokenizer.train(OLD, TokenizerConfig(**{"vocab_size": 400, "specials": ("<to:de>",), **options}))  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", ["start", "end"])
@pytest.mark.parametrize("kind", ["bpe", "char", "word", "byte"])
def test_old_pieces_stay_and_text_comes_back(tmp_path, kind: str, mark: str) -> None:  # type: ignore[no-untyped-def]
    before = old(kind=kind, word_mark=mark)
    after = extended(before, NEW, ["<to:cs>", "<to:de>"], 60)
    assert set(before.vocabulary.pieces) < set(after.vocabulary.pieces)
    assert after.config.specials == ("<to:de>", "<to:cs>")
    for text in (*OLD, *NEW, "цт <to:cs> <0x41> ▁"):
        assert after.decode(after.encode(text)) == text
    after.save(tmp_path / "tokenizer.json")  # the file's own checks: order of pieces, merges, alphabet
    assert read_vocabulary_file(tmp_path / "tokenizer.json") == after.vocabulary
    new = len(after.vocabulary.pieces) - len(before.vocabulary.pieces)
    assert new == 1 if kind == "byte" else 1 < new <= 61
    if kind in ("bpe", "word"):
        assert sum(map(len, after.encode_batch(NEW))) < sum(map(len, before.encode_batch(NEW)))


def test_further_merges_are_those_of_a_slow_count() -> None:
    """Each further merge is the most frequent pair of the text as the merges before it segment it."""
    before = old()
    after = extended(before, NEW, [], 24)
    merges = after.vocabulary.merges
    first = len(before.vocabulary.merges)
    assert merges[:first] == before.vocabulary.merges and len(merges) > first + 5
    rules, names = after.merge_rules, after.vocabulary.pieces
    ids = {piece: number for number, piece in enumerate(names)}
    words = [word for text in NEW for word in after.marked_segments(text)]
    controls = len(after.config.first_pieces)
    for rank in range(first, len(merges)):
        allowed = {pair: rule for pair, rule in rules.items() if rule[0] < rank}
        counts: dict[tuple[int, int], int] = {}
        for word in words:
            symbols = after.unmerged(word.removeprefix(" "))
            for _ in merging(symbols, allowed):
                pass
            left = [symbol for symbol in symbols if symbol >= 0]
            for pair in pairwise(left):
                if min(pair) >= controls:
                    counts[pair] = counts.get(pair, 0) + 1
        own = (ids[merges[rank][0]], ids[merges[rank][1]])
        assert counts[own] == max(counts.values())


def test_a_new_piece_comes_from_what_spelt_it() -> None:
    before = old()
    after = extended(before, NEW, ["<to:cs>", "<sep>"], 40)
    made_of = origins(before, after)
    names, earlier = after.vocabulary.pieces, before.vocabulary.pieces
    for number, piece in enumerate(names):
        if piece in earlier:
            assert [earlier[each] for each in made_of[number]] == [piece]
        elif number >= len(after.config.first_pieces):
            spelt = b"".join(map(before.bytes_of, made_of[number]))
            assert spelt == after.bytes_of(number) and spelt
    assert [earlier[each] for each in made_of[names.index("<to:cs>")]] == ["<to:de>"]
    assert made_of[names.index("<sep>")] == []


def test_the_same_texts_give_the_same_file() -> None:
    assert extended(old(), NEW, ["<to:cs>"], 40).sha256 == extended(old(), NEW[::-1], ["<to:cs>"], 40).sha256


def test_no_room_is_control_pieces_alone() -> None:
    after = extended(old(), NEW, ["<to:cs>"], 0)
    assert len(after.vocabulary.pieces) == len(old().vocabulary.pieces) + 1


def test_a_published_vocabulary_is_refused() -> None:
    class Published(Tokenizer):
        pass

    with pytest.raises(UserError, match="cannot take further pieces"):
        extended(Published(old().vocabulary), NEW, [], 10)
