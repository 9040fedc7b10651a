"""A translator that runs an exported model with CTranslate2, on a CPU and without torch.

It has the surface of `decode/translate.Translator`, our tokenization, our length limits and our scores:

    text ─ ids ─▶ beam search by CTranslate2 ─▶ `beam` ended hypotheses ─ Σ log p / |y|^α ─▶ the n best
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.decode.hypothesis import Hypothesis
from dragoman.decode.render import EMPTY, hypothesis_of, refuse_string
from dragoman.engines.manifest import Export, read_export
from dragoman.engines.search import Engine, Found, Ids, refuse_unsupported
from dragoman.errors import UserError
from dragoman.text.tokenizer import EOS_ID, Tokenizer

DEFAULT_BATCH_TOKENS = 1024
_PER_CALL = 1024
"""Sentences of similar length that are searched in one call, with the greatest of their length limits."""
Progress = Callable[[int, int], None]


class Translator:
    """An exported model with its tokenizers. `workers` batches run at once, each on `threads` cores."""

    default_batch_tokens = DEFAULT_BATCH_TOKENS

    def __init__(
        self,
        directory: Path,
        export: Export,
        workers: int | None = None,
        threads: int = 1,
        shortlist: bool = True,
    ) -> None:
        tokenizers = [Tokenizer.load(directory / name) for name in export.tokenizers]
        self.src_tokenizer, self.tgt_tokenizer = tokenizers[0], tokenizers[-1]
        self.search, self.positions = export.search, export.positions
        self.languages = export.src_lang, export.tgt_lang
        use_shortlist = export.shortlist and shortlist
        self.engine = Engine(directory, export.positions, use_shortlist, workers, threads)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        workers: int | None = None,
        threads: int = 1,
        shortlist: bool = True,
    ) -> "Translator":
        """Check every file of an export and load it. `shortlist=False` leaves its shortlist aside."""
        directory = Path(directory)
        return cls(directory, read_export(directory), workers, threads, shortlist)

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[str]:
        """The best translation of each text. Quicker than `hypotheses`: no token is scored on its own."""
        refuse_string(texts)
        found = self._found(self._encode(texts), search or self.search, batch_tokens)
        return [self.tgt_tokenizer.decode(best[0].tokens) if best else "" for best in found]

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        progress: Progress | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with the scores of all their tokens."""
        refuse_string(texts)
        settings, sources = search or self.search, self._encode(texts)
        found = self._found(sources, settings, batch_tokens, progress)
        pairs = [(src or (), one.tokens) for src, best in zip(sources, found, strict=True) for one in best]
        scores = iter(self.engine.token_scores(pairs, batch_tokens))
        return [
            [self._hypothesis(one, next(scores), settings) for one in best] if best else [EMPTY]
            for best in found
        ]

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        """How probable the model finds the given translations, token by token."""
        settings = self.search if alpha is None else replace(self.search, alpha=alpha)
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        self._refuse_long(map(len, sources), "source")
        self._refuse_long(map(len, targets), "target")
        ids = [(src, tuple(tgt)) for src, tgt in zip(sources, targets, strict=True)]
        scored = zip(ids, self.engine.token_scores(ids, batch_tokens), strict=True)
        return [self._hypothesis(Found(tgt, 0.0, cut=False), own, settings) for (_, tgt), own in scored]

    def _encode(self, texts: Sequence[str]) -> list[Ids | None]:
        """The ids of each text; None where it is blank."""
        sources = self.src_tokenizer.encode_batch(texts)
        self._refuse_long(map(len, sources), "text")
        return [ids if text.strip() else None for text, ids in zip(texts, sources, strict=True)]

    def _found(
        self,
        sources: Sequence[Ids | None],
        settings: SearchConfig,
        batch_tokens: int,
        progress: Progress | None = None,
    ) -> list[list[Found]]:
        """The n best of each source; nothing for one that is blank."""
        refuse_unsupported(settings)
        results: list[list[Found]] = [[] for _ in sources]
        asked = [(index, ids) for index, ids in enumerate(sources) if ids is not None]
        asked.sort(key=lambda one: len(one[1]), reverse=True)
        done = len(sources) - len(asked)
        for start in range(0, len(asked), _PER_CALL):
            chosen = asked[start : start + _PER_CALL]
            found = self.engine.search([ids for _, ids in chosen], settings, batch_tokens)
            for (index, _), hypotheses in zip(chosen, found, strict=True):
                results[index] = hypotheses
            done += len(chosen)
            if progress:
                progress(done, len(sources))
        return results

    def _refuse_long(self, lengths: Iterable[int], what: str) -> None:
        if self.positions is None:
            return
        for number, length in enumerate(lengths, 1):
            if length >= self.positions:
                raise UserError(
                    f"{what} {number}: {length + 1:,} tokens with </s> are more than the {self.positions:,} "
                    "positions of this export; split it, or export with more --positions"
                )

    def _hypothesis(self, found: Found, scores: tuple[float, ...], settings: SearchConfig) -> Hypothesis:
        reason = "length" if found.cut else "stop"
        return hypothesis_of(Ended((*found.tokens, EOS_ID), scores, reason), self.tgt_tokenizer, settings)


def open_export(directory: Path, which: str = "best", device: str = "auto") -> Translator:
    """An export as if it were a run. It holds one checkpoint, and it runs on the CPU."""
    if which != "best":
        raise UserError(f"{directory}: this is an export, which holds one checkpoint; there is no '{which}'")
    if device not in ("auto", "cpu"):
        raise UserError(f"{directory}: this is an export, which runs on the CPU, not on '{device}'")
    return Translator.open(directory)
