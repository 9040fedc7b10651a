"""Beam search by CTranslate2 with the results of our own search.

CTranslate2's beam search is ours with `stop: complete`, and close to `settled`: of 2K extensions, those by
`</s>` among the K best are set aside, and it stops with K of them (with 2K for `settled`). Two differences
are corrected afterwards. It has one length limit for all sentences of a call; a sentence that reaches its own
limit is searched again with that one. And it may write `<pad>` or `<s>`; such a sentence is searched again
without them. `docs/engines.md` lists the remaining differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job, total
from dragoman.engines.runtime import Call, Runtime
from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

_SUPPORTED = frozenset(
    (
        *("beam", "n_best", "alpha", "stop", "loop_guard", "no_repeat_ngram"),
        *("max_ratio", "max_extra", "max_length", "min_ratio", "min_length"),
    )
)
_INSTEAD = {
    "stop": "it counts the hypotheses that have ended ('settled', 'complete')",
    "repetition_penalty": "it multiplies logits, not log-probabilities",
}
_PATIENCE = {"complete": 1.0, "settled": 2.0}
"""The search stops after this many times `beam` hypotheses (Kasai et al. 2022). CTranslate2 does not compare
them with live ones, as `settled` does; a larger number comes close to it."""
_NO_LIMIT = 1 << 31
_ALMOST_ZERO = 1e-6
"""CTranslate2 stops by another rule where its length penalty is 0."""


def supported(search: SearchConfig, positions: int | None = None) -> BeamSearch:
    """The search with limits that fit into the positions of an export. Settings that CTranslate2 would ignore
    are refused."""
    if not isinstance(search, BeamSearch):
        raise UserError(
            f"search.method: CTranslate2 cannot search with {search.method!r}; use the run itself"
        )
    for field in fields(search):
        value, supported = getattr(search, field.name), field.name in _SUPPORTED
        if field.name == "stop":
            supported = value in _PATIENCE
        if value != field.default and not supported:
            why = f": {_INSTEAD[field.name]}" if field.name in _INSTEAD else ""
            raise UserError(
                f"search.{field.name}: CTranslate2 cannot search with {value!r}{why}; use the run itself"
            )
    longest = min(search.max_length or _NO_LIMIT, positions or _NO_LIMIT)
    return search if longest == _NO_LIMIT else replace(search, max_length=longest)


def is_complete(job: Job, config: BeamSearch) -> bool:
    """Whether the prefix leaves room for `</s>` at most."""
    return len(job.begin) + 1 >= job.longest(config) or job.begin[-1:] == (EOS_ID,)


def search(
    runtime: Runtime, jobs: Sequence[Job], settings: BeamSearch, shortlist: bool, batch_tokens: int
) -> list[list[Ended]]:
    """The n best hypotheses of each job, ranked, without token scores. Jobs share calls, so they should be of
    similar length. A cancelled job has none."""
    results: list[list[Ended]] = [[_at_the_end(job)] if is_complete(job, settings) else [] for job in jobs]
    open_jobs = [number for number, found in enumerate(results) if not found]
    together = max((jobs[number].longest(settings) for number in open_jobs), default=0)
    plain = Call(
        together,
        beam=settings.beam,
        length_penalty=max(settings.alpha, _ALMOST_ZERO),
        patience=_PATIENCE[settings.stop] if settings.beam > 1 else 1.0,
        no_repeat_ngram=settings.no_repeat_ngram,
        shortlist=shortlist,
    )
    # Pieces of a prefix may be outside of the shortlist.
    kinds = [(job.shortest(settings), bool(job.begin)) for job in jobs]
    calls = {
        (shortest, given): replace(plain, shortest=shortest, shortlist=shortlist and not given)
        for shortest, given in set(kinds)
    }
    own = [calls[kind] for kind in kinds]
    again = _run(runtime, jobs, open_jobs, own, batch_tokens, results, settings)
    alone = {
        number: replace(own[number], longest=jobs[number].longest(settings) - 1, forbid=True)
        for number in again
    }
    _run(runtime, jobs, again, alone, batch_tokens, results, settings)
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
    settings: BeamSearch,
) -> list[int]:
    """Search the jobs of these numbers, grouped by call. Returns those that have to be searched again on
    their own. CTranslate2 ranks as we do, so of the others the n best are enough, unless their scores
    change."""
    groups: dict[Call, list[int]] = {}
    for number in numbers:
        groups.setdefault(calls[number], []).append(number)
        results[number] = []
    again: list[int] = []
    for call, group in groups.items():
        if not (members := [number for number in group if not jobs[number].cancelled()]):
            continue
        found = runtime.translate([jobs[number] for number in members], call, batch_tokens)
        for number, row in zip(members, found, strict=True):
            if jobs[number].cancelled():  # it may have been interrupted
                continue
            hypotheses = [runtime.target.ids(names) for names in row.hypotheses]
            if not call.forbid and _has_to_be_redone(hypotheses, jobs[number].longest(settings)):
                again.append(number)
            every = call.forbid or _is_scored_again(jobs[number], settings)
            kept = hypotheses if every else hypotheses[: settings.n_best]
            scores = row.scores or [0.0] * len(kept)  # greedy search needs none
            results[number] = [
                _ended(ids, score, call.length_penalty) for ids, score in zip(kept, scores, strict=False)
            ]
    return again


def _is_scored_again(job: Job, settings: BeamSearch) -> bool:
    """Whether scores must be recomputed: suppression renormalises them, and prefixes are not scored."""
    return job.shortest(settings) > 0 or bool(job.begin) or settings.no_repeat_ngram > 0


def _score_again(
    runtime: Runtime,
    jobs: Sequence[Job],
    results: list[list[Ended]],
    settings: BeamSearch,
    batch_tokens: int,
) -> None:
    """Recompute scores, including the `</s>` that the length limit set."""
    changed = [_is_scored_again(job, settings) for job in jobs]
    places = [(i, k) for i, found in enumerate(results) for k in range(len(found))]
    places = [(i, k) for i, k in places if changed[i] or results[i][k].reason == "length"]
    pairs = [(jobs[i].source[:-1], results[i][k].tokens[:-1]) for i, k in places]
    for (i, k), scores in zip(places, runtime.token_scores(pairs, batch_tokens), strict=True):
        results[i][k] = replace(results[i][k], ranked=total(scores))


def _at_the_end(job: Job) -> Ended:
    if job.begin[-1:] == (EOS_ID,):
        return Ended(job.begin, (), "stop")
    return Ended((*job.begin, EOS_ID), (), "length")


def _ended(ids: tuple[int, ...], score: float, penalty: float) -> Ended:
    """Undo CTranslate2's length normalisation, which counts `</s>`. If the length limit ended a hypothesis,
    `</s>` and its score are missing."""
    log_prob = score * len(ids) ** penalty
    if ids[-1:] == (EOS_ID,):
        return Ended(ids, (), "stop", ranked=log_prob)
    return Ended((*ids, EOS_ID), (), "length", ranked=log_prob)


def _has_to_be_redone(found: Sequence[tuple[int, ...]], longest: int) -> bool:
    """Whether a sentence reached its own limit, or contains control pieces."""
    return any(
        len(ids) >= longest or ids[-1:] != (EOS_ID,) or PAD_ID in ids or BOS_ID in ids for ids in found
    )
