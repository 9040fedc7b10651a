"""Sentences in ids, searched by CTranslate2 as our own search would.

CTranslate2's beam search is ours with `stop: complete`: 2K extensions, those by `</s>` among the K best are
set aside, done with K of them. Two things are put right afterwards. Its length limit is one for all sentences
of a call; a sentence that meets its own limit is searched again with that one. And it may write `<pad>` or
`<s>`; a sentence where it did is searched again without them. `docs/engines.md` says what remains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.finished import Ended, total
from dragoman.decode.translator.cancel import Wanted, some_of, still
from dragoman.engines.runtime import Call, Ids, Runtime
from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

_SUPPORTED = frozenset(
    (
        *("beam", "n_best", "alpha", "stop", "loop_guard", "no_repeat_ngram"),
        *("max_ratio", "max_extra", "max_length", "min_ratio", "min_length"),
    )
)
_INSTEAD = {
    "stop": "it stops when `beam` hypotheses have ended ('complete')",
    "repetition_penalty": "it multiplies logits, not log-probabilities",
}
_PAD, _BEGIN, _END = str(PAD_ID), str(BOS_ID), [str(EOS_ID)]
_ALMOST_ZERO = 1e-6
"""CTranslate2 stops by another rule where its length penalty is 0."""


@dataclass(frozen=True)
class Job:
    """A sentence to search, with the limits of its own translation, `</s>` counted in `longest`."""

    source: Ids
    longest: int
    shortest: int
    begin: tuple[int, ...] = ()
    """The translation begins with these. With `</s>` at their end they are all of it."""

    @property
    def done(self) -> bool:
        """There is room for `</s>` alone, or not even for that."""
        return len(self.begin) + 1 >= self.longest or self.begin[-1:] == (EOS_ID,)


def refuse_unsupported(search: SearchConfig) -> None:
    """A setting that would be ignored is an error."""
    default = SearchConfig()
    for field in fields(search):
        value = getattr(search, field.name)
        if value != getattr(default, field.name) and (field.name not in _SUPPORTED or field.name == "stop"):
            why = f": {_INSTEAD[field.name]}" if field.name in _INSTEAD else ""
            raise UserError(
                f"search.{field.name}: CTranslate2 cannot search with {value!r}{why}; use the run itself"
            )


def search(
    runtime: Runtime,
    jobs: Sequence[Job],
    settings: SearchConfig,
    shortlist: bool,
    batch_tokens: int,
    wanted: Sequence[Wanted] | None = None,
) -> list[list[Ended]]:
    """The n best of each job, ranked; their tokens are not scored one by one. They share their calls, so they
    should be of similar length. A job that is not wanted any more has none."""
    results: list[list[Ended]] = [[_at_the_end(job)] if job.done else [] for job in jobs]
    open_jobs = [number for number, found in enumerate(results) if not found]
    together = max((jobs[number].longest for number in open_jobs), default=0)
    plain = Call(
        together,
        beam=settings.beam,
        length_penalty=max(settings.alpha, _ALMOST_ZERO),
        no_repeat_ngram=settings.no_repeat_ngram,
        shortlist=shortlist,
    )
    # What is given at the beginning may be outside of the shortlist.
    kinds = {(job.shortest, bool(job.begin)) for job in jobs}
    calls = {
        (shortest, given): replace(plain, shortest=shortest, shortlist=shortlist and not given)
        for shortest, given in kinds
    }
    own = [calls[job.shortest, bool(job.begin)] for job in jobs]
    again = _run(runtime, jobs, open_jobs, own, batch_tokens, results, settings, wanted)
    alone = {number: replace(own[number], longest=jobs[number].longest - 1, forbid=True) for number in again}
    _run(runtime, jobs, again, alone, batch_tokens, results, settings, wanted)
    _score_again(runtime, jobs, results, settings, batch_tokens)
    for found in results:
        if len(found) > 1:
            found.sort(key=lambda one: one.score(settings), reverse=True)
            del found[settings.n_best :]
    return results


def _run(
    runtime: Runtime,
    jobs: Sequence[Job],
    numbers: Sequence[int],
    calls: Sequence[Call] | Mapping[int, Call],
    batch_tokens: int,
    results: list[list[Ended]],
    settings: SearchConfig,
    wanted: Sequence[Wanted] | None,
) -> list[int]:
    """Search the jobs of these numbers, those that share a call together. Told are those that have to be
    searched again, alone. CTranslate2 ranks as we do, so of the others the n best are enough, unless their
    scores will change."""
    groups: dict[Call, list[int]] = {}
    for number in numbers:
        groups.setdefault(calls[number], []).append(number)
        results[number] = []
    again: list[int] = []
    for call, group in groups.items():
        if not (members := [number for number in group if still(wanted, number)]):
            continue
        begins = [jobs[number].begin for number in members]
        found = runtime.translate(
            [jobs[number].source for number in members],
            call,
            batch_tokens,
            begins if any(begins) else None,
            some_of(wanted, members),
        )
        for number, row in zip(members, found, strict=True):
            if not still(wanted, number):  # it may have been broken off
                continue
            hypotheses = row.hypotheses  # a copy each time that it is asked for
            if not call.forbid and _has_to_be_redone(hypotheses, jobs[number].longest):
                again.append(number)
            every = call.forbid or _is_scored_again(jobs[number], settings)
            kept = hypotheses if every else hypotheses[: settings.n_best]
            scores = row.scores or [0.0] * len(kept)  # greedy search needs none
            results[number] = [
                _ended(tokens, score, call.length_penalty)
                for tokens, score in zip(kept, scores, strict=False)
            ]
    return again


def _is_scored_again(job: Job, settings: SearchConfig) -> bool:
    """Where something was kept away, CTranslate2 has renormalised; and what is given is not scored at all."""
    return job.shortest > 0 or bool(job.begin) or settings.no_repeat_ngram > 0


def _score_again(
    runtime: Runtime,
    jobs: Sequence[Job],
    results: list[list[Ended]],
    settings: SearchConfig,
    batch_tokens: int,
) -> None:
    """The `</s>` that the length limit set has a probability too."""
    changed = [_is_scored_again(job, settings) for job in jobs]
    places = [(i, k) for i, found in enumerate(results) for k in range(len(found))]
    places = [(i, k) for i, k in places if changed[i] or results[i][k].reason == "length"]
    pairs = [(jobs[i].source, results[i][k].tokens[:-1]) for i, k in places]
    for (i, k), scores in zip(places, runtime.token_scores(pairs, batch_tokens), strict=True):
        results[i][k] = replace(results[i][k], ranked=total(scores))


def _at_the_end(job: Job) -> Ended:
    if job.begin[-1:] == (EOS_ID,):
        return Ended(job.begin, (), "stop")
    return Ended((*job.begin, EOS_ID), (), "length")


def _ended(tokens: Sequence[str], score: float, penalty: float) -> Ended:
    """CTranslate2 has divided the score by the length of what it returns, `</s>` counted, to the power. Where
    the length limit has ended a hypothesis, `</s>` and its score are missing."""
    ids = tuple(map(int, tokens))
    log_prob = score * len(ids) ** penalty
    if ids[-1:] == (EOS_ID,):
        return Ended(ids, (), "stop", ranked=log_prob)
    return Ended((*ids, EOS_ID), (), "length", ranked=log_prob)


def _has_to_be_redone(found: Sequence[Sequence[str]], longest: int) -> bool:
    """At its limit a sentence ends every live hypothesis; and control pieces are no text."""
    return any(
        len(tokens) >= longest or tokens[-1:] != _END or _PAD in tokens or _BEGIN in tokens
        for tokens in found
    )
