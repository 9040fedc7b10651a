"""Learning the pieces and merges of a vocabulary from text. The same text gives the same vocabulary."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from dragoman.errors import UserError
from dragoman.text.segment import nfc, segment_pattern, segmenter, with_mark
from dragoman.text.tokenizer_file import MARK, TokenizerConfig

Merge = tuple[str, str]

_CHUNK_CHARACTERS = 1 << 16
_SPOOL_BYTES = 64 << 20
_ALPHABET_ROOM = 256


def learn_vocabulary(texts: Iterable[str], config: TokenizerConfig) -> tuple[list[str], list[Merge]]:
    """The vocabulary in the order of its ids, and for kind bpe the merges in the order of their ranks.

    Pieces are written as in the file: a space is ▁. `texts` is read once; if it is large, it is kept in a
    temporary file, so memory does not grow with it.
    """
    pieces = list(config.first_pieces)
    if config.kind == "byte":
        return pieces, []
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        counts = _gather(texts, config, spool)
        if not counts.any():
            raise UserError("the tokenizer has no text to learn from: every training sentence is empty")
        room = config.vocab_size - len(pieces)
        alphabet, left_out = _choose_alphabet(counts, room, config)
        pieces += alphabet
        room -= len(alphabet)
        spool.seek(0)
        chunks = _chunks(spool)
        if config.kind == "word":
            return pieces + _frequent_words(chunks, room, config), []
        if config.kind == "char" or room == 0:
            return pieces, []
        merges = _learn_merges(chunks, alphabet, left_out, room, config)
    # Two merges may spell the same piece (ab+c, a+bc); it has one id.
    return pieces + list(dict.fromkeys(left + right for left, right in merges)), merges


def _gather(texts: Iterable[str], config: TokenizerConfig, spool: IO[bytes]) -> np.ndarray:
    """Write the normalised text to `spool` in chunks; return how often each code point occurs.

    Sentences are concatenated: each has its own word mark, so segments end between them.
    """
    counts = np.zeros(0x110000, dtype=np.int64)
    waiting: list[str] = []
    size = 0

    def flush() -> None:
        chunk = "".join(waiting)
        seen = np.bincount(np.frombuffer(chunk.encode("utf-32-le"), dtype=np.uint32))
        counts[: len(seen)] += seen
        data = chunk.encode("utf-8")
        try:
            spool.write(len(data).to_bytes(8, "little") + data)
        except OSError as error:
            raise UserError(
                f"{tempfile.gettempdir()}: cannot hold the tokenizer's training text ({error.strerror}); "
                "set TMPDIR to a folder with more room"
            ) from None

    for text in texts:
        waiting.append(with_mark(nfc(text), config))
        size += len(text)
        if size >= _CHUNK_CHARACTERS:
            flush()
            waiting.clear()
            size = 0
    flush()
    return counts


def _chunks(spool: IO[bytes]) -> Iterator[str]:
    while header := spool.read(8):
        yield spool.read(int.from_bytes(header, "little")).decode("utf-8")


def _choose_alphabet(counts: np.ndarray, room: int, config: TokenizerConfig) -> tuple[list[str], list[str]]:
    """The characters that get a piece, and the others, which are spelt in bytes.

    If merges or words are learnt too, characters get at most half of the vocabulary (or 256 pieces), the most
    frequent first.
    """
    limit = room if config.kind == "char" else max(room // 2, min(room, _ALPHABET_ROOM))
    seen = [int(code) for code in np.flatnonzero(counts) if chr(code) not in (" ", MARK)]
    by_frequency = sorted(seen, key=lambda code: (-counts[code], code))
    frequent = [code for code in by_frequency if counts[code] >= config.min_frequency]
    chosen = set(frequent[: limit - 1])
    left_out = [chr(code) for code in seen if code not in chosen]
    return [MARK, *map(chr, sorted(chosen))], left_out


def _frequent_words(chunks: Iterator[str], room: int, config: TokenizerConfig) -> list[str]:
    """The most frequent segments of two characters or more, in order of frequency."""
    findall = segmenter(config).findall
    counts: Counter[str] = Counter()
    for chunk in chunks:
        counts.update(findall(chunk))
    words = [
        (-count, word)
        for word, count in counts.items()
        if count >= config.min_frequency and len(word) > 1 and MARK not in word
    ]
    return [word.replace(" ", MARK) for _, word in sorted(words)[:room]]


def _learn_merges(
    chunks: Iterator[str], alphabet: list[str], left_out: list[str], room: int, config: TokenizerConfig
) -> list[Merge]:
    """Learn merges with the library's trainer (Sennrich et al. 2016, algorithm 1).

    Among equally frequent pairs the trainer takes the one whose first symbol is older. With the mark at the
    end of words it gets reversed text, so that the second symbol decides: suffixes grow from the left, as
    e+s, es+t, est+▁ in the paper's example.
    """
    mirrored = config.word_mark == "end"
    # Text is cut at characters without a piece: no merge crosses them. A literal ▁ has no piece.
    cut = re.compile("[" + "".join(map(re.escape, [MARK, *left_out])) + "]+")

    def shown() -> Iterator[str]:
        for chunk in chunks:
            for part in cut.split(chunk):
                marked = part.replace(" ", MARK)
                yield marked[::-1] if mirrored else marked

    pipeline = tokenizers.Tokenizer(models.BPE())
    pattern = segment_pattern(config, space=MARK, mark="start")
    pipeline.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + room,
        min_frequency=config.min_frequency,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    pipeline.train_from_iterator(shown(), trainer)
    merges = json.loads(pipeline.to_str())["model"]["merges"]
    if mirrored:
        return [(right[::-1], left[::-1]) for left, right in merges]
    return [(left, right) for left, right in merges]
