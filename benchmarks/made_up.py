"""Made-up corpora, with words as frequent as in a language: pairs whose lengths are those of WMT and whose
words have one translation each, and text."""

from pathlib import Path

import numpy as np

MEAN_LENGTH, SPREAD, LONGEST = 27, 0.6, 200
PARAGRAPH = (100, 300)


def write_corpus(directory: Path, tokens: int, words: int, seed: int = 1) -> list[str]:
    """Two files of about so many tokens each. Every word has one translation; words are as frequent as in a
    language (Zipf), and a target is some words longer or shorter than its source."""
    dice = np.random.default_rng(seed)
    count = tokens // MEAN_LENGTH
    common = np.log(MEAN_LENGTH) - SPREAD**2 / 2
    lengths = np.exp(dice.normal(common, SPREAD, count)).round().astype(int).clip(2, LONGEST)
    others = (lengths * np.exp(dice.normal(0, 0.15, count))).round().astype(int).clip(2, LONGEST)
    half = (words - 4) // 2  # of the vocabulary for each side; 4 are control pieces
    shares = 1 / (np.arange(half) + 10.0)
    longest = int(np.maximum(lengths, others).max())
    drawn = dice.choice(half, size=(count, longest), p=shares / shares.sum())
    rows = [(row[:src], row[:tgt]) for row, src, tgt in zip(drawn, lengths, others, strict=True)]
    rows += [(part, part) for part in np.array_split(np.arange(half), -(-half // MEAN_LENGTH))]  # every word
    files = [directory / "corpus.src", directory / "corpus.tgt"]
    for side, file in enumerate(files):
        lines = (" ".join(spelt(word, "ab"[side]) for word in row[side].tolist()) for row in rows)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [str(file) for file in files]


def write_text(directory: Path, tokens: int, words: int, seed: int = 1) -> str:
    """A file of about so many tokens: paragraphs of 100 to 300 words of such a language, and every word."""
    dice = np.random.default_rng(seed)
    shares = 1 / (np.arange(words) + 10.0)
    drawn = np.concatenate([np.arange(words), dice.choice(words, size=tokens, p=shares / shares.sum())])
    ends = np.cumsum(dice.integers(*PARAGRAPH, size=len(drawn) // PARAGRAPH[0]))
    file = directory / "text.txt"
    paragraphs = (part for part in np.split(drawn, ends[ends < len(drawn)]) if len(part))
    lines = (" ".join(spelt(word, "a") for word in part.tolist()) for part in paragraphs)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def spelt(word: int, first: str) -> str:
    """A number in letters alone, so that a tokenizer of words takes it for one."""
    return first + "".join(chr(ord("a") + int(digit)) for digit in str(word))
