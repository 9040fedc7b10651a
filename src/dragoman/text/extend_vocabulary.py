"""More pieces for a vocabulary that exists, for a language that it was not learned from.

    control pieces   characters of the new text   merges of the new text, after all old merges

Every old piece stays a piece. The new merges continue byte-pair encoding (Sennrich et al. 2016, algorithm 1)
on the new text as the old vocabulary segments it, so the old ones still come first. A piece has another
number in the larger vocabulary; `origins` says which old pieces a new one is made of.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from dragoman.errors import UserError
from dragoman.text.learn_vocabulary import Merge
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import MARK, TokenizerConfig, Vocabulary


def extended(tokenizer: Tokenizer, texts: Iterable[str], specials: Sequence[str], room: int) -> Tokenizer:
    """The tokenizer with further control pieces and up to `room` pieces learned from `texts`."""
    if type(tokenizer) is not Tokenizer:
        raise UserError("the vocabulary of a published model cannot take further pieces; train a new run")
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(tokenizer.marked_segments(text))
    old = tokenizer.vocabulary
    characters = [] if tokenizer.kind == "byte" else _new_characters(old, counts, room)
    wider = _with(old, specials, characters, [], [])
    left = room - len(characters)
    if tokenizer.kind == "word":
        return Tokenizer(_with(wider, (), [], _new_words(wider, counts, left), []))
    if tokenizer.kind != "bpe":
        return Tokenizer(wider)
    merges = _new_merges(Tokenizer(wider), counts, left)
    known = set(wider.pieces)
    made = [piece for piece in dict.fromkeys(map("".join, merges)) if piece not in known]
    return Tokenizer(_with(wider, (), [], made, merges))


def origins(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """For each piece of the larger vocabulary the old pieces that it is made of: itself, what spelt it
    before, or for a control piece the ones of its kind, such as all `<to:…>`. Empty where there is none."""
    before = {piece: number for number, piece in enumerate(old.vocabulary.pieces)}
    controls = len(new.config.first_pieces) - 256
    found: list[list[int]] = []
    for number, piece in enumerate(new.vocabulary.pieces):
        if piece in before:
            found.append([before[piece]])
        elif number < controls:
            kind, colon, _ = piece.partition(":")
            found.append(
                [before[other] for other in old.config.specials if other.startswith(kind + colon) and colon]
            )
        else:
            found.append(old.spell(piece.replace(MARK, " ")))
    return found


def _with(
    old: Vocabulary,
    specials: Sequence[str],
    characters: Sequence[str],
    made: Sequence[str],
    merges: Sequence[Merge],
) -> Vocabulary:
    own = (*old.config.specials, *(piece for piece in specials if piece not in old.config.specials))
    first = len(old.config.first_pieces)
    alphabet, rest = old.pieces[first : old.alphabet_end], old.pieces[old.alphabet_end :]
    more = (*alphabet, *characters, *rest, *made)
    values = {**vars(old.config), "specials": own}
    size = 3 + len(own) + 256 + len(more)
    config = TokenizerConfig(**{**values, "vocab_size": max(size, old.config.vocab_size)})
    return Vocabulary(config, (*config.first_pieces, *more), (*old.merges, *merges))


def _new_characters(old: Vocabulary, counts: Counter[str], room: int) -> list[str]:
    """The most frequent characters without a piece, at most half of the room."""
    known = {*old.pieces, " ", MARK}
    seen: Counter[str] = Counter()
    for segment, count in counts.items():
        for character in segment:
            if character not in known:
                seen[character] += count
    frequent = sorted(
        (-count, character) for character, count in seen.items() if count >= old.config.min_frequency
    )
    return sorted(character for _, character in frequent[: room // 2])


def _new_words(old: Vocabulary, counts: Counter[str], room: int) -> list[str]:
    known = set(old.pieces)
    words = sorted(
        (-count, word)
        for word, count in counts.items()
        if count >= old.config.min_frequency and len(word) > 1 and MARK not in word
    )
    marked = (word.replace(" ", MARK) for _, word in words)
    return [word for word in marked if word not in known][:room]


def _new_merges(tokenizer: Tokenizer, counts: Counter[str], room: int) -> list[Merge]:
    """Further merges, the most frequent pair first; among equals the alphabetically first."""
    first = len(tokenizer.config.first_pieces)
    segments = [segment for segment, count in sorted(counts.items()) if len(segment) > 1]
    words: list[list[str | None]] = []
    for segment in segments:
        ids = tokenizer.spell(segment)
        names = tokenizer.pieces(ids)
        words.append(
            [None if number < first or name == "<" else name for number, name in zip(ids, names, strict=True)]
        )
    return _merges_of(
        words,
        [counts[segment] for segment in segments],
        set(tokenizer.vocabulary.pieces),
        room,
        tokenizer.config.min_frequency,
    )


def _merges_of(
    words: list[list[str | None]], counts: Sequence[int], known: set[str], room: int, least: int
) -> list[Merge]:
    """`None` in a word is a symbol that nothing is merged with."""
    frequency: Counter[Merge] = Counter()
    places: dict[Merge, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in _pairs(word):
            frequency[pair] += counts[number]
            places[pair].add(number)
    heap = [(-count, pair) for pair, count in frequency.items()]
    heapq.heapify(heap)
    merges: list[Merge] = []
    while heap and room > 0:
        count, pair = heapq.heappop(heap)
        if -count != frequency[pair]:
            continue  # another entry has its present frequency
        if -count < least:
            break
        merges.append(pair)
        if (joined := "".join(pair)) not in known:
            known.add(joined)
            room -= 1
        changed: set[Merge] = set()
        for number in sorted(places.pop(pair)):
            for sign, word in ((-1, words[number]), (1, _merged(words[number], pair))):
                for each in _pairs(word):
                    frequency[each] += sign * counts[number]
                    changed.add(each)
                    if sign > 0:
                        places[each].add(number)
                words[number] = word
        for each in changed:
            if frequency[each] > 0:
                heapq.heappush(heap, (-frequency[each], each))
    return merges


def _pairs(word: Sequence[str | None]) -> list[Merge]:
    return [(left, right) for left, right in pairwise(word) if left is not None and right is not None]


def _merged(word: Sequence[str | None], pair: Merge) -> list[str | None]:
    result: list[str | None] = []
    place = 0
    while place < len(word):
        if tuple(word[place : place + 2]) == pair:
            result.append("".join(pair))
            place += 2
        else:
            result.append(word[place])
            place += 1
    return result
