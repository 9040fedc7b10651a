"""What the data are and how they are cleaned: the `data` part of a run's configuration."""

import math
from dataclasses import dataclass, field, replace

from dragoman.config import LEFT_OUT, check_counts, check_not_negative
from dragoman.data.directions import (
    Directions,
    LanguagePieces,
    Languages,
    chosen_languages,
    direction_name,
)
from dragoman.errors import UserError
from dragoman.text.context import ContextConfig

FORMATS = (
    *("auto", "plain", "tsv", "csv", "jsonl", "parquet"),
    *("tmx", "xliff", "po", "mo", "zip", "text"),
    *("conll", "squad", "lines", "dialogue"),
)

SUSPECTS = (
    *("language", "swapped", "script", "misaligned"),
    *("digits", "address", "length", "near_duplicate"),
)
"""Kinds of pairs that look wrong. They are reported, and left out where `drop_suspects` names them."""
_NAMED = 6
"""Languages that the name of a run lists."""
_LONGEST_LINE = (1 << 31) - 1


@dataclass(frozen=True)
class SourceConfig:
    """One corpus: two plain files (source, target), one file that holds both sides, or one of text alone."""

    files: tuple[str, ...]
    format: str = "auto"
    weight: float = 1.0
    """How often an epoch uses each pair: 2 means twice, 0.5 means every second one."""
    src: str | None = None
    """Column or field of the source side, or its language in a memory; a number counts columns from 1. None:
    found by its name."""
    tgt: str | None = None
    alignment: str | None = None
    """A file with a line `0-0 1-2` for each pair: which words belong together. For guided alignment."""
    src_lang: str | None = field(default=None, metadata=LEFT_OUT)
    """The languages of this corpus, in a run of several languages; there every corpus names both."""
    tgt_lang: str | None = field(default=None, metadata=LEFT_OUT)
    turns: int = field(default=3, metadata=LEFT_OUT)
    """Of a dialogue: how many turns before a reply are its source."""
    document: str | None = field(default=None, metadata=LEFT_OUT)
    """Column or field that names the document of each row, for `data.context`. None: found by its name."""

    def __post_init__(self) -> None:
        if (self.src_lang is None) != (self.tgt_lang is None):
            raise UserError("src_lang: name both languages of a corpus, src_lang and tgt_lang, or neither")
        if self.src_lang is not None and self.src_lang == self.tgt_lang:
            raise UserError(f"tgt_lang: source and target are in the same language, '{self.tgt_lang}'")
        if not self.files:
            raise UserError("files: expected one or two file names, found none")
        if self.format not in FORMATS:
            raise UserError(f"format: expected one of {', '.join(FORMATS)}, found '{self.format}'")
        check_counts(self, "turns")
        check_not_negative(self, "weight")
        if self.format == "text" and self.alignment is not None:
            raise UserError(f"alignment: text has one side, found '{self.alignment}'; leave it out")


@dataclass(frozen=True)
class CleanConfig:
    """Which pairs training leaves out. Empty pairs always are; both sides go together."""

    max_length: int = 256
    """Tokens a side."""
    max_ratio: float = 9.0
    """Longer side over shorter side, in tokens; only asked where the longer side has more than 12."""
    drop_duplicates: bool = True
    drop_copies: bool = False
    """Pairs whose target is the source itself: untranslated."""
    drop_suspects: tuple[str, ...] = ()
    """Kinds of suspects to leave out; `all` for every kind."""
    cut_source: int | None = field(default=None, metadata=LEFT_OUT)
    """Longer sources are cut to this many tokens, in training and in translating; None: they are not cut."""

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise UserError(f"max_length: expected at least 1, found {self.max_length}")
        if self.cut_source is not None and not 1 <= self.cut_source <= self.max_length:
            raise UserError(
                f"cut_source: expected a number from 1 to max_length, which is {self.max_length}, found "
                f"{self.cut_source}"
            )
        if not self.max_ratio >= 1:
            raise UserError(f"max_ratio: expected at least 1, found {self.max_ratio}")
        for kind in self.drop_suspects:
            if kind not in (*SUSPECTS, "all"):
                known = ", ".join(("all", *SUSPECTS))
                raise UserError(f"drop_suspects: expected some of {known}, found '{kind}'")

    @property
    def dropped_suspects(self) -> tuple[str, ...]:
        """The kinds by their names."""
        return SUSPECTS if "all" in self.drop_suspects else self.drop_suspects


@dataclass(frozen=True)
class ShardConfig:
    """How the prepared training data lie on disk. It has no part in what is learnt, nor in which order."""

    pairs: int | None = None
    """Of a shard. None: the data are not cut."""
    directories: tuple[str, ...] = ()
    """Where shards go, in turn; none: beside all else, in the cache."""

    def __post_init__(self) -> None:
        if self.pairs is not None and self.pairs < 1:
            raise UserError(f"pairs: expected at least 1, found {self.pairs}")
        if self.directories and self.pairs is None:
            raise UserError("pairs: shards in directories of their own need a size; set it, say to 50000000")


@dataclass(frozen=True)
class DataConfig:
    """The corpora of a run."""

    train: tuple[SourceConfig, ...]
    valid: tuple[SourceConfig, ...] = ()
    test: tuple[SourceConfig, ...] = ()
    src_lang: str = "src"
    tgt_lang: str = "tgt"
    temperature: float = 1.0
    """Of the mixture of training corpora: above 1, small ones are drawn more often than their size says."""
    valid_size: int = 1000
    """Pairs that are split off from `train` where there is no `valid`; never more than a tenth of it."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    shards: ShardConfig = field(default_factory=ShardConfig)
    imported: str | None = None
    """The directory that a model was imported from. Such a run has no corpora, and is not trained itself."""
    turns: int | None = field(default=None, metadata=LEFT_OUT)
    """The `turns` of every corpus."""
    language_pieces: LanguagePieces = field(default="target", metadata=LEFT_OUT)
    """In a run of several languages: what the model is told before a source, the target language or both."""

    context: ContextConfig | None = field(default=None, metadata=LEFT_OUT)
    """Sentences before it that each sentence is learnt and translated with; None: none."""

    def __post_init__(self) -> None:
        if self.turns is not None:
            for name in ("train", "valid", "test"):
                own = tuple(replace(source, turns=self.turns) for source in getattr(self, name))
                object.__setattr__(self, name, own)
        if not self.train and self.imported is None:
            raise UserError("train: expected at least one corpus, found none")
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise UserError(f"temperature: expected a number above 0, found {self.temperature}")
        for name in ("valid", "test"):
            for number, source in enumerate(getattr(self, name)):
                if source.alignment is not None:
                    raise UserError(
                        f"{name}[{number}].alignment: only training learns from word alignments, found "
                        f"'{source.alignment}'; leave it out"
                    )
        if self.valid_size < 0:
            raise UserError(f"valid_size: expected 0 or more, found {self.valid_size}")
        self._check_languages()
        if self.context is not None and self.directions is not None and not self.valid:
            raise UserError("valid: context and several languages in one run need a validation set; name one")
        if self.context is not None and self.text:
            raise UserError("context: it is for pairs, and train is text, which is read in its order anyway")
        for name in ("train", "valid", "test"):
            for number, source in enumerate(getattr(self, name)):
                if (source.format == "text") != self.text:
                    raise UserError(
                        f"{name}[{number}].format: text and pairs do not go together, found "
                        f"'{source.format}' beside '{self.train[0].format}'; make two runs"
                    )

    def _check_languages(self) -> None:
        directions = self.directions
        for name in ("train", "valid", "test"):
            for number, source in enumerate(getattr(self, name)):
                where = f"{name}[{number}].src_lang"
                if (source.src_lang is None) != (directions is None):
                    raise UserError(f"{where}: either all corpora name their languages, or none does")
                if directions is None or source.src_lang is None:
                    continue
                own = self.languages_of(source)
                if own not in directions.trained and own not in directions.zero_shot:
                    raise UserError(f"{where}: {direction_name(own)} is not learnt; there is {directions}")

    @property
    def directions(self) -> Directions | None:
        """Of a run of several languages; None where it has one direction."""
        own = [self.languages_of(source) for source in self.train if source.src_lang is not None]
        return Directions(tuple(dict.fromkeys(own)), self.language_pieces) if own else None

    @property
    def languages_name(self) -> str:
        """What a run of these languages is called."""
        if self.directions is None:
            return f"{self.src_lang}-{self.tgt_lang}"
        languages = self.directions.languages
        return "-".join(languages) if len(languages) <= _NAMED else f"{len(languages)}-languages"

    def chosen_languages(self, to: str | None, source: str | None, zero_shot: bool = False) -> Languages:
        """The direction that a person means by `--to` and `--from`; the only one where there is one."""
        return chosen_languages(self.directions, (self.src_lang, self.tgt_lang), to, source, zero_shot)

    def languages_of(self, source: SourceConfig) -> Languages:
        """The languages of a corpus: its own, else those of the run."""
        return source.src_lang or self.src_lang, source.tgt_lang or self.tgt_lang

    @property
    def text(self) -> bool:
        """Text in one language, not pairs."""
        return bool(self.train) and self.train[0].format == "text"

    @property
    def cleaning(self) -> CleanConfig:
        """Of text only empty lines are left out: it is read in its order, and blocks have no long lines."""
        return CleanConfig(_LONGEST_LINE, math.inf, drop_duplicates=False) if self.text else self.clean
