"""The directions of a multilingual model, and the control pieces that select one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import UserError

Languages = tuple[str, str]
"""Source and target language."""
LanguagePieces = Literal["target", "both"]
UNDETERMINED = "und"
"""The source language if it was not named and the model does not need it (ISO 639-2)."""


def direction_name(languages: Languages) -> str:
    return "-".join(languages)


@dataclass(frozen=True)
class Directions:
    trained: tuple[Languages, ...]
    pieces: LanguagePieces = "target"
    """The languages given as control pieces: the target, or both."""

    def __post_init__(self) -> None:
        if not self.trained or any(len(pair) != 2 for pair in self.trained):
            raise UserError("trained: expected directions, each a source and a target language")

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(code for pair in self.trained for code in pair))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(src for src, _ in self.trained))

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tgt for _, tgt in self.trained))

    @property
    def zero_shot(self) -> tuple[Languages, ...]:
        """Directions without training pairs, from a known source language into a known target language."""
        pairs = ((src, tgt) for src in self.sources for tgt in self.targets if src != tgt)
        return tuple(pair for pair in pairs if pair not in self.trained)

    @property
    def control_pieces(self) -> tuple[str, ...]:
        """All control pieces that the vocabulary needs."""
        sources = self.sources if self.pieces == "both" else ()
        return (*map(_to, self.targets), *map(_from, sources))

    def opening(self, languages: Languages) -> tuple[str, ...]:
        """The control pieces before a source."""
        src, tgt = languages
        return (_to(tgt), _from(src)) if self.pieces == "both" else (_to(tgt),)

    def chosen(self, to: str | None, source: str | None, zero_shot: bool = False) -> Languages:
        """The direction that `--to` and `--from` select."""
        named = f"it translates {self}"
        if to is None:
            raise UserError(f"--to: name the target language; {named}")
        to, source = _meant(to, self.targets), _meant(source, self.sources)
        for option, code, known in (("--to", to, self.targets), ("--from", source, self.sources)):
            if code is not None and code not in known:
                raise UserError(f"{option} {code}: this model does not know it; {named}")
        assert to is not None
        if source is None:
            fitting = [pair for pair in self.trained if pair[1] == to]
            if len(fitting) == 1:
                return fitting[0]
            if self.pieces == "both":
                codes = ", ".join(src for src, _ in fitting)
                raise UserError(f"--from: several languages are translated into {to}; give one of {codes}")
            return UNDETERMINED, to
        self.check((source, to), zero_shot)
        return source, to

    def check(self, languages: Languages, zero_shot: bool) -> None:
        """Refuse a direction that the model lacks, and a zero-shot direction that was not requested."""
        if languages in self.trained:
            return
        name = direction_name(languages)
        if languages not in self.zero_shot:
            raise UserError(f"{name}: this model has no such direction; it translates {self}")
        if not zero_shot:
            raise UserError(f"{name}: no pairs of this direction were trained; --zero-shot translates anyway")

    def __str__(self) -> str:
        return ", ".join(map(direction_name, self.trained))


def chosen_languages(
    directions: Directions | None, only: Languages, to: str | None, source: str | None, zero_shot: bool
) -> Languages:
    """The direction that `--to` and `--from` select. `only` is the direction of a bilingual model."""
    if directions is not None:
        return directions.chosen(to, source, zero_shot)
    for option, code, own in (("--to", to, only[1]), ("--from", source, only[0])):
        if code is not None and code != own:
            raise UserError(f"{option} {code}: this model translates {direction_name(only)} alone")
    return only


def parse_directions(text: str, available: Iterable[Languages]) -> tuple[Languages, ...]:
    """Parse `en-de,de-en` as directions, each of which must be `available`. `all` selects every one."""
    known = {direction_name(pair): pair for pair in available}
    if text.strip() == "all":
        return tuple(known.values())
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UserError(f"--directions {name}: no corpus has it; there are {', '.join(known) or 'none'}")
    if not names:
        raise UserError("--directions: expected directions such as en-de,de-en, or all")
    return tuple(dict.fromkeys(known[name] for name in names))


def _meant(code: str | None, known: Iterable[str]) -> str | None:
    """The known code that equals `code` up to case and separator: `pt_br` is `pt-BR`."""
    same = (own for own in known if code and own.casefold() == code.replace("_", "-").casefold())
    return next(same, code)


def _to(language: str) -> str:
    return f"<to:{language}>"


def _from(language: str) -> str:
    return f"<from:{language}>"
