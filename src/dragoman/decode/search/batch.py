"""The sentences of one search as tensors, and the rules on their next tokens.

A rule takes the scores of every row, the tokens of the row so far, and its sentence. It keeps no state
between steps, so a search may reorder, drop or revisit rows. Three kinds:

    forbid    writes −∞ for forbidden tokens; the others keep their log-probabilities: no renormalising
    insist    allows only required tokens, even if another rule forbids them
    reweigh   changes the values used for ranking; reported log-probabilities are unchanged
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from dragoman.data.batch import pad, pad_vectors
from dragoman.decode.rules.brackets import Balanced, BracketTables
from dragoman.decode.rules.forbid import BeginsWith, NoEndBefore, NoPhrases, NoRepeatedNgram
from dragoman.decode.rules.required_phrases import Required
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Job, never
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, EncoderInput, Float, Int, Tensor
from dragoman.text.piece_bytes import Spelling


class Rule(Protocol):
    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        """Forbid (writing into `scores`) or reweigh (in a new tensor). `prefix` has the tokens after
        `<s>`."""
        ...


class Insistence(Protocol):
    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        free: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> Float[Tensor, "N V"]:
        """May write into `scores`; `free` are the scores before anything was forbidden: the same tensor where
        nothing was."""
        ...


class RepetitionPenalty:
    """log p becomes θ·log p for every token that the row already has: p becomes p^θ.

    Keskar et al. 2019, section 4.1, divide a logit by θ. A logit has no fixed zero, so there the effect
    depends on its sign; a log-probability is never positive, and multiplying it always makes a repetition
    less probable. θ = 1 changes nothing.
    """

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],  # noqa: ARG002
    ) -> Float[Tensor, "N V"]:
        return scores.scatter(1, prefix, scores.gather(1, prefix) * self.penalty)


class Rules:
    """All rules of a search. Padding and `<s>` are always forbidden.

    If the rules forbid everything, a row may end: a search always finds something.
    """

    def __init__(
        self,
        vocab: Vocab,
        forbid: Sequence[Rule] = (),
        insist: Sequence[Insistence] = (),
        reweigh: Sequence[Rule] = (),
    ) -> None:
        self.vocab, self.forbid, self.insist, self.reweigh = (
            vocab,
            tuple(forbid),
            tuple(insist),
            tuple(reweigh),
        )

    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        """The values for ranking. `scores` are modified and stay log-probabilities; they are also the result
        unless a rule reweighs."""
        scores[:, self.vocab.pad_id] = -torch.inf
        scores[:, self.vocab.bos_id] = -torch.inf
        if self.forbid or self.insist:
            self._restrict(scores, prefix, sentences)
        ranked = scores
        for rule in self.reweigh:
            ranked = rule(ranked, prefix, sentences)
        return ranked

    def _restrict(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> None:
        eos = scores[:, self.vocab.eos_id].clone()
        alone = len(self.insist) == 1 and not self.forbid  # nothing is forbidden before it
        free = scores.clone() if self.insist and not alone else scores
        for rule in self.forbid:
            rule(scores, prefix, sentences)
        for insistence in self.insist:
            insistence(scores, free, prefix, sentences)
        stuck = scores.amax(dim=1).isneginf()
        scores[:, self.vocab.eos_id] = torch.where(stuck, eos, scores[:, self.vocab.eos_id])


def rules_for(
    config: SearchConfig,
    vocab: Vocab,
    jobs: Sequence[Job],
    shortest: Int[Tensor, "B"],
    limits: Int[Tensor, "B"],
    required: Insistence | None = None,
    texts: Callable[[], Spelling] | None = None,
) -> Rules:
    """The rules of a configuration, and those of the sentences. `texts` are those of the pieces."""
    constraints = [job.constraints for job in jobs]
    spelling = next((own.spelling for own in constraints if own.spelling is not None), None)
    forbid: list[Rule] = []
    insist: list[Insistence] = []
    if config.min_length or config.min_ratio:
        forbid.append(NoEndBefore(vocab, shortest))
    if config.no_repeat_ngram:
        forbid.append(NoRepeatedNgram(vocab, config.no_repeat_ngram))
    if config.brackets:
        if texts is None:
            raise UserError("search.brackets: this search does not know the text of its pieces; leave it out")
        insist.append(Balanced(config.brackets, vocab, texts(), limits))
    if spelling is not None:
        if any(own.forbidden for own in constraints):
            forbid.append(NoPhrases(vocab, [own.forbidden for own in constraints], spelling, limits))
        if any(own.longest_prefix for own in constraints):
            insist.append(BeginsWith(vocab, constraints, spelling, limits.device))
    if required is not None:
        insist.append(required)
    reweigh = [RepetitionPenalty(config.repetition_penalty)] if config.repetition_penalty != 1.0 else []
    return Rules(vocab, forbid, insist, reweigh)


@dataclass(frozen=True)
class SearchBatch:
    jobs: tuple[Job, ...]
    src_ids: EncoderInput
    src_mask: Bool[Tensor, "B S"]
    limits: Int[Tensor, "B"]
    """Maximum length of each translation in tokens, including `</s>`."""
    shortest: Int[Tensor, "B"]
    """Minimum number of tokens of each before `</s>`."""
    rules: Rules
    required: Required | None
    """The required phrases."""

    @classmethod
    def of(
        cls,
        jobs: Sequence[Job],
        config: SearchConfig,
        vocab: Vocab,
        device: torch.device,
        texts: Callable[[], Spelling] | None = None,
    ) -> "SearchBatch":
        sources = [job.source for job in jobs]
        padded = pad(sources) if isinstance(sources[0], tuple) else pad_vectors(sources)
        src_ids, src_mask = (part.to(device, non_blocking=True) for part in padded)
        limits = torch.tensor([job.longest(config) for job in jobs], device=device)
        shortest = torch.tensor([job.shortest(config) for job in jobs], device=device)
        required = None
        if any(job.constraints.required for job in jobs):
            required = Required(vocab, [job.constraints for job in jobs], limits)
        rules = rules_for(config, vocab, jobs, shortest, limits, required, texts)
        return cls(tuple(jobs), src_ids, src_mask, limits, shortest, rules, required)

    @property
    def can_be_cancelled(self) -> bool:
        return any(job.cancelled is not never for job in self.jobs)

    @property
    def brackets(self) -> BracketTables | None:
        """The tables of the rule of brackets, if there is one."""
        rules = (rule for rule in self.rules.insist if isinstance(rule, Balanced))
        return next((rule.tables for rule in rules), None)
