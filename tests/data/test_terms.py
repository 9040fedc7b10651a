"""Terms and similar pairs in training sources: found in the corpus itself, in other forms, by the epoch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from dragoman.config import from_dict
from dragoman.data.batch import PairBatch, unpadded
from dragoman.data.config import DataConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.memory import TranslationMemory, similarity
from dragoman.data.store import load_pairs
from dragoman.data.term_examples import FoundTerm, TermLexicon, TermSources
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.learning.translate import Pairs
from dragoman.runs.objective import ObjectiveConfig
from dragoman.text.source_additions import MEMORY_PIECES, TERM_PIECES
from dragoman.text.tokenizer import TokenizerConfig
from dragoman.text.word_boundaries import has_phrase
from dragoman.text.word_forms import are_forms
from toy import write_pairs

NOUNS = """table Tabelle, lamp Lampe, ladder Leiter, battery Batterie, fork Gabel, tube Röhre, pump Pumpe,
spring Feder, scale Waage, plate Platte, key Taste, card Karte, page Seite, line Zeile, kettle Kanne"""
VERBS = """remove entfernen, paint streichen, carry tragen, sell verkaufen, clean putzen, order bestellen,
lift heben, check prüfen, pack packen, mount montieren, test testen, wash waschen, hold halten"""


def words(listed: str) -> list[tuple[str, str]]:
    return [(src, tgt) for src, tgt in (pair.split() for pair in listed.split(","))]


def corpus() -> Iterator[tuple[str, str]]:
    for noun, one in words(NOUNS):
        for verb, does in words(VERBS):
            yield f"We {verb} a {noun} today.", f"Wir {does} eine {one} heute."
            yield f"They {verb} two {noun}s today.", f"Sie {does} zwei {one}n heute."


@pytest.fixture(scope="module")
def lexicon() -> TermLexicon:
    return TermLexicon(corpus())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    directory = tmp_path_factory.mktemp("terms")
    files = write_pairs(directory, list(corpus()))
    data = from_dict(DataConfig, {"train": [{"files": files}], "valid_size": 8})
    tokenizer = TokenizerConfig(vocab_size=420, specials=(*TERM_PIECES, *MEMORY_PIECES))
    return prepare(data, tokenizer, seed=1, cache=directory / "cache")


def test_the_aligner_finds_the_terms_of_the_corpus(lexicon: TermLexicon) -> None:
    for noun, one in words(NOUNS):
        assert lexicon.targets[(noun,)] == (one,) and lexicon.targets[(f"{noun}s",)] == (f"{one}n",)
    assert ("we",) not in lexicon.targets and ("two",) not in lexicon.targets
    src, tgt = "They paint two lamps today.", "Sie streichen zwei Lampen heute."
    found = {(src[start:end], form) for start, end, form, _ in lexicon.terms(src, tgt)}
    assert ("lamps", "Lampen") in found
    assert not any("Leiter" in form for _, form in found)
    assert lexicon.terms(src, "Etwas anderes.") == []


def test_other_forms_are_those_of_the_corpus_or_end_like_them(lexicon: TermLexicon) -> None:
    assert {lexicon.other_form("Lampe", ("lamp",), n / 20) for n in range(20)} == {"Lampen"}
    assert {lexicon.other_form("Lampen", ("lamps",), n / 20) for n in range(20)} == {"Lampe"}
    unknown = {lexicon.other_form("Schraube", ("screw",), n / 40) for n in range(40)}
    assert "Schrauben" in unknown and all(are_forms("Schraube", form) for form in unknown)


def test_a_share_of_the_sources_has_terms_others_in_each_epoch(prepared: Prepared) -> None:
    store, tokenizer = prepared.train, prepared.src_tokenizer
    numbers = np.arange(len(store))
    plain = load_pairs(store, numbers)
    sources = TermSources(store, tokenizer, 0.5, 3, None)
    controls = np.array(tokenizer.control_ids(TERM_PIECES))

    def told(epoch: int, use: TermSources = sources) -> list[Sequence[int]]:
        found = use(plain, numbers, epoch)
        assert all(mine[1] is theirs[1] for mine, theirs in zip(found, plain, strict=True))
        return [mine[0].tolist() for mine in found]

    first, second = told(0), told(1)
    assert first == told(0) == told(0, TermSources(store, tokenizer, 0.5, 3, None)) and first != second
    changed = [n for n, ids in enumerate(first) if ids != plain[n][0].tolist()]
    assert 0.3 * len(numbers) < len(changed) < 0.7 * len(numbers)
    wrong = 0
    for number in changed:
        marks = [piece for piece in first[number] if piece in controls]
        assert marks == controls.tolist() * (len(marks) // 3)
        begins = [n for n, piece in enumerate(first[number]) if piece == controls[1]]
        target = tokenizer.decode(plain[number][1].tolist())
        for begin in begins:
            form = tokenizer.decode(first[number][begin + 1 : first[number].index(controls[2], begin)])
            wrong += not has_phrase(target, form)
    assert wrong > 0.2 * len(changed), "some terms are given in another form than the target has"
    assert told(0, TermSources(store, tokenizer, 0.5, 3, max_length=1)) == [
        pair[0].tolist() for pair in plain
    ]


def test_what_is_kept_of_a_pair_changes_nothing(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the batch that a pair is in, nor what was read before: a resumed run goes on the same way."""
    store, tokenizers = prepared.train, (prepared.src_tokenizer, prepared.tgt_tokenizer)
    settings = {"terms": 0.5, "fuzzy": 60.0, "source_noise": 0.3, "seed": 3, "max_length": 60}
    through, resumed = (Pairs(store, tokenizers, **settings) for _ in range(2))
    numbers = np.arange(len(through))
    for epoch in range(2):
        through.batch(numbers, epoch)
    kept = _sources(through.batch(numbers, 2))
    assert kept == _sources(resumed.batch(numbers, 2))
    monkeypatch.setattr("dragoman.data.term_examples._MOST_KNOWN", 0)
    afresh = Pairs(store, tokenizers, **settings)
    parts = np.array_split(numbers[::-1], 5)
    assert kept == [row for part in parts for row in _sources(afresh.batch(part, 2))][::-1]
    assert kept != _sources(through.batch(numbers, 3))


def test_terms_are_looked_for_once_and_so_many_are_kept(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.arange(len(prepared.train))
    plain, asked, look = load_pairs(prepared.train, numbers), Counter[tuple[str, str]](), TermLexicon.terms

    def counted(lexicon: TermLexicon, src: str, tgt: str) -> list[FoundTerm]:
        asked[src, tgt] += 1
        return look(lexicon, src, tgt)

    monkeypatch.setattr(TermLexicon, "terms", counted)
    sources, forgetful = (TermSources(prepared.train, prepared.src_tokenizer, 1.0, 3, None) for _ in range(2))
    for epoch in range(3):
        sources(plain, numbers, epoch)
    assert len(asked) == asked.total() == len(numbers)
    monkeypatch.setattr("dragoman.data.term_examples._MOST_KNOWN", 5)
    forgetful(plain, numbers, 0)
    assert len(forgetful._known) == 5
    assert forgetful(plain, numbers[:0], 0) == plain


def _sources(batch: PairBatch) -> list[list[int]]:
    return unpadded(batch.src_ids, batch.src_mask)


def test_similar_pairs_are_read_again_beside_the_nearest_other(prepared: Prepared) -> None:
    tokenizers = (prepared.src_tokenizer, prepared.tgt_tokenizer)
    plain = Pairs(prepared.train, tokenizers, max_length=100)
    examples = Pairs(prepared.train, tokenizers, max_length=100, fuzzy=60.0)
    assert examples.real == len(plain) and len(examples) > 1.5 * len(plain)
    assert examples.corpora[1].start == len(plain) and examples.corpora[-1].end == len(examples)
    copies = np.arange(len(plain), len(examples))
    batch = examples.batch(copies, 0)
    (mark,) = tokenizers[0].control_ids(MEMORY_PIECES)
    text = {
        tokenizers[0].decode(src.tolist()): tokenizers[1].decode(tgt.tolist()) for src, tgt in _ids(plain)
    }
    of_target = {tgt: src for src, tgt in text.items()}
    for row, ids in enumerate(batch.src_ids.tolist()):
        real = ids[: int(batch.src_mask[row].sum()) - 1]
        assert len(real) == examples.src_lengths[copies[row]]
        at = real.index(mark)
        own, beside = tokenizers[0].decode(real[:at]), tokenizers[0].decode(real[at + 1 :])
        assert text[own] == tokenizers[1].decode(batch.tgt_out[row].tolist())
        nearest = max(similarity(own, other) for other in text if other != own)
        assert beside != text[own] and 60 <= similarity(own, of_target[beside]) == nearest
    real = np.arange(len(plain))
    assert examples.batch(real, 0).src_ids.equal(plain.batch(real, 0).src_ids)
    assert examples.origin(len(plain)).rpartition(":")[0] == plain.origin(0).rpartition(":")[0]


def _ids(pairs: Pairs) -> list[tuple[np.ndarray, np.ndarray]]:
    return load_pairs(pairs.store, range(len(pairs.store)))


def test_a_term_stays_beside_a_similar_translation(prepared: Prepared) -> None:
    tokenizers = (prepared.src_tokenizer, prepared.tgt_tokenizer)
    both = Pairs(prepared.train, tokenizers, max_length=200, terms=0.9, fuzzy=60.0)
    ids = both.batch(np.array([len(both) - 1, len(both) - 2, len(both) - 3]), 0).src_ids.tolist()
    pieces = [*TERM_PIECES, *MEMORY_PIECES]
    assert all(any(mark in row for row in ids) for mark in tokenizers[0].control_ids(pieces))


def test_settings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="terms: expected a share"):
        ObjectiveConfig(terms=1.5)
    with pytest.raises(UserError, match="fuzzy: expected a percentage"):
        ObjectiveConfig(fuzzy=100)
    with pytest.raises(UserError, match=r"objective\.terms: no terms are found in this corpus"):
        TermLexicon([("a b", "c d")] * 3)
    with pytest.raises(UserError, match="terms: it is for translate alone"):
        ObjectiveConfig(name="causal", terms=0.1)
    files = list(write_pairs(tmp_path, list(corpus())))
    base = {"data": {"train": [{"files": files}]}, "train": {"max_updates": 1}, "objective": {"fuzzy": 50}}
    assert resolve_config(base).tokenizer.specials == MEMORY_PIECES
    for override, told in (
        ("tokenizer.joint=false", "set tokenizer.joint to true"),
        ("tokenizer.dropout=0.1", "does not go with tokenizer.dropout"),
    ):
        with pytest.raises(UserError, match=told):
            resolve_config(base, [override])


def test_a_memory_finds_the_nearest_among_very_many() -> None:
    memory = TranslationMemory((f"the common word {n} stands here", str(n)) for n in range(8_100))
    assert memory.matches("the common word 7123 stands here", 50, 1)[0].target == "7123"
    assert memory.matches("the common word stands here", 50, 1)[0].quality >= 85
    assert memory.matches("nothing of it", 50, 1) == []
