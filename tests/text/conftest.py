"""Small tokenizers of every kind and option, trained once."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

CORPUS = [
    "The newest boat is the lowest, and the widest one is lower than the newest.",
    "In 1999 and in 2026 the boats (all 17 of them) were wider; weren't they?",
    "Das neueste Boot ist das niedrigste, und die größten Boote sind am Straßenrand.",
    "El barco más nuevo, «el Niño», llegó el sábado 9 de mayo de 2026.",
    "самая новая лодка, самая низкая лодка, самые широкие лодки",
    "最新的船是最低的船，最宽的船是最新的。",
    "tabs\tand\ttabs\tand  two  spaces, <b>tags</b> and <b>more tags</b>",
] * 3


def _grid() -> dict[str, TokenizerConfig]:
    configs = {}
    for kind, mark, punctuation, digits in itertools.product(
        ("bpe", "word"), ("start", "end"), (True, False), (True, False)
    ):
        name = f"{kind}-{mark}{'-punctuation' * punctuation}{'-digits' * digits}"
        configs[name] = TokenizerConfig(
            kind=kind,  # type: ignore[arg-type]
            vocab_size=600,
            word_mark=mark,  # type: ignore[arg-type]
            split_punctuation=punctuation,
            split_digits=digits,
            specials=("<2de>",) * punctuation,
        )
    configs["char"] = TokenizerConfig(kind="char", vocab_size=600)
    configs["byte"] = TokenizerConfig(kind="byte", vocab_size=600, specials=("<2de>", "<mask>"))
    return configs


@pytest.fixture(scope="session")
def grid() -> dict[str, Tokenizer]:
    """Every kind with every combination of its options."""
    return {name: Tokenizer.train(CORPUS, config) for name, config in _grid().items()}


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    return CORPUS


@pytest.fixture
def train() -> Callable[..., Tokenizer]:
    """train(texts, field=value, ...) -> Tokenizer"""

    def make(texts: list[str], **fields: Any) -> Tokenizer:
        return Tokenizer.train(texts, TokenizerConfig(**fields))

    return make
