"""Sources as people write them in a hurry."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.seeded_random import Dice, uniform_each
from dragoman.data.store import load_pairs
from dragoman.data.typing_noise import WAYS, SloppySources, sloppy
from dragoman.errors import UserError
from dragoman.learning.translate import Pairs
from dragoman.runs.objective import ObjectiveConfig
from dragoman.text.tokenizer import TokenizerConfig


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{a} {b} walked\t{b} {a}\n" for a in WORDS for b in WORDS), encoding="utf-8")
    data = DataConfig(train=(SourceConfig((str(table),)),), valid_size=2)
    return prepare(data, TokenizerConfig(vocab_size=300), seed=1, cache=tmp_path / "cache")


WORDS = ("Elephants", "giraffes", "Monkeys", "tigers", "Lions")
TEXT = "The café – «one» – is Zoë's."


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("upper", "THE CAFÉ – «ONE» – IS ZOË'S."),
        ("lower", "the café – «one» – is zoë's."),
        ("accents", "The cafe – «one» – is Zoe's."),
    ],
)
def test_case_and_accents(way: str, expected: str) -> None:
    assert WAYS[way](TEXT, Dice(1)) == expected


@pytest.mark.parametrize(
    ("text", "bare"),
    [("Ελλάδα й ё", "Ελλαδα и е"), ("नमस्ते دُعاء が", "नमस्ते دُعاء が"), ("straße Łódź", "straße Łodz")],
)
def test_accents_go_where_they_are_no_letters(text: str, bare: str) -> None:
    assert WAYS["accents"](text, Dice(1)) == bare


def test_typing_errors_are_few_and_inside_of_words() -> None:
    text = "the elephant painted twenty lovely pictures"
    found = {WAYS["typos"](text, Dice(number)) for number in range(40)}
    assert len(found) > 30 and text not in found
    for changed in found:
        assert len(changed.split()) == 6
        assert [word[0] for word in changed.split()] == [word[0] for word in text.split()]
        assert abs(len(changed) - len(text)) <= 3
    assert WAYS["typos"]("a b 12 it", Dice(1)) == "a b 12 it"


def test_marks_change_or_the_full_stop_goes() -> None:
    assert WAYS["marks"]("A dog.", Dice(1)) == "A dog"
    found = {WAYS["marks"]('He said "no" - it\'s - late.', Dice(number)) for number in range(60)}
    assert len(found) > 20
    quoted = {each.partition("said ")[2].partition(" ")[0] for each in found}
    assert quoted == {'"no"', "“no”", "„no“", "«no»", "''no''"[1:-1], "‚no‘"}
    assert all(len(each) == len('He said "no" - it\'s - late.') for each in found if each.endswith("."))


def test_every_way_occurs_and_what_cannot_change_stays() -> None:
    found = {sloppy(TEXT, Dice(number)) for number in range(80)}
    assert {WAYS[way](TEXT, Dice(0)) for way in ("upper", "lower", "accents")} < found
    assert sloppy("12 34", Dice(1)) == "12 34"


def test_draws_depend_on_each_part_of_the_key() -> None:
    numbers = np.arange(1000)
    first = uniform_each(numbers, 1, 2)
    assert 0.45 < first.mean() < 0.55 and (first >= 0).all() and (first < 1).all()
    assert (uniform_each(numbers[::-1], 1, 2)[::-1] == first).all()
    assert abs(np.corrcoef(first, uniform_each(numbers, 1, 3))[0, 1]) < 0.1
    assert abs(np.corrcoef(first, uniform_each(numbers, 2, 2))[0, 1]) < 0.1


def test_a_share_of_the_sources_changes_others_in_each_epoch(prepared: Prepared) -> None:
    store, tokenizer = prepared.train, prepared.src_tokenizer
    numbers = np.arange(len(store))
    plain = load_pairs(store, numbers)

    def changed(epoch: int, share: float = 0.3) -> list[bool]:
        found = SloppySources(tokenizer, share, 3, None)(plain, numbers, epoch)
        assert all(mine[1] is theirs[1] for mine, theirs in zip(found, plain, strict=True))
        return [mine[0] is not theirs[0] for mine, theirs in zip(found, plain, strict=True)]

    assert changed(0) == changed(0) != changed(1)
    assert 0 < sum(changed(0)) < len(numbers)
    assert not any(changed(0, 0.0))
    too_long = SloppySources(tokenizer, 0.99, 3, 0)(plain, numbers, 0)
    assert all(mine[0] is theirs[0] for mine, theirs in zip(too_long, plain, strict=True))


def test_batches_have_it(prepared: Prepared) -> None:
    tokenizers = (prepared.src_tokenizer, prepared.tgt_tokenizer)
    numbers = np.arange(len(prepared.train))
    plain, noisy = (
        Pairs(prepared.train, tokenizers, seed=3, source_noise=share).batch(numbers, 0)
        for share in (0.0, 0.9)
    )
    assert plain.tgt_out.equal(noisy.tgt_out)
    assert plain.src_ids.shape != noisy.src_ids.shape or not plain.src_ids.equal(noisy.src_ids)


def test_it_is_a_share_and_for_translate_alone() -> None:
    with pytest.raises(UserError, match="source_noise: expected a share"):
        ObjectiveConfig(source_noise=1.5)
    with pytest.raises(UserError, match="source_noise: it is for translate alone"):
        ObjectiveConfig(name="causal", source_noise=0.1)
