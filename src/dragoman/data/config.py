"""The data and how they are cleaned: the `data` part of a run's configuration."""

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
    *("conll", "squad", "lines", "dialogue", "subtitles"),
)

SUSPECTS = (
    *("language", "swapped", "script", "misaligned"),
    *("digits", "address", "length", "near_duplicate"),
)
"""Kinds of suspicious pairs. They are reported, and dropped if `drop_suspects` names them."""
_NAMED = 6
"""Largest number of languages that the name of a run lists."""
_LONGEST_LINE = (1 << 31) - 1


@dataclass(frozen=True)
class SourceConfig:
    """One corpus: two plain files (source and target), one file with both sides, or one file of monolingual
    text."""

    files: tuple[str, ...]
    format: str = "auto"
    weight: float = 1.0
    """How often each pair is used per epoch: 2 means twice, 0.5 every second pair."""
    src: str | None = None
    """Column or field of the source side, or its language in a translation memory. A number counts columns
    from 1. None: found by its name."""
    tgt: str | None = None
    alignment: str | None = None
    """File with a line such as `0-0 1-2` for each pair: the word alignments for guided alignment."""
    src_lang: str | None = field(default=None, metadata=LEFT_OUT)
    """Source language of this corpus in a multilingual run, where every corpus names both languages."""
    tgt_lang: str | None = field(default=None, metadata=LEFT_OUT)
    turns: int = field(default=3, metadata=LEFT_OUT)
    """Number of dialogue turns before a reply that form its source."""
    document: str | None = field(default=None, metadata=LEFT_OUT)
    """Column or field with the document name of each row, for `data.context`. None: found by its name."""

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
    """Which pairs training leaves out. Empty pairs are always left out, and both sides are dropped
    together."""

    max_length: int = 256
    """Largest number of tokens per side."""
    max_ratio: float = 9.0
    """Largest ratio of the longer to the shorter side, in tokens. Only checked if the longer side has more
    than 12."""
    drop_duplicates: bool = True
    drop_copies: bool = False
    """Whether to drop pairs whose target equals the source, which are untranslated."""
    drop_suspects: tuple[str, ...] = ()
    """Kinds of suspicious pairs to drop. `all`: every kind."""
    cut_source: int | None = field(default=None, metadata=LEFT_OUT)
    """Longer sources are cut to this number of tokens, in training and translation. None: sources are not
    cut."""

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
        """The names of the kinds that are dropped."""
        return SUSPECTS if "all" in self.drop_suspects else self.drop_suspects


@dataclass(frozen=True)
class ShardConfig:
    """How the prepared training data are stored on disk. It does not affect what is learned, or the order."""

    pairs: int | None = None
    """Number of pairs per shard. None: the data are not sharded."""
    directories: tuple[str, ...] = ()
    """Directories for the shards, used in turn. Empty: the cache."""

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
    """Temperature of the mixture of training corpora. Above 1, small corpora are drawn more often than their
    size implies."""
    valid_size: int = 1000
    """Number of pairs held out from `train` if `valid` is empty; at most a tenth of `train`."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    shards: ShardConfig = field(default_factory=ShardConfig)
    imported: str | None = None
    """The directory that the model was imported from. Such a run has no corpora and is not trained itself."""
    turns: int | None = field(default=None, metadata=LEFT_OUT)
    """Sets `turns` of every corpus."""
    language_pieces: LanguagePieces = field(default="target", metadata=LEFT_OUT)
    """Control pieces before a source in a multilingual run: the target language, or both languages."""

    context: ContextConfig | None = field(default=None, metadata=LEFT_OUT)
    """The preceding sentences that each sentence is trained and translated with. None: no context."""

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
        """The directions of a multilingual run. None for a run with one direction."""
        own = [self.languages_of(source) for source in self.train if source.src_lang is not None]
        return Directions(tuple(dict.fromkeys(own)), self.language_pieces) if own else None

    @property
    def languages_name(self) -> str:
        """The language part of a run's name."""
        if self.directions is None:
            return f"{self.src_lang}-{self.tgt_lang}"
        languages = self.directions.languages
        return "-".join(languages) if len(languages) <= _NAMED else f"{len(languages)}-languages"

    def chosen_languages(self, to: str | None, source: str | None, zero_shot: bool = False) -> Languages:
        """The direction that `--to` and `--from` select, or the only one there is."""
        return chosen_languages(self.directions, (self.src_lang, self.tgt_lang), to, source, zero_shot)

    def languages_of(self, source: SourceConfig) -> Languages:
        """The languages of a corpus: its own, or else those of the run."""
        return source.src_lang or self.src_lang, source.tgt_lang or self.tgt_lang

    @property
    def text(self) -> bool:
        """Whether the corpora are monolingual text, not pairs."""
        return bool(self.train) and self.train[0].format == "text"

    @property
    def cleaning(self) -> CleanConfig:
        """The cleaning in effect. Text only loses its empty lines: it is read in order, and blocks have a
        fixed length."""
        return CleanConfig(_LONGEST_LINE, math.inf, drop_duplicates=False) if self.text else self.clean
