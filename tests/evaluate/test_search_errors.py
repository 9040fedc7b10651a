"""Search errors and model errors, counted by hand beside the report."""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import sacrebleu

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.evaluate.lengths import make_buckets
from dragoman.evaluate.plot_search import draw_search_errors
from dragoman.evaluate.search_errors import Judged, SearchedSentence, SearchErrors, evenly, search_errors
from letters import letters_translator

TEXTS = ["ab", "ba b", "aab", "b", "abab", "bb a", "a", "bab a"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    search = SearchConfig(beam=2, max_ratio=0.0, max_extra=5, loop_guard=False)
    return letters_translator(TEXTS, 2, search)


def example() -> SearchErrors:
    """Four sentences: beam 1 misses two optima, one of them empty; the last is not proven."""

    def found(tokens: tuple[int, ...], score: float) -> Hypothesis:
        return Hypothesis("", score, score, tokens, (), (), "stop")

    sentences = [
        SearchedSentence(
            3, True, found((5,), -0.5), 60.0, (Judged(True, 0.2, 50.0), Judged(False, 0.0, 60.0))
        ),
        SearchedSentence(4, True, found((), -0.1), 0.0, (Judged(True, 0.4, 40.0), Judged(True, 0.1, 20.0))),
        SearchedSentence(
            9, True, found((7,), -0.3), 70.0, (Judged(False, 0.0, 70.0), Judged(False, 0.0, 70.0))
        ),
        SearchedSentence(9, False, found((8,), -0.3), 10.0, (Judged(True, 0.9, 1.0), Judged(True, 0.9, 1.0))),
    ]
    search = SearchConfig(method="exhaustive", alpha=0.5)
    return SearchErrors((1, 4), search, sentences, make_buckets([3, 4, 9, 9], [5]))


def test_shares_are_of_the_proven_sentences() -> None:
    one, four = example().overall()
    assert (one.sentences, one.unproven, one.beam, four.beam) == (3, 1, 1, 4)
    assert (one.missed, four.missed) == (2 / 3, 1 / 3)
    assert (one.gap, four.gap) == (pytest.approx(0.3), pytest.approx(0.1))
    assert one.empty == four.empty == 1 / 3
    assert (one.worse, one.better, four.worse, four.better) == (1 / 3, 1 / 3, 1 / 3, 0)
    assert one.chrf == pytest.approx(160 / 3)
    assert one.optimum_chrf == pytest.approx(130 / 3)
    short, long = (example().of(bucket) for bucket in example().buckets)
    assert [(row.bucket, row.sentences, row.unproven, row.missed) for row in (*short, *long)] == [
        ("≤ 5", 2, 0, 1.0),
        ("≤ 5", 2, 0, 0.5),
        ("> 5", 1, 1, 0.0),
        ("> 5", 1, 1, 0.0),
    ]
    header, *rows = example().table()
    assert all(len(row) == len(header) for row in rows)
    assert [row[:4] for row in rows[:2]] == [["all", "1", "3", "1"], ["all", "4", "3", "1"]]


def test_nothing_proven_is_no_share() -> None:
    found = example()
    doubtful = replace(found, sentences=[replace(each, proven=False) for each in found.sentences])
    assert doubtful.overall() == []
    assert len(doubtful.table()) == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_report_agrees_with_counting_by_hand(translator: Translator, alpha: float) -> None:
    search = replace(translator.search, alpha=alpha)
    told: list[tuple[int, int]] = []
    references = TEXTS[::-1]
    found = search_errors(
        translator,
        TEXTS,
        references,
        beams=[4, 1],
        search=search,
        progress=lambda done, total: told.append((done, total)),
    )
    assert found.beams == (1, 4)
    assert found.unproven == 0
    assert told[-1] == (24, 24)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    huge = translator.hypotheses(TEXTS, search=replace(search, beam=300, stop="bound"))
    missed = {1: 0, 4: 0}
    for place, row in enumerate(found.sentences):
        assert row.optimum.tokens == huge[place][0].tokens
        expected = sacrebleu.sentence_chrf(row.optimum.text, [references[place]]).score
        assert row.optimum_chrf == pytest.approx(expected)
        for judged, beam in zip(row.beams, found.beams, strict=True):
            best = translator.hypotheses([TEXTS[place]], search=replace(search, beam=beam))[0][0]
            assert judged.missed == (best.tokens != row.optimum.tokens)
            assert judged.gap == pytest.approx(row.optimum.score - best.score, abs=1e-5)
            assert judged.chrf == pytest.approx(sacrebleu.sentence_chrf(best.text, [references[place]]).score)
            missed[beam] += judged.missed
    assert [row.missed for row in found.overall()] == [missed[1] / 8, missed[4] / 8]
    assert missed[1]


def test_sentences_are_chosen_at_equal_distances() -> None:
    assert evenly(10, 5) == [0, 2, 4, 6, 8]
    assert evenly(3, 200) == [0, 1, 2]
    assert evenly(7, 3) == [0, 2, 4]


def test_nothing_to_search_is_told(translator: Translator) -> None:
    with pytest.raises(UserError, match="no sentence"):
        search_errors(translator, [], [], beams=[1])
    with pytest.raises(UserError, match="blank"):
        search_errors(translator, ["a", " "], ["a", "b"], beams=[1])


def test_the_picture_says_in_text_what_it_shows_and_is_the_same_again() -> None:
    drawn = draw_search_errors(example())
    assert drawn == draw_search_errors(example())
    assert drawn["png"].startswith(b"\x89PNG")
    nodes = ElementTree.fromstring(drawn["svg"]).iter()
    texts = ["".join(node.itertext()) for node in nodes if node.tag.endswith("}text")]
    for expected in ("≤ 5 pieces (n = 2)", "> 5 pieces (n = 1)", "all (n = 3)", "empty", "1", "4"):
        assert expected in texts, texts
    note = "3 sentences whose optimum is proven; 1 not proven, left out; ranked by log p / length^0.5"
    assert note in texts
    unproven = replace(example(), sentences=[replace(each, proven=False) for each in example().sentences])
    with pytest.raises(UserError, match="nothing to draw"):
        draw_search_errors(unproven)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"\[plots\]"):
        draw_search_errors(example())


class Said:
    """A translator that returns what it was given: one score for the beam, one for the exhaustive search."""

    search = SearchConfig(beam=2)

    def __init__(self, beam: float, optimum: float, same: bool) -> None:
        self.src_tokenizer = self
        self.by_method = {"beam": ((5, 6) if same else (5,), beam), "exhaustive": ((5, 6), optimum)}

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [[1] for _ in texts]

    def hypotheses(self, sources: list[str], *, search: SearchConfig, **_: object) -> list[list[Hypothesis]]:
        tokens, score = self.by_method[search.method]
        return [[Hypothesis("x", score, score, tokens, (), (), "stop", exact=True)] for _ in sources]


@pytest.mark.parametrize(
    ("gap", "same", "missed"),
    [
        (5e-7, False, False),
        (2e-6, False, True),
        (0.5, False, True),
        (-1e-3, False, False),
        (2e-6, True, False),
    ],
)
def test_scores_that_only_rounding_tells_apart_are_no_search_error(
    gap: float, same: bool, missed: bool
) -> None:
    found = search_errors(Said(-1.0 - gap, -1.0, same), ["a"], ["b"], beams=[2])  # type: ignore[arg-type]
    (sentence,) = found.sentences
    (judged,) = sentence.beams
    assert judged.missed == missed
    assert judged.gap == (pytest.approx(gap, abs=1e-9) if missed else 0.0)
    assert found.overall()[0].missed == float(missed)
