"""What an export is asked beyond searching: the guard, protection, alignment, beginnings, forbidden phrases,
streams. Held against our own search, with a model of random weights that likes to go in circles."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from decode.test_protected import texts as marked_texts
from dragoman.decode.alignment.attention import best_look, source_attention
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.errors import UserError
from dragoman.text.glossary import Glossary
from dragoman.text.protect import carried, protect
from dragoman.text.spans import ALL_KINDS
from dragoman.text.word_boundaries import has_phrase
from engines.conftest import WORDS, MakeModel

GREEDY = SearchConfig(beam=1, max_extra=6)
Both = tuple[Translator, CTranslate2Translator]


@pytest.fixture(scope="module")
def both(make_model: MakeModel, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Both:
    loaded = make_model(output_bias=True, num_decoder_layers=3)
    encoded = loaded.src_tokenizer.encode_batch(texts)
    examples = list(zip(encoded, encoded[::-1], strict=True))
    out = tmp_path_factory.mktemp("steer") / "out"
    export_ctranslate2(loaded, out, search=GREEDY, examples=examples)
    ours = Translator(loaded.model, loaded.src_tokenizer, loaded.tgt_tokenizer, GREEDY)
    ours.alignment_examples = lambda: examples
    return ours, CTranslate2Translator.open(out)


@pytest.mark.parametrize("search", [GREEDY, replace(GREEDY, no_repeat_ngram=2)], ids=["guard", "n-grams"])
def test_loops_are_found_and_made_anew_as_by_our_own_search(
    both: Both, texts: list[str], search: SearchConfig
) -> None:
    ours, fast = (translator.hypotheses(texts, search=search) for translator in both)
    reasons = {best.finish_reason for best, *_ in ours}
    assert ("loop" in reasons) == (search == GREEDY)
    for (mine,), (theirs,) in zip(ours, fast, strict=True):
        assert (theirs.tokens, theirs.finish_reason) == (mine.tokens, mine.finish_reason)
        assert theirs.token_scores == pytest.approx(mine.token_scores, abs=5e-5)
    assert both[1].translate(texts, search=search) == [best.text for best, *_ in fast]
    off = both[1].hypotheses(texts, search=replace(search, loop_guard=False))
    assert all(best.finish_reason != "loop" for best, *_ in off)


def test_the_rest_of_a_list_stays_beside_what_was_made_anew(both: Both, texts: list[str]) -> None:
    search = SearchConfig(beam=3, n_best=3, max_extra=6)
    found = both[1].hypotheses(texts[:12], search=search)
    plain = both[1].hypotheses(texts[:12], search=replace(search, loop_guard=False))
    looped = [number for number, row in enumerate(found) if row[0].finish_reason == "loop"]
    assert looped
    for number in looped:
        kept = [one.tokens for one in plain[number][1:] if one.tokens != found[number][0].tokens]
        assert [one.tokens for one in found[number][1:]] == kept


def test_the_attention_is_the_one_that_aligns(both: Both, texts: list[str]) -> None:
    ours, fast = both
    look = best_look(ours.model, ours.aligner.examples())
    assert look is not None and fast.aligner.when_read == look.when_read  # type: ignore[attr-defined]
    ids = ours.src_tokenizer.encode_batch(texts)
    pairs = [*zip(ids, ids[::-1], strict=True), (ids[0], [])]
    expected = source_attention(ours.model, pairs)[look.module]
    found = dict(fast.engine.runtime.attention(pairs, batch_tokens=100))
    for number, weights in enumerate(expected):
        np.testing.assert_allclose(found[number], weights, atol=1e-5)
    sentences = list(zip(texts, texts[::-1], strict=True))
    assert fast.aligner.links_of_texts(sentences, 100) == ours.aligner.links_of_texts(sentences, 100)


@pytest.mark.parametrize("beam", [1, 3])
def test_every_span_survives_and_order_is_kept(both: Both, beam: int) -> None:
    ours, fast = both
    sources = ["", *marked_texts(40)]
    search = SearchConfig(beam=beam, n_best=min(beam, 2), max_extra=4, max_ratio=1)
    found = fast.hypotheses(sources, search=search, protect=ALL_KINDS, align=beam == 1)
    for source, hypotheses in zip(sources, found, strict=True):
        protected = protect(source, ALL_KINDS)
        for hypothesis in hypotheses:
            assert carried(protected, hypothesis.text), (source, hypothesis.text)
            assert (hypothesis.protection is None) == (not protected.marks)
    if beam == 1:
        expected = ours.hypotheses(sources, search=search, protect=ALL_KINDS, align=True)
        assert [(one.text, one.protection, one.alignment) for one, *_ in found] == [
            (one.text, one.protection, one.alignment) for one, *_ in expected
        ]
        chosen = random.Random(1).sample(sources, len(sources))
        again = dict(zip(chosen, fast.translate(chosen, search=search, protect=ALL_KINDS), strict=True))
        assert [again[source] for source in sources] == [best.text for best, *_ in found]


@pytest.mark.parametrize("prefix_open", [False, True], ids=["closed", "open"])
def test_a_given_beginning(both: Both, texts: list[str], prefix_open: bool) -> None:
    prefixes = [("ca", "the cat", "slept ", "", "Ünd", "a (")[number % 6] for number in range(len(texts))]
    asked = {"search": GREEDY, "prefixes": prefixes, "prefix_open": prefix_open}
    expected, found = (translator.hypotheses(texts, **asked) for translator in both)  # type: ignore[arg-type]
    assert [best.tokens for best, *_ in found] == [best.tokens for best, *_ in expected]
    wide = both[1].hypotheses(texts, **(asked | {"search": SearchConfig(beam=3, n_best=2, loop_guard=False)}))  # type: ignore[arg-type]
    for prefix, row in zip(prefixes, wide, strict=True):
        for best in row:
            assert best.text.startswith(prefix)
            if prefix and prefix[-1].isalpha() and not prefix_open:
                assert not best.text[len(prefix) : len(prefix) + 1].isalnum()
        assert [one.score for one in row] == sorted((one.score for one in row), reverse=True)
    (blank,), (empty,) = both[1].hypotheses([" ", ""], prefixes=["the ca", ""], prefix_open=prefix_open)
    assert (blank.text, blank.token_scores, empty.text) == ("the ca", (), "")


def test_forbidden_phrases_never_come(both: Both, texts: list[str]) -> None:
    free = " ".join(best for best in both[0].translate(texts, search=GREEDY))
    came = {word for word in (*WORDS, *re.findall(r"[a-z]+", free)) if has_phrase(free, word)}
    forbidden = sorted(came, key=lambda word: (-free.count(word), word))[:12]
    assert len(forbidden) > 3
    for search in (GREEDY, replace(GREEDY, no_repeat_ngram=3)):
        expected, found = (t.hypotheses(texts, search=search, forbidden=forbidden) for t in both)
        assert [best.tokens for best, *_ in found] == [best.tokens for best, *_ in expected]
    for row in both[1].hypotheses(texts, search=SearchConfig(beam=3, n_best=3), forbidden=forbidden):
        assert row and not any(has_phrase(one.text, word) for one in row for word in forbidden)


def test_a_stream_is_the_greedy_translation(both: Both, texts: list[str]) -> None:
    plain = replace(GREEDY, loop_guard=False)
    for text in ("", *texts[:8]):
        parts = list(both[1].stream(text, search=plain))
        (expected,) = both[1].hypotheses([text], search=plain)[0]
        assert parts[-1].hypothesis == expected
        assert "".join(part.text for part in parts) == expected.text
        assert tuple(token for part in parts for token in part.tokens) == expected.tokens
    short = list(both[1].stream(texts[0], search=replace(plain, max_length=1)))
    assert len(short) == 1 and short[0].hypothesis is not None and not short[0].hypothesis.tokens
    with pytest.raises(UserError, match=r"search\.beam: .* beam of 1, not 5"):
        list(both[1].stream(texts[0], search=SearchConfig()))


def test_what_needs_our_own_search_is_refused(both: Both, tmp_path_factory: pytest.TempPathFactory) -> None:
    fast = both[1]
    with pytest.raises(UserError, match=r"required: .*translate with the run itself"):
        fast.hypotheses(["a cat"], required=[["dog"]])
    terms = tmp_path_factory.mktemp("terms") / "terms.tsv"
    terms.write_text("cat\tdog\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"required: .*translate with the run itself"):
        fast.hypotheses(["a cat"], glossary=Glossary.load(terms))
    with pytest.raises(UserError, match=r"search\.repetition_penalty: .* with 1\.5: it multiplies logits"):
        fast.translate(["a cat"], search=SearchConfig(repetition_penalty=1.5))
    with pytest.raises(UserError, match=r"prefixes: one takes up to \d+ pieces.* 1,024 positions"):
        fast.hypotheses(["a cat"], prefixes=["xyz" * 400], prefix_open=True)
