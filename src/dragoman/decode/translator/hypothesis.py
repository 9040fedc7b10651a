"""What a search returns, and how ids become what a person reads. Plain Python, the same for every engine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Ended, FinishReason, total
from dragoman.decode.search.trace import Trace
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.protect import Protection
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `tokens` leave out `</s>`, `token_scores` include it as their last entry."""

    text: str
    score: float
    """What hypotheses are ranked by: log_prob / length^α as a rule; the expected utility where minimum Bayes
    risk has chosen."""
    log_prob: float
    """Σ log p(y_t | y_<t, x), `</s>` included."""
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    token_scores: tuple[float, ...]
    finish_reason: FinishReason
    """`stop`: the model ended it; `length`: it was ended at the greatest length allowed; `loop`: the search
    went in circles, and this was found instead with repetitions forbidden."""
    exact: bool | None = None
    """Of an exhaustive search: True where nothing better exists, False where `max_nodes` ran out before that
    was proven. Other searches prove nothing: None."""
    trace: Trace | None = field(default=None, compare=False, repr=False)
    """What the search looked at, where it was recorded; one object for all hypotheses of a sentence."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Source word and target word, where alignment was asked for."""
    protection: Protection | None = None
    """How the protected spans of the source came into `text`, where it has any. Tokens and scores are those
    of what the model wrote."""


@dataclass(frozen=True)
class Partial:
    """What has become final since the last one. The last of all has the whole hypothesis."""

    text: str
    tokens: tuple[int, ...] = ()
    hypothesis: Hypothesis | None = None


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
