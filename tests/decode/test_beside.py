"""A translator writes terms and similar translations beside its sources, where its model was trained so."""

from collections.abc import Sequence
from typing import Any

import pytest

from decode.constrained import TEXTS, wild
from dragoman.decode.search.job import Job
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.text.glossary import Glossary, GlossaryEntry
from dragoman.text.source_additions import MEMORY_PIECES, TERM_PIECES, with_similar, with_terms
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

GLOSSARY = Glossary([GlossaryEntry("cat", ("Katze", "Kater"))])
TEXT = "the cat sat in {0} new york"


def translator(specials: tuple[str, ...] = ()) -> Translator:
    tokenizer = Tokenizer.train(TEXTS * 3, TokenizerConfig(vocab_size=340, specials=specials))
    return Translator(wild(tokenizer.size, 3, eos_bias=1.0), tokenizer, tokenizer)


@pytest.fixture(scope="module")
def trained() -> Translator:
    return translator((*TERM_PIECES, *MEMORY_PIECES))


def sources(asked: Translator, monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[Sequence[int]]:
    """What the search is given."""
    seen: list[Job] = []
    searched = Translator.search_jobs

    def search_jobs(self: Translator, jobs: Sequence[Job], *rest: Any, **more: Any) -> Any:
        seen.extend(jobs)
        return searched(self, jobs, *rest, **more)

    monkeypatch.setattr(Translator, "search_jobs", search_jobs)
    asked.hypotheses([TEXT], **how)
    monkeypatch.undo()
    assert not any(job.constraints.required for job in seen)
    return [list(job.source[:-1]) for job in seen]


def test_what_stands_beside_a_source(trained: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = trained.src_tokenizer
    plain = tokenizer.encode(TEXT)
    with_term = with_terms(tokenizer, plain, [(4, 7, "Katze")])
    assert sources(trained, monkeypatch) == [plain]
    assert sources(trained, monkeypatch, glossary=GLOSSARY) == [with_term]
    both = {"glossary": GLOSSARY, "similar": {TEXT: "eine Katze"}}
    assert sources(trained, monkeypatch, **both) == [with_similar(tokenizer, with_term, "eine Katze")]
    found = sources(trained, monkeypatch, glossary=GLOSSARY, protect=("placeholder",))
    assert found[0] == with_term and len(found) == 2, "the placeholder is lost: the rest is translated"
    begins = tokenizer.control_ids(TERM_PIECES)[0]
    assert begins in found[1] and tokenizer.encode("{0}")[-2] not in found[1]


def test_words_are_aligned_to_the_source_alone(trained: Translator) -> None:
    ((plain,),) = trained.hypotheses([TEXT], glossary=GLOSSARY, align=True)
    words = len(TEXT.split())
    assert plain.alignment and all(source < words for source, _ in plain.alignment)


def test_a_model_that_was_not_trained_so_is_constrained_or_refuses() -> None:
    plain = translator()
    assert not plain.annotates and not plain.reads_memory
    ((best,),) = plain.hypotheses([TEXT], glossary=GLOSSARY)
    assert "Katze" in best.text or "Kater" in best.text
    with pytest.raises(UserError, match="not trained with terms"):
        plain.hypotheses([TEXT], glossary=GLOSSARY, terms="annotate")
    with pytest.raises(UserError, match="not trained with similar translations"):
        plain.hypotheses([TEXT], similar={TEXT: "Katze"})


def test_a_search_can_still_insist(trained: Translator) -> None:
    ((best,),) = trained.hypotheses([TEXT], glossary=GLOSSARY, terms="constrain")
    assert "Katze" in best.text or "Kater" in best.text
