"""Noise by its statistics on a large sample, by hand on small ones, and as a pure function of its key."""

import numpy as np
import pytest

from dragoman.data.noise import (
    NoiseConfig,
    corrupt_spans,
    delete,
    denoising_source,
    infill,
    mask_each,
    mask_pieces,
    permute,
    rotate_pieces,
)
from dragoman.data.seeded_random import Dice
from dragoman.errors import UserError

MASK, FIRST, SIZE = 3, 10, 1010
TEXT = FIRST + np.arange(1000)
LETTERS = np.array([11, 12, 13, 14, 15, 16])


def masked(seed: int, ids: np.ndarray = TEXT, **settings) -> tuple[np.ndarray, np.ndarray]:
    return mask_pieces(ids, Dice(seed), share=0.15, mask_id=MASK, first=FIRST, size=SIZE, **settings)


def test_dice_are_a_function_of_their_key_and_fair() -> None:
    again = [Dice(1, 2, 3).uniform(5).tolist() for _ in range(2)]
    assert again[0] == again[1] != Dice(1, 2, 4).uniform(5).tolist()
    drawn = Dice(0).poisson(3.0, 200_000)
    assert drawn.mean() == pytest.approx(3, abs=0.02)
    assert drawn.var() == pytest.approx(3, abs=0.05)
    assert (drawn == 0).mean() == pytest.approx(np.exp(-3), abs=0.002)
    assert np.bincount(Dice(5).below(7, 70_000), minlength=7) == pytest.approx(10_000, rel=0.04)
    assert sorted(Dice(9).order(50).tolist()) == list(range(50))


def test_masked_pieces_have_the_shares_of_the_paper() -> None:
    fates, places = np.zeros(3), np.zeros(1000)
    for seed in range(300):
        read, chosen = masked(seed)
        assert chosen.sum() == 150
        assert (read[~chosen] == TEXT[~chosen]).all()
        now = read[chosen]
        fates += [
            (now == MASK).sum(),
            ((now != MASK) & (now != TEXT[chosen])).sum(),
            (now == TEXT[chosen]).sum(),
        ]
        places += chosen
    assert fates / fates.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.005)
    assert places.mean() / 300 == pytest.approx(0.15)
    assert places.std() < 1.2 * np.sqrt(300 * 0.15 * 0.85)


def test_whole_words_are_hidden_or_not() -> None:
    starts = np.arange(1000) % 4 < 2  # words of one piece and of three
    total = 0
    for seed in range(100):
        _, chosen = masked(seed, word_starts=starts)
        words = np.split(chosen, np.flatnonzero(starts)[1:])
        assert all(word.all() or not word.any() for word in words)
        total += chosen.sum()
    assert total / 100 == pytest.approx(150, abs=1)
    _, chosen = masked(0, LETTERS, word_starts=np.array([True, False, False, False, False, False]))
    assert chosen.all()  # the one word there is


def test_spans_by_hand_and_nothing_is_lost() -> None:
    config, sentinels = NoiseConfig(share=0.5, mean_span=1.5), [4, 5, 6, 7]
    seen = set()
    for seed in range(200):
        src, tgt = corrupt_spans(LETTERS, Dice(seed), config, sentinels)
        spans = {}
        for piece in tgt.tolist():
            if piece in sentinels:
                spans[piece] = []
            else:
                spans[list(spans)[-1]].append(piece)
        assert list(spans) == [4, 5, 6]
        assert spans[6] == []
        back = [p for piece in src.tolist() for p in spans.get(piece, [piece])]
        assert back == LETTERS.tolist()
        seen.add((tuple(src.tolist()), tuple(tgt.tolist())))
    assert len(seen) == 12  # 2 ways to divide three hidden pieces in two, 6 to put three around and between
    short, whole = corrupt_spans(LETTERS[:1], Dice(0), config, sentinels)
    assert (short.tolist(), whole.tolist()) == ([4], [4, 11, 5])


def test_spans_have_the_numbers_that_are_asked_for() -> None:
    config = NoiseConfig()
    assert config.spans(1000) == (150, 50)
    assert len(config.sentinels(1000)) == 51
    sentinels, lengths = list(range(2000, 2051)), []
    for seed in range(100):
        src, tgt = corrupt_spans(TEXT, Dice(seed), config, sentinels)
        assert (len(src), len(tgt)) == (1000 - 150 + 50, 150 + 51)
        marks = np.flatnonzero(tgt >= 2000)
        lengths += (np.diff(marks) - 1).tolist()
    assert min(lengths) == 1
    assert np.mean(lengths) == pytest.approx(3)


def test_infilling_hides_a_share_in_spans_of_poisson_length() -> None:
    masks, insertions = [], 0
    for seed in range(300):
        noised = infill(TEXT, Dice(seed), 0.3, 3.0, MASK)
        kept = noised[noised != MASK]
        assert len(kept) == 700
        assert (np.diff(kept) > 0).all()
        masks.append((noised == MASK).sum())
        gaps = np.diff(np.concatenate([[FIRST - 1], kept, [FIRST + 1000]])) - 1  # pieces that are gone
        between = np.diff(np.flatnonzero(np.concatenate([[True], noised != MASK, [True]]))) - 1  # masks there
        insertions += ((gaps == 0) & (between > 0)).sum()
    assert np.mean(masks) == pytest.approx(100, abs=1.5)
    assert insertions > 300
    for length in range(6):
        assert len(infill(LETTERS[:length], Dice(length), 0.5, 3.0, MASK)) <= length


def test_other_steps_by_hand() -> None:
    assert sorted(delete(LETTERS, Dice(1), 0.5).tolist()) == delete(LETTERS, Dice(1), 0.5).tolist()
    assert len(delete(TEXT, Dice(1), 0.3)) == 700
    one = mask_each(TEXT, Dice(1), 0.3, MASK)
    assert (one == MASK).sum() == 300
    assert (one[one != MASK] == TEXT[one != MASK]).all()
    turns = {tuple(rotate_pieces(LETTERS, Dice(seed)).tolist()) for seed in range(100)}
    assert turns == {tuple(np.roll(LETTERS, n).tolist()) for n in range(6)}
    lines = [LETTERS[:1], LETTERS[1:3], LETTERS[3:]]
    orders = {tuple(np.concatenate(permute(lines, Dice(seed))).tolist()) for seed in range(100)}
    assert len(orders) == 6
    assert all(sorted(order) == LETTERS.tolist() for order in orders)


def test_steps_go_one_after_another() -> None:
    config = NoiseConfig(share=0.5, steps=("permute", "delete", "mask", "rotate"))
    noised = denoising_source([LETTERS[:2], LETTERS[2:]], Dice(3), config, MASK)
    assert len(noised) == 3
    assert (noised == MASK).sum() == 2
    again = denoising_source([LETTERS[:2], LETTERS[2:]], Dice(3), config, MASK)
    assert again.tolist() == noised.tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"share": 0.0}, "share: expected a share above 0 and below 1, found 0.0"),
        ({"mean_span": 0.5}, "mean_span: expected a number from 1 up to 100, found 0.5"),
        ({"steps": ()}, "steps: expected at least one"),
        ({"steps": ("infill", "permute")}, "let permute be the first"),
    ],
)
def test_numbers_that_make_no_noise_are_refused(fields, message: str) -> None:
    with pytest.raises(UserError, match=message):
        NoiseConfig(**fields)
