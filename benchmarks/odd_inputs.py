"""Does any text at all come through? Thousands of odd ones, held to four promises.

    python benchmarks/odd_inputs.py                     a tiny model with random weights, 10,000 texts
    python benchmarks/odd_inputs.py --run runs/en-de    a trained one

Nothing crashes or hangs, no translation is longer than the limit, the order is kept, and what one text gives
does not depend on the others.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.runs.directory import Run
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "and", "then", "slept", "red", "blue")
MARKS = ".,;:!?…«»—()[]{}<>/\\|*&%$#@~^`'\"-_=+"
CONTROL = "".join(map(chr, [*range(1, 32), *range(127, 160), 0x200B, 0x200D, 0x2028, 0x2029, 0x202E, 0xFEFF]))
EMOJI = ("🙂", "👩\u200d👧\u200d👦", "🏳️\u200d🌈", "👍🏽", "🇩🇪", "❤️")
RIGHT_TO_LEFT = ("שלום", "עולם", "مرحبا", "بالعالم", "\u200fאב\u200e")
MARKUP = ("</s>", "<pad>", "<s>", "<b>bold</b>", "{0}", "%s", "&amp;", "\\n")


def odd_text(rng: np.random.Generator) -> tuple[str, str]:
    """One text and its kind."""

    def some(pool: tuple[str, ...] | str, most: int, between: str = " ") -> str:
        return between.join(pool[i] for i in rng.integers(0, len(pool), rng.integers(1, most + 1)))

    makers = {
        "empty": lambda: "",
        "blank": lambda: some(" \t\u00a0\u3000", 5, ""),
        "one character": lambda: chr(rng.choice([97, 48, 46, 0xE9, 0x6F22, 0x1F600, 0x5D0, 0x10FFFF])),
        "words": lambda: some(WORDS, 20),
        "emoji": lambda: some(EMOJI, 12, ""),
        "right to left": lambda: some(RIGHT_TO_LEFT, 12),
        "control": lambda: some(CONTROL, 12, ""),
        "punctuation": lambda: some(MARKS, 20, ""),
        "markup": lambda: some(MARKUP, 6),
        "digits": lambda: some("0123456789,.", 20, ""),
        "any code points": lambda: "".join(map(_code_point, rng.integers(1, 0x110000 - 2048, 8).tolist())),
        "repeated": lambda: some(WORDS, 1) + " " + some(WORDS, 2) * int(rng.integers(3, 12)),
        "mixed": lambda: some((*WORDS, *EMOJI, *RIGHT_TO_LEFT, *MARKUP), 15),
    }
    kind = list(makers)[rng.integers(0, len(makers))]
    return kind, makers[kind]()


LONG = {"2,000 tokens": "sat on " * 1000, "a word × 500": "the " * 500, "no spaces": "ab" * 500}


def odd_texts(count: int, seed: int) -> list[tuple[str, str]]:
    """(kind, text); one in a thousand is very long, and one at least of each such kind."""
    rng = np.random.default_rng(seed)
    long = list(LONG.items()) * max(1, count // 3000)
    texts = [*long, *(odd_text(rng) for _ in range(count - len(long)))]
    return [texts[i] for i in rng.permutation(len(texts))]


def check(translator: Translator, texts: list[str], search: SearchConfig, again: int) -> Counter[str]:
    """Translate all, hold them to the promises, and count how they ended. `again` are asked alone."""
    found = translator.hypotheses(texts, search=search)
    assert len(found) == len(texts)
    for text, (best, *_) in zip(texts, found, strict=True):
        limit = search.longest(len(translator.src_tokenizer.encode(text)) + 1)
        assert len(best.tokens) < limit, f"{text!r}: {len(best.tokens)} tokens of {limit}"
        best.text.encode("utf-8")  # what can be printed holds no lone surrogate
    for place in range(0, len(texts), max(1, len(texts) // again)):
        (alone,) = translator.translate([texts[place]], search=search)
        assert alone == found[place][0].text, f"{texts[place]!r}: another translation alone"
    return Counter(best.finish_reason for best, *_ in found)


def tiny_translator() -> Translator:
    """Random weights that are sharp enough for endings, loops and limits to occur."""
    rng = np.random.default_rng(0)
    corpus = [" ".join(WORDS[i] for i in rng.integers(0, len(WORDS), 9)) + "." for _ in range(200)]
    tokenizer = Tokenizer.train(corpus, TokenizerConfig(vocab_size=340))
    torch.manual_seed(4)
    config = TransformerConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=16, output_bias=True)
    model = build_model("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.4)
        assert model.projection.bias is not None
        model.projection.bias[model.vocab.eos_id] += 5.0
    return Translator(model, tokenizer, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", type=Path, help="run directory; without it, a tiny random model")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    translator = Run.open(args.run).translator() if args.run else tiny_translator()
    kinds, texts = zip(*odd_texts(args.count, args.seed), strict=True)
    print(", ".join(f"{count:,} {kind}" for kind, count in Counter(kinds).most_common()))
    for name, search in {
        "greedy": SearchConfig(beam=1),
        "beam 4": SearchConfig(beam=4),
        "sample": SearchConfig(method="sample", top_p=0.9),
    }.items():
        began = time.monotonic()
        reasons = check(translator, list(texts), search, again=100)
        ends = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        print(
            f"{name:8} {len(texts):,} texts in {time.monotonic() - began:.0f} s, ended by: {ends}", flush=True
        )


def _code_point(number: int) -> str:
    """Any but the surrogates, which no text can hold."""
    return chr(number if number < 0xD800 else number + 2048)


if __name__ == "__main__":
    main()
