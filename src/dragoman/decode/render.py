"""From ids to what a person reads. Plain Python, and the same for every engine."""

from collections.abc import Iterable, Iterator, Sequence

from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.decode.hypothesis import Hypothesis, Partial, total
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.tokenizer import Tokenizer

EMPTY = Hypothesis("", 0.0, 0.0, (), (), (), "stop")
"""Of a text without anything but white space: no model is asked."""


def hypothesis_of(ended: Ended, tokenizer: Tokenizer, search: SearchConfig) -> Hypothesis:
    """The score is the model's, also where a rule has reweighed what the search ranked by."""
    tokens, log_prob = ended.tokens[:-1], total(ended.token_scores)
    return Hypothesis(
        text=tokenizer.decode(tokens),
        score=search.rank(log_prob, len(ended.tokens), ended.covered),
        log_prob=log_prob,
        tokens=tokens,
        pieces=tuple(tokenizer.pieces(tokens)),
        token_scores=ended.token_scores,
        finish_reason=ended.reason,
        exact=ended.exact,
        trace=ended.trace,
    )


def partials(
    finals: Iterable[tuple[int, ...] | Ended], tokenizer: Tokenizer, search: SearchConfig
) -> Iterator[Partial]:
    """A translation that comes in tokens, and at last as a whole, in text that makes it up exactly."""
    decoder = IncrementalDecoder(tokenizer)
    for final in finals:
        if isinstance(final, Ended):
            yield Partial(decoder.finish(), (), hypothesis_of(final, tokenizer, search))
        else:
            yield Partial("".join(map(decoder.push, final)), final)


def refuse_string(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError("texts: expected a list of sentences, found one string; write [text]")
