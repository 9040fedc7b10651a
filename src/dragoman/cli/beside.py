"""`--glossary`, `--terms` and `--memory` of `translate`: terms and similar translations for the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from dragoman.cli.translators import Opened
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.text.glossary import Glossary

TermsOption = Literal["annotate", "constrain", "placeholder"]
Ask = Callable[..., list[list[Any]]]
"""`Translator.hypotheses` with its settings."""


def asks_with_terms(ask: Ask, opened: Opened, glossary: "Glossary | None", terms: TermsOption | None) -> Ask:
    """`ask` with a glossary, applied as `--terms` says or else as the model supports."""
    if glossary is None:
        if terms is not None:
            raise UserError("--terms: it says how a glossary is used; give --glossary too")
        return ask
    if not any(entry.targets for entry in glossary.entries):
        typer.echo("dragoman: no term of the glossary has a translation: all are copied", err=True)
    annotates = opened.translator.annotates
    chosen = terms or ("annotate" if annotates else "constrain")
    if chosen == "annotate" and not annotates:
        raise UserError(
            "--terms annotate: this model was not trained with terms beside the source (objective.terms); "
            "choose constrain or placeholder"
        )
    if chosen == "constrain" and opened.fast:
        raise UserError(
            "--glossary: CTranslate2 cannot insist on terms; translate with the run itself, or choose "
            "--terms placeholder"
        )
    if chosen == "placeholder":
        return partial(_with_placeholders, ask, glossary)
    return partial(ask, glossary=glossary, terms=chosen)


def _with_placeholders(ask: Ask, glossary: "Glossary", texts: Sequence[str], **how: Any) -> list[list[Any]]:
    """Replace terms by placeholders, which the model keeps, and restore them in the output."""
    from dragoman.serve.masks import mask
    from dragoman.text.spans import DEFAULT_KINDS

    masked = [mask(text, glossary) for text in texts]
    how["protect"] = how.get("protect") or DEFAULT_KINDS
    rows = ask([one.text for one in masked], **how)
    return [
        [replace(found, text=own.unmask(found.text)) for found in row]
        for own, row in zip(masked, rows, strict=True)
    ]


class GivenMemory:
    """The memory of `--memory`. Exact matches are used as they are; similar translations are given to a model
    that was trained to read them."""

    def __init__(self, paths: Sequence[Path], least: float | None, opened: Opened, align: bool) -> None:
        from dragoman.serve.memory import LEAST_SIMILAR, open_memories

        if align:
            raise UserError("--memory: its own sentences are not aligned; leave out --align")

        def warn(told: str) -> None:
            typer.echo(f"dragoman: {told}", err=True)

        self._least, self._opened = LEAST_SIMILAR if least is None else least, opened
        self._memory = open_memories(paths, [opened.languages], warn)[opened.languages]
        if not opened.translator.reads_memory:
            warn("this model was not trained with a memory (objective.fuzzy): only exact matches are used")

    def found(self, text: str) -> dict[str, Any] | None:
        """The match used for a text: an exact one, or the most similar sentence."""
        least = self._least if self._opened.translator.reads_memory else 100.0
        match = next(iter(self._memory.matches(text, least, 1)), None) if text.strip() else None
        if match is None:
            return None
        return {"source": match.source, "target": match.target, "quality": match.quality}

    def asks(self, ask: Ask) -> Ask:
        return partial(self._ask, ask)

    def _ask(self, ask: Ask, texts: Sequence[str], **how: Any) -> list[list[Any]]:
        matches = {text: found for text in texts if (found := self.found(text))}
        similar = {text: own["target"] for text, own in matches.items() if own["quality"] < 100}
        exact = [n for n, text in enumerate(texts) if text in matches and text not in similar]
        others = [n for n in range(len(texts)) if n not in set(exact)]
        prefixes = how.pop("prefixes", None)
        if prefixes is not None:  # the output has to begin with the prefix, even if the memory has a match
            exact, others = [], list(range(len(texts)))
            how["prefixes"] = prefixes
        rows = dict(zip(others, ask([texts[n] for n in others], similar=similar, **how), strict=True))
        known = self._opened.translator.score([(texts[n], matches[texts[n]]["target"]) for n in exact])
        for number, scored in zip(exact, known, strict=True):
            rows[number] = [replace(scored, text=matches[texts[number]]["target"])]
        return [rows[number] for number in range(len(texts))]
