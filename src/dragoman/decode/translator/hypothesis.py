"""Results of a search, and the conversion of ids to text. Plain Python, the same for every engine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Ended, FinishReason, total
from dragoman.decode.search.trace import Trace
from dragoman.text.context import last_sentences
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.protect import Protection
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `tokens` exclude `</s>`; `token_scores` include it as their last entry."""

    text: str
    score: float
    """The ranking score: log_prob / length^α by default; the expected utility for minimum Bayes risk."""
    log_prob: float
    """Σ log p(y_t | y_<t, x), including `</s>`."""
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    token_scores: tuple[float, ...]
    finish_reason: FinishReason
    """`stop`: the model ended it; `length`: it was cut at the maximum length; `loop`: the search was stuck in
    a loop, and this was found with repetitions forbidden."""
    exact: bool | None = None
    """For exhaustive search: True if nothing better exists, False if `max_nodes` was reached before that was
    proven. None for other searches."""
    trace: Trace | None = field(default=None, compare=False, repr=False)
    """The search trace, if it was recorded; one object for all hypotheses of a sentence."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links of source word and target word, if alignment was requested."""
    alone: bool = False
    """Whether it was translated without the sentences before it, because with them the output did not have as
    many sentences as it should."""
    protection: Protection | None = None
    """How the protected spans of the source were inserted into `text`, if there are any. Tokens and scores
    are those of the model's output."""


@dataclass(frozen=True)
class Partial:
    """Text that became final since the previous part. The last part has the whole hypothesis."""

    text: str
    tokens: tuple[int, ...] = ()
    hypothesis: Hypothesis | None = None


EMPTY = Hypothesis("", 0.0, 0.0, (), (), (), "stop")
"""The hypothesis of a text of white space only."""


def hypothesis_of(ended: Ended, tokenizer: Tokenizer, search: SearchConfig) -> Hypothesis:
    """The scores are the model's own, even if a rule reweighed the ranking."""
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


def sentence_in(
    whole: Hypothesis, separator: int, count: int, tokenizer: Tokenizer, search: SearchConfig
) -> Hypothesis | None:
    """The last sentence of an output that should have `count` before it; None if it has others."""
    if whole.tokens.count(separator) != count:
        return None
    if not count:
        return whole
    tokens = tuple(last_sentences(whole.tokens, separator, 1))
    scores = whole.token_scores[-len(tokens) - 1 :]
    log_prob = total(scores)
    return replace(
        whole,
        text=tokenizer.decode(tokens),
        score=search.rank(log_prob, len(tokens) + 1),
        log_prob=log_prob,
        tokens=tokens,
        pieces=tuple(tokenizer.pieces(tokens)),
        token_scores=scores,
    )


def partials(
    finals: Iterable[tuple[int, ...] | Ended], tokenizer: Tokenizer, search: SearchConfig
) -> Iterator[Partial]:
    """Convert streamed tokens to text parts whose concatenation is exactly the translation."""
    decoder = IncrementalDecoder(tokenizer)
    for final in finals:
        if isinstance(final, Ended):
            yield Partial(decoder.finish(), (), hypothesis_of(final, tokenizer, search))
        else:
            yield Partial("".join(map(decoder.push, final)), final)


def refuse_string(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError("texts: expected a list of sentences, found one string; write [text]")
