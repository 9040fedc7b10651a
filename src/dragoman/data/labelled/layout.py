"""The input sequences of an example: one or several, all of the same form.

    classify      <s> text </s>
    pair          <s> first </s> second </s>        both_orders: also with the texts exchanged
    similarity    as pair
    choice        <s> beginning </s> choice </s>    one sequence per choice
    span          <s> question </s> context </s>    a long context in several parts
    tag           <s> w o r d s </s>                many words in several sequences

For BERT (Devlin et al. 2019, figure 4) the marks are [CLS] and [SEP], and the second text is segment 1. For
GPT (Radford et al. 2018, figure 1) they are start, delimiter and, at the end, extract.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dragoman.data.labelled.config import SCORED, TaskConfig
from dragoman.data.labelled.example import AnswerSpan, Example
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Piece:
    id: int
    start: int
    end: int
    """End offset in characters, exclusive."""


def encode_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[list[int]]:
    """The pieces of every word, without the opening pieces that a published model puts before a text."""
    opening = len(tokenizer.opening)
    return [ids[opening:] for ids in tokenizer.encode_batch(list(words))]


def split_words(text: str) -> list[tuple[int, str]]:
    """The words separated by white space, with their start offsets."""
    found, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        found.append((place, word))
        place += len(word)
    return found


def locate_pieces(tokenizer: Tokenizer, text: str) -> list[Piece]:
    """The pieces of a text with the characters that each one covers.

    Each word is encoded separately, so that its first piece is known. Inside a word, the spelling of a piece
    gives its place. If the spelling and the text differ (a model may lower-case or compose characters), every
    piece covers the whole word."""
    words = split_words(text)
    encoded = encode_words(tokenizer, [word for _, word in words])
    return [
        piece
        for (start, word), ids in zip(words, encoded, strict=True)
        for piece in _in_word(tokenizer, ids, start, word)
    ]


def _in_word(tokenizer: Tokenizer, ids: Sequence[int], start: int, word: str) -> list[Piece]:
    spelt = [tokenizer.bytes_of(piece) for piece in ids]
    whole = b"".join(spelt)
    before = len(whole) - len(whole.lstrip(b" "))
    if whole.strip(b" ") != word.encode("utf-8"):
        return [Piece(piece, start, start + len(word)) for piece in ids]
    boundaries = _byte_boundaries(word)
    found, done = [], -before
    for piece, content in zip(ids, spelt, strict=True):
        first, last = max(0, done), min(max(0, done + len(content)), len(boundaries) - 1)
        # A piece may be part of a character. It then starts where the character starts and ends where it
        # ends.
        begin, end = boundaries[first][0], boundaries[last][1]
        found.append(Piece(piece, start + begin, start + max(begin, end)))
        done += len(content)
    return found


def _byte_boundaries(word: str) -> list[tuple[int, int]]:
    """For each byte offset: the index of the character that it is in or before, and the number of characters
    that have begun before it."""
    found = []
    for number, char in enumerate(word):
        width = len(char.encode("utf-8"))
        found += [(number, number)] + [(number, number + 1)] * (width - 1)
    return [*found, (len(word), len(word))]


NOWHERE = 0
"""The position of an answer that is not in this part of the context."""


@dataclass(frozen=True)
class TokenRow:
    """One input sequence."""

    ids: np.ndarray
    segments: np.ndarray


@dataclass(frozen=True)
class Item:
    """The unit that is drawn and read: an example, or a part of one."""

    example: int
    rows: tuple[TokenRow, ...]
    target: np.ndarray
    """classify, pair, choice: one number. similarity: a score scaled to 0–1. tag: the label number of each
    word. span: the positions of the first and the last piece. Empty if unknown."""
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """tag: the position of the first piece of each word. span: the positions of the context's pieces."""
    words: tuple[int, ...] = ()
    """tag: the indices of the words."""
    context: tuple[Piece, ...] = ()
    """span: the pieces of the context."""

    @property
    def length(self) -> int:
        """Number of positions in a batch, padding included."""
        return len(self.rows) * max(len(row.ids) for row in self.rows)


class Layout:
    def __init__(self, task: TaskConfig, tokenizer: Tokenizer) -> None:
        self.task, self.tokenizer = task, tokenizer
        self.number_of = {label: number for number, label in enumerate(task.labels)}
        self.cut = 0
        """Number of examples that were too long."""

    def items(self, examples: Sequence[Example]) -> list[Item]:
        kind = self.task.kind
        if kind == "tag":
            return [item for number, example in enumerate(examples) for item in self._tagged(number, example)]
        if kind == "span":
            return [item for number, example in enumerate(examples) for item in self._asked(number, example)]
        encoded = iter(self.tokenizer.encode_batch([text for example in examples for text in example.texts]))
        found = []
        for number, example in enumerate(examples):
            texts = [next(encoded) for _ in example.texts]
            found.append(Item(number, self._rows(texts), self._target(example)))
        return found

    def _rows(self, texts: Sequence[Sequence[int]]) -> tuple[TokenRow, ...]:
        if self.task.kind == "choice":
            rows = [[texts[0], choice] for choice in texts[1:]]
        else:
            rows = [texts, texts[::-1]] if self.task.both_orders else [texts]
        if any(sum(map(len, row)) + 1 + len(row) > self.task.max_length for row in rows):
            self.cut += 1
        return tuple(self._row(row) for row in rows)

    def _row(self, texts: Sequence[Sequence[int]]) -> TokenRow:
        """Shorten the longest text until all of them fit."""
        lengths = [len(text) for text in texts]
        while sum(lengths) + 1 + len(texts) > self.task.max_length:
            lengths[int(np.argmax(lengths))] -= 1
        ids, segments = [self.tokenizer.bos_id], [0]
        for number, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            ids += [*text[:length], self.tokenizer.eos_id]
            segments += [min(number, 1)] * (length + 1)
        return TokenRow(np.array(ids, dtype=np.int64), np.array(segments, dtype=np.int64))

    def _target(self, example: Example) -> np.ndarray:
        target, task = example.target, self.task
        if task.kind in SCORED and isinstance(target, float):
            low, high = task.scores
            return np.array([(target - low) / (high - low)], dtype=np.float32)
        if task.kind == "choice" and isinstance(target, int):
            return np.array([target])
        known = isinstance(target, str) and target in self.number_of
        return np.array([self.number_of[str(target)]] if known else [], dtype=np.int64)

    def _tagged(self, number: int, example: Example) -> Iterator[Item]:
        """Divide an example into sequences of as many whole words as fit."""
        room = self.task.max_length - 2
        tags = example.target if isinstance(example.target, tuple) else ()
        encoded = [ids[:room] for ids in encode_words(self.tokenizer, example.texts)]
        first = 0
        while first < len(encoded):
            last, used = first, 0
            while last < len(encoded) and used + len(encoded[last]) <= room:
                used += len(encoded[last])
                last += 1
            words = [word for word in range(first, last) if encoded[word]]
            starts = np.cumsum([1] + [len(ids) for ids in encoded[first:last]])
            yield Item(
                number,
                (self._row([[piece for ids in encoded[first:last] for piece in ids]]),),
                np.array([self.number_of[str(tags[word])] for word in words if tags], dtype=np.int64),
                places=np.array([starts[word - first] for word in words], dtype=np.int64),
                words=tuple(words),
            )
            first = last

    def _asked(self, number: int, example: Example) -> Iterator[Item]:
        """Divide a context into overlapping parts, so that an answer is usually whole in one of them."""
        task = self.task
        question = self.tokenizer.encode(example.texts[0])[: task.max_length // 3]
        pieces = locate_pieces(self.tokenizer, example.texts[1])
        room = task.max_length - 3 - len(question)
        overlap = task.max_length // 4 if task.overlap is None else task.overlap
        step = max(1, room - overlap)
        ahead = 2 + len(question)
        answers = example.target if isinstance(example.target, tuple) else None
        begin = 0
        while True:
            part = pieces[begin : begin + room]
            target = () if answers is None else _places(part, answers, ahead)
            yield Item(
                number,
                (self._row([question, [piece.id for piece in part]]),),
                np.array(target, dtype=np.int64),
                places=ahead + np.arange(len(part)),
                context=tuple(part),
            )
            if begin + room >= len(pieces):
                return
            begin += step


def _places(part: Sequence[Piece], answers: Sequence[object], ahead: int) -> tuple[int, int]:
    """The positions of the first and last piece of the first answer, if all of it is in this part."""
    answer = next((answer for answer in answers if isinstance(answer, AnswerSpan)), None)
    if answer is None or not part:
        return NOWHERE, NOWHERE
    inside = [
        place for place, piece in enumerate(part) if piece.end > answer.start and piece.start < answer.end
    ]
    if not inside or part[0].start > answer.start or part[-1].end < answer.start + len(answer.text.rstrip()):
        return NOWHERE, NOWHERE
    return ahead + inside[0], ahead + inside[-1]
