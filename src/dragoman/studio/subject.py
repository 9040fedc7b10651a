"""What is looked into: the model of a run at one of its checkpoints.

A run on pairs translates. A run on text that is causal goes on from a prompt: its source is empty, and the
prompt stands at the beginning of what it writes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman import checkpoint
from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Job
from dragoman.decode.translator.generate import Generator
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models.describe import describe
from dragoman.probe.heads import head_counts
from dragoman.probe.inside import Inside, look_inside
from dragoman.runs.directory import Run

MOST_CHARACTERS = 2000
MOST_PIECES = 256
"""Of a source. Attention grows with the square of it."""
MOST_WRITTEN = 600
_GOES_ON = 48  # pieces that a language model writes after its prompt
_ALTERNATIVES = 8
_OTHERS_KEPT = 3  # models of other checkpoints that stay loaded
_EVERY = 5
_READABLE = range(5, 15)  # pieces of a sentence that is shown at first


@dataclass(frozen=True)
class Subject:
    run: Run
    translator: Translator
    generator: Generator | None
    checkpoint: str

    @property
    def tokenizers(self) -> tuple[Any, Any]:
        return self.translator.src_tokenizer, self.translator.tgt_tokenizer

    def source(self, text: str) -> list[int]:
        """The pieces that the encoder reads, without `</s>`."""
        if not text.strip():
            raise UserError("text: it is blank, and no model is asked about it; type a sentence")
        if len(text) > MOST_CHARACTERS:
            raise UserError(
                f"text: at most {MOST_CHARACTERS} characters, found {len(text)}; take one sentence"
            )
        found = self.tokenizers[0].encode(text)
        if len(found) > MOST_PIECES:
            raise UserError(f"text: at most {MOST_PIECES} pieces, found {len(found)}; take one sentence")
        return [] if self.generator is not None else found

    def settings(self, beam: int, n_best: int, alpha: float, record: bool = False) -> BeamSearch:
        """A beam in one group over the whole vocabulary, so that it can be recorded."""
        plain = self.translator.search.converted(BeamSearch, n_best=1)
        return plain.plain(beam=beam, n_best=min(n_best, beam), alpha=alpha, record=record, shortlist=False)

    def search(self, text: str, settings: BeamSearch, head: Sequence[int] = ()) -> list[Hypothesis]:
        """The best translations, or lines that go on from `text`; `head` are pieces they begin with."""
        source = self.source(text)
        self.check(head)
        if self.generator is not None and not head:
            return self.generator.hypotheses(text, max_tokens=_GOES_ON, search=settings)
        if self.generator is not None:
            settings = replace(settings, max_ratio=0.0, max_extra=len(head) + _GOES_ON, max_length=None)
        constraints = Constraints(head=tuple(head), spelling=self.tokenizers[1].spelling)
        job = Job((*source, self.tokenizers[0].eos_id), constraints)
        return self.translator.search_jobs([job], settings)[0]

    def look(self, text: str, target: Sequence[int]) -> Inside:
        """A hypothesis by its pieces, token by token as it was found."""
        source = self.source(text)
        self.check(target)
        translator = self.translator
        return look_inside(
            translator.model,
            source,
            target,
            self.tokenizers,
            translator.device,
            num_alternatives=_ALTERNATIVES,
        )

    def check(self, target: Sequence[int]) -> None:
        """Pieces that a browser has sent."""
        tokenizer = self.tokenizers[1]
        if len(target) > MOST_WRITTEN:
            raise UserError(f"target: at most {MOST_WRITTEN} pieces, found {len(target)}")
        for piece in target:
            if not 0 <= piece < tokenizer.size or piece in (
                tokenizer.pad_id,
                tokenizer.bos_id,
                tokenizer.eos_id,
            ):
                raise UserError(f"target: {piece} is no piece that can be written")


class Subjects:
    """The runs that were opened, each at its own checkpoint, and others while they are looked at."""

    def __init__(
        self, runs: Sequence[Path], which: str = "best", device: str = "auto", text: str = ""
    ) -> None:
        self._which, self._device, self._text = which, device, text
        self.runs: dict[str, Run] = {}
        self._own: dict[str, Subject] = {}
        self.unreadable: dict[str, str] = {}
        """Runs that could not be opened, and why."""
        for path in runs:
            name = path.resolve().name
            while name in self.runs or name in self.unreadable:
                name += "′"  # two directories of one name
            try:
                run = Run.open(path)
                self._own[name] = self._open(run, self._chosen(run))
            except UserError as error:  # the others are opened all the same
                self.unreadable[name] = str(error)
            else:
                self.runs[name] = run
        if self.unreadable and not self.runs:
            raise UserError(next(iter(self.unreadable.values())))
        self._others: OrderedDict[tuple[str, str], Subject] = OrderedDict()

    def get(self, name: str, at: str | None = None) -> Subject:
        own = self._own.get(name)
        if own is None:
            raise UserError(f"run: '{name[:80]}' was not opened; there are {', '.join(self.runs)}")
        if at is None or at == own.checkpoint:
            return own
        if at not in checkpoint.names(own.run.checkpoints):
            raise UserError(f"checkpoint: '{at[:80]}' is not there any more; choose another")
        key = (name, at)
        if key not in self._others:
            self._others[key] = self._open(own.run, at)
            self._others[key].translator.aligner.look = own.translator.aligner.look
        self._others.move_to_end(key)
        while len(self._others) > _OTHERS_KEPT:
            self._others.popitem(last=False)
        return self._others[key]

    def describe(self) -> list[dict[str, Any]]:
        return [self._described(name, subject) for name, subject in self._own.items()]

    def _described(self, name: str, subject: Subject) -> dict[str, Any]:
        config, model = subject.run.config, subject.translator.model
        return {
            "name": name,
            "kind": str(config.model["kind"]),
            "model": describe(*config.model_config),
            "parameters": sum(each.numel() for each in model.parameters()),
            "languages": [config.data.src_lang, config.data.tgt_lang],
            "generates": subject.generator is not None,
            "attentions": len(head_counts(model)),
            "checkpoint": subject.checkpoint,
            "checkpoints": list(checkpoint.names(subject.run.checkpoints)),
            "beam": subject.translator.search.converted(BeamSearch, n_best=1).beam,
            "alpha": subject.translator.search.alpha,
            "text": self._text or _example(subject),
        }

    def _chosen(self, run: Run) -> str:
        """Before the first validation there is no best one."""
        best, last = run.best, run.last
        if self._which == "best":
            found = best["name"] if best is not None else last
        else:
            found = last if self._which == "last" else self._which
        if found is None:
            raise UserError(f"{run.directory}: no checkpoint yet; wait until the run has saved one")
        return found

    def _open(self, run: Run, at: str) -> Subject:
        if run.config.data.text:
            generator = run.generator(at, self._device)
            return Subject(run, generator.translator, generator, at)
        translator = run.translator(at, self._device)
        # Which attention aligns best is found out when a sentence is first shown; some of the pairs do.
        translator.alignment_examples = lambda: run.validation_examples()[::_EVERY]
        return Subject(run, translator, None, at)


def _example(subject: Subject) -> str:
    """A sentence to begin with: of the validation set, and short enough to be taken in at a glance."""
    if subject.generator is not None:
        return "The"
    for source, _ in subject.run.validation_examples():
        if len(source) in _READABLE:
            return subject.tokenizers[0].decode([int(piece) for piece in source])
    return ""
