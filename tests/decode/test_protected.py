"""Protection around a model that knows nothing of it: random weights of several kinds."""

import random

import pytest
import torch

from dragoman.decode.alignment.aligner import Aligner
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.protected import alignment_task
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.text.protect import carried, protect
from dragoman.text.spans import ALL_KINDS, DEFAULT_KINDS
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "slept,", "(red)"]
SPANS = ["{x}", "%s", "http://a.b/c", "a@b.de", "<br/>", "1,5", "&amp;", "$HOME", "{{ y }}"]
MODELS = {
    "transformer": TransformerConfig(num_layers=2, model_dim=16, num_heads=2, ff_dim=16, output_bias=True),
    "rnn": RnnConfig(model_dim=16, output_bias=True),
    "no attention": RnnConfig(model_dim=16, attention="none", output_bias=True),
}


@pytest.fixture(scope="module", params=MODELS)
def translator(request: pytest.FixtureRequest) -> Translator:
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, TokenizerConfig(vocab_size=300))
    torch.manual_seed(2)
    config = MODELS[request.param]
    kind = "transformer" if isinstance(config, TransformerConfig) else "rnn"
    model = build_model(kind, config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return Translator(model, tokenizer, tokenizer, SearchConfig(beam=2, max_extra=4, max_ratio=1))


def texts(count: int) -> list[str]:
    chance = random.Random(0)
    found = []
    for _ in range(count):
        parts = chance.choices(WORDS, k=chance.randint(0, 6)) + chance.choices(SPANS, k=chance.randint(0, 3))
        chance.shuffle(parts)
        if chance.random() < 0.5:
            first = chance.randint(0, len(parts))
            parts = [*parts[:first], "<b>", *parts[first:], "</b>"]
        found.append(" ".join(parts))
    return found


@pytest.mark.parametrize("n_best", [1, 2])
def test_every_span_survives_any_model(translator: Translator, n_best: int) -> None:
    sources = texts(24)
    search = SearchConfig(beam=2, n_best=n_best, max_extra=4, max_ratio=1)
    found = translator.hypotheses(sources, search=search, protect=ALL_KINDS)
    for source, hypotheses in zip(sources, found, strict=True):
        protected = protect(source, ALL_KINDS)
        for hypothesis in hypotheses:
            assert carried(protected, hypothesis.text), (source, hypothesis.text)
            assert (hypothesis.protection is None) == (not protected.marks)
    assert [row[0].text for row in found] == translator.translate(sources, protect=ALL_KINDS)
    one_by_one = [translator.translate([source], protect=ALL_KINDS)[0] for source in sources[:6]]
    assert one_by_one == [row[0].text for row in found[:6]]


def test_plain_text_takes_the_same_path_as_ever(translator: Translator) -> None:
    plain = [" ".join(random.Random(seed).choices(WORDS, k=5)) for seed in range(10)]
    assert translator.hypotheses(plain, protect=DEFAULT_KINDS) == translator.hypotheses(plain)


def test_progress_is_told_once_for_each_text(translator: Translator) -> None:
    seen: list[tuple[int, int]] = []
    translator.hypotheses(
        texts(9), protect=ALL_KINDS, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen) and seen[-1] == (9, 9)


def test_alignment_counts_the_words_of_the_text_that_comes_out(translator: Translator) -> None:
    if translator.aligner.look is None:
        pytest.skip("this model aligns nothing")
    sources = ["", "the cat {x} sat", "a mat", *texts(10)]
    found = translator.hypotheses(sources, protect=ALL_KINDS, align=True)
    for source, (best, *_) in zip(sources, found, strict=True):
        assert best.alignment is not None
        assert all(s < len(source.split()) and t < len(best.text.split()) for s, t in best.alignment)
        if source.strip() and best.text.strip():
            tags = ("<b>", "</b>", "<br/>")  # which are no words
            to_link = {t for t, word in enumerate(best.text.split()) if word not in tags}
            assert {t for _, t in best.alignment} >= to_link or not protect(source, ALL_KINDS).text


def test_words_are_looked_up_in_what_the_model_read_and_wrote() -> None:
    """Spans that were put in afterwards have no length there; the same spans are linked without the model."""
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, TokenizerConfig(vocab_size=300))
    aligner = Unasked(tokenizer, tokenizer)
    wrote = "cat the on"
    tokens = tuple(tokenizer.encode(wrote))
    placed = Hypothesis("{x} cat the {y} on", 0.0, 0.0, tokens, (), (), "stop", protection="placed")
    task = alignment_task("the {y} cat {x}", placed, ALL_KINDS, aligner)
    assert tokenizer.decode(task.src_ids) == "the cat"
    assert tuple(task.tgt_ids) == tokens
    assert ["the cat"[start:end] for start, end in task.src_words] == ["the", "", "cat", ""]
    assert [wrote[start:end] for start, end in task.tgt_words] == ["", "cat", "the", "", "on"]
    assert sorted(task.known) == [(1, 3), (3, 0)]


def test_a_text_that_is_not_what_the_model_wrote_is_read_anew() -> None:
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, TokenizerConfig(vocab_size=300))
    aligner = Unasked(tokenizer, tokenizer)
    cat = tuple(tokenizer.encode("cat"))
    other = Hypothesis("{x} mat", 0.0, 0.0, cat, (), (), "stop", protection="placed")
    task = alignment_task("the {x}", other, ALL_KINDS, aligner)
    assert tokenizer.decode(task.tgt_ids) == "{x} mat"
    assert tokenizer.decode(task.src_ids) == "the {x}"
    assert task.known == ()


class Unasked(Aligner):
    def attention(self, *_: object) -> None:
        raise AssertionError("nothing is aligned here")
