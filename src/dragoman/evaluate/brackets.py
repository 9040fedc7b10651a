"""Labelled bracket F1 of trees in brackets, `(S (NP (DT the) (NN cat)) (VP (VBZ sits)))`, by EVALB's rules
(Sekine & Collins, COLLINS.prm).

A bracket is a label and the words that it spans. Tags of single words do not count, nor do the labels TOP, S1
and ROOT; punctuation is no word; of NP-SBJ and NP=2 only NP counts; ADVP and PRT are the same.
EVALB skips a tree with another number of words than its reference, or one that is no tree. Here the brackets
of such a reference count as missed: an output that is no tree is never better than one that is.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import UserError, shown
from dragoman.evaluate.sums import SumMetric

KINDS = {"brackets": "bracket F1", "precision": "precision", "recall": "recall", "trees": "whole trees"}
_TOKEN = re.compile(r"[()]|[^\s()]+")
_UNCOUNTED = frozenset(("TOP", "S1", "ROOT", "-NONE-", ",", ":", "``", "''", ".", ""))
_SAME = {"PRT": "ADVP"}
_FUNCTION = re.compile(r"[-=]")

Bracket = tuple[str, int, int]


class Brackets(SumMetric):
    """F1, precision or recall of brackets, or the share of outputs that are trees over as many words."""

    def __init__(self, kind: str = "brackets") -> None:
        super().__init__()
        self.kind, self.name, self.variant = kind, KINDS[kind], {"rules": "evalb"}

    def numbers(self, hypothesis: str, reference: str) -> list[float]:
        gold = read_tree(reference)
        if gold is None:
            raise UserError(
                f"brackets: the reference {shown(reference)} is no tree in brackets, as (S (NP I) (VP go)); "
                "choose another metric"
            )
        found = read_tree(hypothesis)
        whole = found is not None and len(found.tags) == len(gold.tags)
        wanted = gold.brackets(gold.tags)
        own = found.brackets(gold.tags) if found is not None and whole else Counter[Bracket]()
        return [(wanted & own).total(), wanted.total(), own.total(), whole, 1]

    def score(self, sums: Sequence[float]) -> float:
        matched, wanted, own, whole, trees = sums
        if self.kind == "trees":
            return 100 * whole / trees
        of = {"brackets": (wanted + own) / 2, "precision": own, "recall": wanted}[self.kind]
        return 100 * matched / of if of else 0.0


class Tree:
    """The tags of the words, and the words that every label spans."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.spans: list[Bracket] = []

    def brackets(self, tags: Sequence[str]) -> Counter[Bracket]:
        """What counts, where the words have these tags: those of the reference say what is punctuation."""
        places = [0]
        for tag in tags:
            places.append(places[-1] + (tag not in _UNCOUNTED))
        counted = ((label, places[start], places[end]) for label, start, end in self.spans)
        return Counter(own for own in counted if own[0] not in _UNCOUNTED and own[1] < own[2])


@dataclass
class _Open:
    first: int
    """Number of the word that comes next."""
    label: str | None = None
    words: int = 0
    """Words directly in it."""
    has_brackets: bool = False


def read_tree(text: str) -> Tree | None:
    """None of what is no tree: nothing, unbalanced brackets, or words outside of them."""
    tree = Tree()
    within: list[_Open] = []
    tokens = _TOKEN.findall(text)
    for place, token in enumerate(tokens):
        if token == "(":
            if within:
                within[-1].has_brackets = True
                within[-1].label = within[-1].label or ""
            within.append(_Open(len(tree.tags)))
        elif not within:
            return None
        elif token == ")":
            _close(tree, within.pop())
            if not within and place + 1 < len(tokens):
                return None
        elif within[-1].label is None:
            within[-1].label = token
        else:
            tree.tags.append("word")
            within[-1].words += 1
    return tree if tree.tags and not within else None


def _close(tree: Tree, own: _Open) -> None:
    label = own.label or ""
    if own.words == 1 and not own.has_brackets:
        tree.tags[-1] = label
        return
    plain = label[:1] + _FUNCTION.split(label[1:], maxsplit=1)[0]
    tree.spans.append((_SAME.get(plain, plain), own.first, len(tree.tags)))
