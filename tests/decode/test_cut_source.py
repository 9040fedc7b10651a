"""A translator with `cut_source` reads so many pieces of a source and no more."""

from decode.constrained import TEXTS, translator
from dragoman.decode.rules.constraints import FREE
from dragoman.decode.search.job import never
from dragoman.text.tokenizer import EOS_ID


def test_what_stands_behind_the_cut_changes_nothing() -> None:
    own = translator("char", seed=1)
    texts = [TEXTS[0], TEXTS[0][:9], TEXTS[0][:4]]
    own.cut_source = 9
    jobs = own.jobs(texts, [FREE] * 3, [never] * 3)
    expected = [own.src_tokenizer.encode(text)[:9] for text in texts]
    assert [list(job.source) for job in jobs] == [[*ids, EOS_ID] for ids in expected]
    assert len(jobs[0].source) == 10 > len(jobs[2].source)
    whole, cut, _ = own.hypotheses(texts)
    assert whole == cut
