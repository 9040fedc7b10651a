import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.corpus import Prepared

Texts = Sequence[tuple[str, str]]
WriteCorpus = Callable[..., SourceConfig]
MakePairs = Callable[..., list[tuple[str, str]]]
Decoded = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def write_corpus(tmp_path: Path) -> WriteCorpus:
    """write_corpus(pairs, name="a", zipped=False, weight=1.0) writes a.en and a.de."""

    def write(pairs: Texts, name: str = "a", zipped: bool = False, weight: float = 1.0) -> SourceConfig:
        files = []
        for side, suffix in enumerate(("en", "de")):
            path = tmp_path / f"{name}.{suffix}"
            data = "".join(pair[side] + "\n" for pair in pairs).encode("utf-8")
            path.write_bytes(gzip.compress(data, mtime=0) if zipped else data)
            files.append(str(path))
        return SourceConfig(tuple(files), weight=weight)

    return write


@pytest.fixture
def make_pairs() -> MakePairs:
    """make_pairs(n, seed=0): n random pairs of realistic shape, with duplicates, empties and copies."""

    def make(count: int, seed: int = 0, faults: bool = True) -> list[tuple[str, str]]:
        rng = random.Random(seed)
        words = [
            "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöüß", k=rng.randint(2, 9))) for _ in range(400)
        ]
        pairs: list[tuple[str, str]] = []
        for _ in range(count):
            length = rng.randint(1, 20)
            src = " ".join(rng.choices(words, k=length)).capitalize() + "."
            tgt = " ".join(rng.choices(words, k=max(1, length + rng.randint(-2, 2)))) + "!"
            fault = rng.random() if faults else 1.0
            if fault < 0.05:
                src = rng.choice(("", " ", "\u3000"))
            elif fault < 0.10:
                tgt = src
            elif fault < 0.20 and pairs:
                src, tgt = rng.choice(pairs)
            pairs.append((src, tgt))
        return pairs

    return make


@pytest.fixture
def decoded() -> Decoded:
    """decoded(prepared, "train"): the text of all pairs in a store."""

    def decode(prepared: Prepared, which: str = "train") -> list[tuple[str, str]]:
        store = getattr(prepared, which)
        src, tgt = prepared.src_tokenizer.decode, prepared.tgt_tokenizer.decode
        return [(src(store.src(i).tolist()), tgt(store.tgt(i).tolist())) for i in range(len(store))]

    return decode
