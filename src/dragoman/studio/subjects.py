"""The runs that were opened, each at its own checkpoint, and others while they are looked at."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import checkpoint
from dragoman.data.labelled.config import VECTORS
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.noise import MASK
from dragoman.decode.search.config import BeamSearch
from dragoman.errors import UserError
from dragoman.models import describe
from dragoman.probe.fill import Filler
from dragoman.probe.heads import head_counts
from dragoman.probe.reader import RunReader
from dragoman.runs.directory import Run
from dragoman.studio.corpus import Nearest
from dragoman.studio.reading import Reading
from dragoman.studio.subject import Subject
from dragoman.studio.vectors import OpenVectors, open_vectors

OpenSubject = Subject | Reading | OpenVectors
_OTHERS_KEPT = 3  # models of other checkpoints that stay loaded
_EVERY = 5
_READABLE = range(5, 15)  # pieces of a sentence that is shown at first


class Subjects:
    def __init__(
        self, runs: Sequence[Path], which: str = "best", device: str = "auto", text: str = ""
    ) -> None:
        self._which, self._device, self._text = which, device, text
        self.runs: dict[str, Run] = {}
        self._own: dict[str, OpenSubject] = {}
        self.unreadable: dict[str, str] = {}
        """Runs that could not be opened, and why."""
        for path in runs:
            try:
                self.add(path)
            except UserError as error:  # the others are opened all the same
                self.unreadable[self._free_name(path)] = str(error)
        if self.unreadable and not self.runs:
            raise UserError(next(iter(self.unreadable.values())))
        self.tests: dict[str, tuple[str, ...]] = {}
        """Files of test sets, by the names under which the *Data* view offers them."""
        self._nearest: dict[str, Nearest] = {}
        self._others: OrderedDict[tuple[str, str], OpenSubject] = OrderedDict()

    def add(self, path: Path) -> str:
        """Open one more run; the name by which it is asked for. One that is open already is opened anew, at
        its checkpoint of today."""
        path = path.resolve()
        there = next((name for name, run in self.runs.items() if run.directory.resolve() == path), None)
        name = there or self._free_name(path)
        run = Run.open(path)
        self._own[name] = self._open(run, self._chosen(run))
        self.runs[name] = run
        return name

    def _free_name(self, path: Path) -> str:
        name = path.resolve().name
        while name in self.runs or name in self.unreadable:
            name += "′"  # two directories of one name
        return name

    def get(self, name: str, at: str | None = None) -> OpenSubject:
        own = self._own.get(name)
        if own is None:
            raise UserError(f"run: '{name[:80]}' was not opened; there are {', '.join(self.runs)}")
        if at is None or at == own.checkpoint:
            return own
        if at not in checkpoint.names(own.run.checkpoints):
            raise UserError(f"checkpoint: '{at[:80]}' is not there any more; choose another")
        key = (name, at)
        if key not in self._others:
            self._others[key] = opened = self._open(own.run, at)
            if isinstance(opened, Subject) and isinstance(own, Subject):
                opened.translator.aligner.look = own.translator.aligner.look
        self._others.move_to_end(key)
        while len(self._others) > _OTHERS_KEPT:
            self._others.popitem(last=False)
        return self._others[key]

    def add_test(self, files: Sequence[str]) -> str:
        """Add a test set to the *Data* view. Returns its name."""
        for file in files:
            if not Path(file).is_file():
                raise UserError(f"{file}: there is no such file")
        name = ", ".join(Path(file).name for file in files)[:255]
        self.tests[name] = tuple(files)
        return name

    def test_files(self, name: str) -> tuple[str, ...]:
        if name and name not in self.tests:
            raise UserError(f"test: '{name[:80]}' was not opened")
        return self.tests.get(name, ())

    def nearest(self, name: str) -> Nearest:
        """The index for the nearest training pairs; built on first use."""
        if name not in self._nearest:
            self._nearest[name] = Nearest(self.get(name).run)
        return self._nearest[name]

    def describe(self) -> list[dict[str, Any]]:
        return [self._described(name, subject) for name, subject in self._own.items()]

    def _described(self, name: str, subject: OpenSubject) -> dict[str, Any]:
        config = subject.run.config
        writes = isinstance(subject, Subject)
        model = subject.translator.model if isinstance(subject, Subject) else subject.model
        told = {
            "name": name,
            "kind": str(config.model["kind"]),
            "model": describe(*config.model_config),
            "parameters": sum(each.numel() for each in model.parameters()),
            "languages": list(_languages(subject.run)),
            "reads": not writes,
            "sees": subject.sees if isinstance(subject, OpenVectors) else "",
            "task": None if config.task is None else config.task.kind,
            "fills": isinstance(subject, Subject) and subject.filler is not None,
            "generates": isinstance(subject, Subject) and subject.generator is not None,
            "attentions": 0 if isinstance(subject, OpenVectors) else len(head_counts(model)),
            "checkpoint": subject.checkpoint,
            "checkpoints": list(checkpoint.names(subject.run.checkpoints)),
            "text": "" if isinstance(subject, OpenVectors) else self._text or _example(subject),
        }
        if not isinstance(subject, Subject):
            return told
        search = subject.translator.search
        return told | {"beam": search.converted(BeamSearch, n_best=1).beam, "alpha": search.alpha}

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

    def _open(self, run: Run, at: str) -> OpenSubject:
        if run.config.task is not None and run.config.task.kind in VECTORS:
            return open_vectors(run, at, self._device)
        purpose = run.config.purpose
        if purpose == "generate":
            generator = run.generator(at, self._device)
            return Subject(run, generator.translator, generator, at)
        if purpose == "read" and run.config.model_config[1].abilities.writes:
            filler = Filler(run, at, self._device)
            return Subject(run, filler.translator, None, at, filler)
        if purpose in ("read", "predict"):
            return Reading(run, RunReader(run, at, self._device), at)
        translator = run.translator(at, self._device, languages=_languages(run))
        # Which attention aligns best is found out when a sentence is first shown; some of the pairs do.
        translator.alignment_examples = lambda: run.validation_examples()[::_EVERY]
        return Subject(run, translator, None, at)


def _example(subject: Subject | Reading) -> str:
    """A short sentence of the validation set to start with."""
    if isinstance(subject, Subject) and subject.generator is not None:
        return "The"
    if isinstance(subject, Reading) and subject.reader.task is not None:
        return _labelled_example(subject.run, subject.reader.task.kind)
    side = int(subject.run.config.data.text)  # text alone is kept where the targets of pairs are
    tokenizer = subject.run.tokenizers()[side]
    found = [pair[side] for pair in subject.run.validation_examples() if len(pair[side])]
    if not found:
        return ""
    chosen = next((ids for ids in found if len(ids) in _READABLE), found[0])
    text = tokenizer.decode([int(piece) for piece in chosen])
    return _with_a_gap(text) if isinstance(subject, Subject) and subject.filler is not None else text


def _with_a_gap(text: str) -> str:
    words = text.split()
    words[len(words) // 2] = MASK
    return " ".join(words)


def _labelled_example(run: Run, task: str) -> str:
    try:
        corpus = run.corpus()
    except UserError:  # the data are gone
        return ""
    assert isinstance(corpus, PreparedTask)
    texts = [example.texts for example in corpus.valid]
    if not texts:
        return ""
    mark = " " if task == "tag" else "\t"
    short = [own for own in texts if len(" ".join(own).split()) in _READABLE]
    return mark.join((short or texts)[0])


def _languages(run: Run) -> tuple[str, str]:
    """The languages of a run; for a multilingual run, those of its first direction."""
    data = run.config.data
    return (data.src_lang, data.tgt_lang) if data.directions is None else data.directions.trained[0]
