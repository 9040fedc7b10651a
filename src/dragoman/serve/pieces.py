"""Split texts into the sentences that are translated."""

from collections.abc import Collection
from typing import Literal

from dragoman.text.markup import well_formed
from dragoman.text.sentences import split_sentences
from dragoman.text.spans import find

SplitMode = Literal["sentences", "no_lines", "none"]
"""`no_lines`: line breaks are treated as ordinary white space."""


def pieces_of(text: str, split: SplitMode, language: str) -> list[str]:
    if split == "none":
        return [text]
    return split_sentences(" ".join(text.split("\n")) if split == "no_lines" else text, language)


def tags_broken(source: str, target: str) -> bool:
    kinds: Collection[Literal["tag"]] = ("tag",)
    return well_formed(find(source, kinds)) and not well_formed(find(target, kinds))
