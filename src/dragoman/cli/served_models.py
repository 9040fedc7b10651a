"""Runs that do not translate, and runs trained on dialogues, for `dragoman serve`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.text.segment import nfc

if TYPE_CHECKING:
    from dragoman.decode.predict import Predictor
    from dragoman.decode.search.config import SampleSearch
    from dragoman.decode.search.job import Cancelled
    from dragoman.decode.translator.generate import Generator, Prompt
    from dragoman.decode.translator.hypothesis import Hypothesis
    from dragoman.decode.translator.translator import Translator
    from dragoman.probe.embed import Embedder
    from dragoman.probe.fill import Filler
    from dragoman.runs.directory import Run
    from dragoman.serve.models import Ability, Continuation, Model, Question, Write
    from dragoman.text.tokenizer import Tokenizer

_PARTS = {"pair": (2, 2), "similarity": (2, 2), "span": (2, 2), "choice": (3, None), "tag": (1, None)}


def run_without_translation(directory: Path) -> "Run | None":
    """The run in this directory, if it is a run that does not translate."""
    from dragoman.cli.translators import is_huggingface_directory
    from dragoman.engines.manifest import is_export

    if is_export(directory) or is_huggingface_directory(directory):  # these need no torch
        return None
    from dragoman.runs.directory import Run

    if not Run.exists(directory):
        return None
    run = Run.open(directory)
    return None if run.config.purpose == "translate" else run


def open_model(run: "Run", checkpoint: str, device: str) -> "Model":
    from dragoman.learning import learning_of
    from dragoman.probe.embed import Embedder
    from dragoman.serve.models import Model

    config, opened = run.config, _opened(run, checkpoint, device)
    causal = not learning_of(config).reads_source

    def embedder(pool: str) -> "Embedder":
        return Embedder(opened.network, opened.tokenizer, pool=pool, causal=causal)

    embeds = opened.embeds and not opened.network.abilities.counts

    def answers(texts: Sequence[str], how: "Question", cancelled: "Sequence[Cancelled]") -> list[Any]:
        from dragoman.serve.models import Embed

        if isinstance(how, Embed):
            return [vectors.rows[0, 0].tolist() for vectors in embedder(how.pool).embed(texts)]
        return opened.answers(texts, how, cancelled)

    return Model(
        name=run.directory.resolve().name,
        does=(*opened.does, "embed") if embeds else opened.does,
        answers=answers,
        count=lambda text: len(opened.tokenizer.encode(text)),
        objective=config.objective.name,
        task=None if config.task is None else config.task.kind,
        labels=() if config.task is None else config.task.labels,
        parts=(1, 1) if config.task is None else _PARTS.get(config.task.kind, (1, 1)),
    )


class _Opened(Protocol):
    does: "tuple[Ability, ...]"
    embeds: bool
    network: Any
    tokenizer: "Tokenizer"

    def answers(self, texts: Sequence[str], how: Any, cancelled: "Sequence[Cancelled]") -> list[Any]: ...


def _opened(run: "Run", checkpoint: str, device: str) -> _Opened:
    if run.config.purpose == "predict":
        from dragoman.runs.opening import open_predictor

        return _Predicts(open_predictor(run, checkpoint, device))
    if run.config.purpose == "generate":
        return _Writes(run.generator(checkpoint, device))
    if run.config.purpose == "translate":
        return _Replies(run.translator(checkpoint, device), run.config.data.train[0].turns)
    from dragoman.probe.fill import Filler

    return _Fills(Filler(run, checkpoint, device))


class _Predicts:
    does: "tuple[Ability, ...]" = ("predict",)
    embeds = True

    def __init__(self, predictor: "Predictor") -> None:
        self.predictor = predictor
        self.network, self.tokenizer = predictor.model.network, predictor.tokenizer

    def answers(self, texts: Sequence[str], how: Any, cancelled: "Sequence[Cancelled]") -> list[Any]:  # noqa: ARG002
        from dragoman.data.labelled.example import Example
        from dragoman.serve.models import PARTS, PredictedText

        examples = [Example(tuple(text.split(PARTS)), None, "text") for text in texts]
        kind = self.predictor.task.kind
        return [
            PredictedText.model_validate(found.record(kind)) for found in self.predictor.predict(examples)
        ]


class _Fills:
    does: "tuple[Ability, ...]" = ("fill",)
    embeds = True

    def __init__(self, filler: "Filler") -> None:
        self.filler = filler
        self.network, self.tokenizer = filler.network, filler.tokenizer

    def answers(self, texts: Sequence[str], how: Any, cancelled: "Sequence[Cancelled]") -> list[Any]:
        from dragoman.serve.models import FilledText

        found = [
            [] if left() else self.filler.fill(text, how.count)
            for text, left in zip(texts, cancelled, strict=True)
        ]
        return [
            [FilledText(probability=one.probability, gaps=[*one.gaps], text=one.text) for one in row]
            for row in found
        ]


class _Writes:
    does: "tuple[Ability, ...]" = ("generate", "chat")
    embeds = True

    def __init__(self, generator: "Generator") -> None:
        self.generator = generator
        self.network = generator.translator.model
        self.tokenizer = generator.translator.tgt_tokenizer

    def answers(self, texts: Sequence[str], how: Any, cancelled: "Sequence[Cancelled]") -> list[Any]:
        from dragoman.decode.search.config import SampleSearch
        from dragoman.decode.translator.generate import Prompt

        search = self.generator.search.converted(
            SampleSearch,
            n_best=how.count,
            temperature=how.temperature,
            top_p=how.top_p,
            seed=how.seed,
        )
        prompts = [Prompt.of(text, how.open) for text in texts]
        if how.hear is not None:
            return [[self._streamed(prompts[0], how, search, cancelled[0])]]
        found = self.generator.write(prompts, max_tokens=how.max_tokens, search=search, cancelled=cancelled)
        return [
            [self._continuation(prompt, one, how) for one in row]
            for prompt, row in zip(prompts, found, strict=True)
        ]

    def _streamed(
        self, prompt: "Prompt", how: "Write", search: "SampleSearch", left: "Cancelled"
    ) -> "Continuation":
        assert how.hear is not None, "only what is streamed is told"
        ear = _Ear(prompt.text, how.stop, how.hear)
        found = self.generator.stream(
            prompt,
            ear.hear,
            max_tokens=how.max_tokens,
            search=search,
            cancelled=lambda: ear.stopped or left(),
        )
        ear.end()
        return self._continuation(prompt, replace(found, text=ear.heard), how)

    def _continuation(self, prompt: "Prompt", found: "Hypothesis", how: "Write") -> "Continuation":
        source = self.generator.source_of(prompt, how.max_tokens)
        begin = len(found.text) - len(without_prompt(found.text, prompt.text))
        return _answer(self.generator.translator, source, found, begin, how)


class _Replies:
    """A translator from the turns of a dialogue to the reply."""

    does: "tuple[Ability, ...]" = ("chat",)
    embeds = False

    def __init__(self, translator: "Translator", turns: int) -> None:
        self.translator, self.turns = translator, turns
        self.network, self.tokenizer = translator.model, translator.tgt_tokenizer

    def answers(self, texts: Sequence[str], how: Any, cancelled: "Sequence[Cancelled]") -> list[Any]:
        from dragoman.data.formats.dialogue import context
        from dragoman.decode.search.config import SampleSearch

        sources = [context([line for line in text.split("\n") if line], self.turns) for text in texts]
        search = self.translator.search.converted(
            SampleSearch,
            n_best=how.count,
            temperature=how.temperature,
            top_p=how.top_p,
            seed=how.seed,
            max_length=min(how.max_tokens, self.translator.search.max_length or how.max_tokens),
        )
        rows = self.translator.hypotheses(sources, search=search, cancelled=cancelled)
        encode = self.translator.src_tokenizer.encode
        found = [
            [_answer(self.translator, encode(source), one, 0, how) for one in row]
            for source, row in zip(sources, rows, strict=True)
        ]
        if how.hear is not None:
            how.hear(found[0][0].text)  # in one part
        return found


def _answer(
    translator: "Translator", source: Sequence[int], found: "Hypothesis", begin: int, how: "Write"
) -> "Continuation":
    """The text from `begin` on, up to the first stop string, with its pieces if they are asked for."""
    from dragoman.serve.models import Continuation, PieceScore

    whole = found.text[begin:]
    text = whole[: stop_in(whole, how.stop)]
    cut = len(text) < len(whole)
    answer = Continuation(
        text=text,
        finish_reason="length" if found.finish_reason == "length" and not cut else "stop",
        log_prob=None if cut else found.log_prob,
        tokens=len(translator.tgt_tokenizer.encode(text)),
    )
    if how.shown is None:
        return answer
    from dragoman.probe.continuation import scored_pieces

    told = scored_pieces(translator, source, found, begin, begin + len(text), how.shown)
    return answer.with_pieces(
        [
            PieceScore(text=one.text, log_prob=one.log_prob, best=list(one.best), begin=one.begin)
            for one in told
        ]
    )


def without_prompt(text: str, prompt: str) -> str:
    """The continuation without the prompt. Trailing spaces of the prompt may be missing from the text,
    because no piece is a single space."""
    prompt = nfc(prompt)
    return text.removeprefix(prompt if text.startswith(prompt) else prompt.rstrip())


def stop_in(text: str, stops: Sequence[str]) -> int:
    """The index at which a text ends: the first stop string, or the end."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))


class _Ear:
    """Passes on the text after the prompt, holding back what may be the start of a stop string."""

    def __init__(self, prompt: str, stops: Sequence[str], tell: Callable[[str], None]) -> None:
        self.heard, self.stopped = "", False
        self._prompt, self._stops, self._tell = prompt, stops, tell
        self._held = max(map(len, stops), default=1) - 1
        self._told = 0

    def hear(self, part: str) -> None:
        self.heard += part
        if len(self.heard) < len(nfc(self._prompt)):
            return
        text = without_prompt(self.heard, self._prompt)
        end = stop_in(text, self._stops)
        self.stopped = end < len(text)
        self._tell_up_to(text, end if self.stopped else len(text) - self._held)

    def end(self) -> None:
        text = without_prompt(self.heard, self._prompt)
        self._tell_up_to(text, stop_in(text, self._stops))

    def _tell_up_to(self, text: str, end: int) -> None:
        if end > self._told:
            self._tell(text[self._told : end])
            self._told = end
