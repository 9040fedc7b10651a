"""The options of a tokenizer, and the pieces that every vocabulary begins with."""

from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.errors import UserError

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
CONTROL_PIECES = ("<pad>", "<s>", "</s>")
BYTE_PIECES = tuple(f"<0x{value:02X}>" for value in range(256))

TokenizerKind = Literal["bpe", "word", "char", "byte"]
MarkPlace = Literal["start", "end"]

LARGEST_VOCABULARY = 1_000_000


@dataclass(frozen=True)
class TokenizerConfig:
    """The options of a tokenizer.

    A vocabulary is laid out as: `<pad>`, `<s>`, `</s>`, `specials`, the 256 bytes, the alphabet, then merges
    (kind bpe) or words (kind word). `vocab_size` counts all of them; a small text may fill fewer places.
    """

    kind: TokenizerKind = "bpe"
    vocab_size: int = 8000
    joint: bool = True
    """One vocabulary for source and target."""
    min_frequency: int = 2
    """Rarer characters, merges and words get no piece."""
    word_mark: MarkPlace = "start"
    """The space of a word: before it (▁word) or after it (word▁)."""
    split_punctuation: bool = True
    split_digits: bool = True
    keep_identifiers: bool = False
    """Names of formal languages are words: letters with digits, `_` and single dots among them."""
    dropout: float = 0.0
    """Rate of BPE-dropout on training text (Provilkov et al. 2020)."""
    specials: tuple[str, ...] = ()
    """Further control pieces, such as `<2de>`; no text can become one."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(TokenizerKind):
            raise UserError(
                f"kind: expected one of {', '.join(get_args(TokenizerKind))}, found {self.kind!r}"
            )
        if self.word_mark not in get_args(MarkPlace):
            raise UserError(f"word_mark: expected start or end, found {self.word_mark!r}")
        if not 1 <= self.min_frequency < 1 << 32:
            raise UserError(f"min_frequency: expected at least 1, and below 2^32, found {self.min_frequency}")
        if not 0.0 <= self.dropout <= 1.0:
            raise UserError(f"dropout: expected a rate from 0 to 1, found {self.dropout}")
        if self.dropout and self.kind != "bpe":
            raise UserError(
                f"dropout: {self.dropout} needs kind bpe, but kind is {self.kind}; set dropout to 0"
            )
        self._check_specials()
        self._check_size()

    def _check_specials(self) -> None:
        taken = {*CONTROL_PIECES, *BYTE_PIECES}
        for piece in self.specials:
            inner = piece[1:-1]
            # "<" is never merged with anything, so a piece of this form cannot come out of text.
            well_formed = piece[:1] == "<" and piece[-1:] == ">" and inner and not set(inner) & set("<> ▁")
            if not (well_formed and piece.isprintable()):
                raise UserError(f"specials: {piece!r} must have the form <name>, without spaces")
            if piece in taken:
                raise UserError(f"specials: {piece!r} is in the vocabulary already; choose another name")
            taken.add(piece)

    def _check_size(self) -> None:
        least, mark = len(self.first_pieces), ""
        if self.kind != "byte":
            least, mark = least + 1, " and the space mark"
        if self.vocab_size < least:
            raise UserError(
                f"vocab_size: {self.vocab_size} is too small for {len(self.first_pieces) - 256} control "
                f"pieces, 256 bytes{mark}; use at least {least}"
            )
        if self.vocab_size > LARGEST_VOCABULARY:
            raise UserError(f"vocab_size: {self.vocab_size} is more than the limit of {LARGEST_VOCABULARY}")

    @property
    def first_pieces(self) -> tuple[str, ...]:
        """The pieces that every vocabulary with these options begins with: control pieces, then bytes."""
        return (*CONTROL_PIECES, *self.specials, *BYTE_PIECES)
