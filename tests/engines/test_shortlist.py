"""Shortlists: model 1 against a computation with dictionaries, bounds, and what CTranslate2 makes of them."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dragoman.checkpoint.model import LoadedModel
from dragoman.decode.search import shortlist as module
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.shortlist import Shortlist, learn_shortlist
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.errors import UserError
from dragoman.runs.directory import Run
from dragoman.text.tokenizer import EOS_ID

Pair = tuple[list[int], list[int]]


class Memory:
    """Pairs as a store has them."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = pairs
        self.src_lengths = np.array([len(src) for src, _ in pairs], np.int32)
        self.tgt_lengths = np.array([len(tgt) for _, tgt in pairs], np.int32)

    def __len__(self) -> int:
        return len(self.pairs)

    def src(self, index: int) -> np.ndarray:
        return np.array(self.pairs[index][0], np.uint16)

    def tgt(self, index: int) -> np.ndarray:
        return np.array(self.pairs[index][1], np.uint16)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Source piece s becomes s + 20, and 40 comes with everything."""
    chance = np.random.default_rng(3)
    sources = [chance.integers(10, 20, chance.integers(1, 6)).tolist() for _ in range(80)]
    return [(source, [*(piece + 20 for piece in source), 40]) for source in sources]


def by_hand(pairs: Sequence[Pair], iterations: int) -> dict[tuple[int, int], float]:
    probability: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for src, tgt in pairs:
            for target in tgt:
                whole = sum(probability[source, target] for source in [*src, EOS_ID])
                for source in [*src, EOS_ID]:
                    counts[source, target] += probability[source, target] / whole
        totals: dict[int, float] = defaultdict(float)
        for (source, _), count in counts.items():
            totals[source] += count
        probability = defaultdict(lambda: 1.0, {key: count / totals[key[0]] for key, count in counts.items()})
    return dict(probability)


def test_model_1_by_hand(pairs: list[Pair]) -> None:
    keys, found = module._model_1(Memory(pairs), range(len(pairs)), tgt_size=50)
    expected = by_hand(pairs, module.ITERATIONS)
    assert {divmod(key, 50) for key in keys.tolist()} == set(expected)
    for key, probability in zip(keys.tolist(), found.tolist(), strict=True):
        assert probability == pytest.approx(expected[divmod(key, 50)], rel=1e-9)


def test_it_finds_what_belongs_together(pairs: list[Pair]) -> None:
    found = learn_shortlist(Memory(pairs), (50, 50), joint=False, per_piece=2, frequent=1)
    assert found.always == (EOS_ID, 40)
    assert set(found.by_source) == {EOS_ID, *range(10, 20)}
    for source in range(10, 20):
        assert source + 20 in found.by_source[source] and len(found.by_source[source]) == 2
    assert found.of([10, 11]) >= {EOS_ID, 40, 30, 31}
    sources = [[10, 11], [], [12, 99, 12]]
    for row, source in zip(found.allowed(sources, 50), sources, strict=True):
        assert set(np.flatnonzero(row).tolist()) == found.of(source)
    joint = learn_shortlist(Memory(pairs), (50, 50), joint=True, per_piece=2, frequent=1)
    assert all(piece in joint.by_source[piece] for piece in range(3, 50))


def test_large_corpora_are_thinned_out_evenly(pairs: list[Pair]) -> None:
    memory = Memory(pairs)
    links = sum((len(src) + 1) * len(tgt) for src, tgt in pairs)
    assert module._chosen(memory, links) == range(80)
    assert module._chosen(memory, links // 4) in (range(0, 80, 4), range(0, 80, 5))
    assert learn_shortlist(Memory([]), (50, 50), joint=False) == Shortlist((EOS_ID,), {})


def test_the_file(pairs: list[Pair]) -> None:
    lines = Shortlist((2, 9), {17: (3, 4), 5: (6,)}).lines()
    assert lines == "\t2 9\n17\t3 4\n5\t6\n"
    again = [learn_shortlist(Memory(pairs), (50, 50), joint=True).lines() for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("x\t2\n", "not a list of pieces"),
        ("\t2 y\n", "not a list of pieces"),
        ("5\t6\n", "not a list of pieces"),  # none for every sentence
        ("\t2\n5\t6\t7\n", "not a list of pieces"),
        ("\t2\n5\t50\n", "for another vocabulary"),
        ("\t-1\n", "for another vocabulary"),
    ],
)
def test_a_forged_file(tmp_path: Path, body: str, told: str) -> None:
    """Its hash is right: whoever made the run wrote it."""
    digest = hashlib.sha256(body.encode()).hexdigest()
    (tmp_path / "list").write_text(f"dragoman shortlist 1 print {digest}\n{body}")
    with pytest.raises(UserError, match=told):
        Shortlist.read(tmp_path / "list", "print", 50)


def test_translations_keep_to_the_list(
    loaded: LoadedModel, fast: CTranslate2Translator, unseen: list[str], tmp_path: Path
) -> None:
    free = fast.hypotheses(unseen[:40])
    allowed = sorted({piece for best in free for piece in best[0].tokens})[::2]
    narrow = Shortlist((EOS_ID, *allowed), {})
    directory = export_ctranslate2(loaded, tmp_path / "out", search=SearchConfig(), shortlist=narrow)
    held = CTranslate2Translator.open(directory)
    for best, *_ in held.hypotheses(unseen[:40]):
        assert set(best.tokens) <= set(allowed)
    loose = CTranslate2Translator.open(directory, shortlist=False)
    assert loose.translate(unseen[:40]) == [best[0].text for best in free]


def test_a_learnt_list_covers_the_training_data(
    run: Run, loaded: LoadedModel, fast: CTranslate2Translator, unseen: list[str], tmp_path: Path
) -> None:
    train, vocab = run.prepared().train, loaded.model.vocab
    learnt = learn_shortlist(train, (vocab.src_size, vocab.tgt_size), joint=True)
    targets = [(train.src(i).tolist(), train.tgt(i).tolist()) for i in range(len(train))]
    assert all(piece in learnt.of(src) for src, tgt in targets for piece in tgt)
    directory = export_ctranslate2(loaded, tmp_path / "out", search=run.config.search, shortlist=learnt)
    free = fast.translate(unseen)
    assert free == [text.upper() for text in unseen]
    assert CTranslate2Translator.open(directory).translate(unseen) == free


def test_a_run_learns_its_list_once(run: Run, unseen: list[str]) -> None:
    path = run.directory / "shortlist.txt"
    path.unlink(missing_ok=True)
    learnt = Run.open(run.directory).shortlist()
    assert path.is_file() and Run.open(run.directory).shortlist() == learnt
    prepared = run.prepared()
    sizes = prepared.src_tokenizer.size, prepared.tgt_tokenizer.size
    assert learnt == learn_shortlist(prepared.train, sizes, joint=True)
    translator = Run.open(run.directory).translator(device="cpu")
    free = translator.translate(unseen)
    assert translator.translate(unseen, search=replace(translator.search, shortlist=True)) == free
    content = path.read_bytes()
    for damaged in (content[:-1], content.replace(b"\t", b" ", 1), b"", content.replace(b"1", b"2", 1)):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"shortlist.txt: damaged.*computed again"):
            Run.open(run.directory).shortlist()
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged, or of other data"):
        Shortlist.read(path, "another", 50)
