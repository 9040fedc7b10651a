"""How long a text may be: attention grows with the square of it."""

from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer

MOST_CHARACTERS = 2000
MOST_PIECES = 256
"""Maximum source length in pieces."""
MOST_WRITTEN = 600


def check_text(text: str, tokenizer: Tokenizer) -> list[int]:
    """The pieces of a text that a model can be asked about."""
    if not text.strip():
        raise UserError("text: it is blank, and no model is asked about it; type a sentence")
    if len(text) > MOST_CHARACTERS:
        raise UserError(f"text: at most {MOST_CHARACTERS} characters, found {len(text)}; take one sentence")
    found = tokenizer.encode(text)
    if len(found) > MOST_PIECES:
        raise UserError(f"text: at most {MOST_PIECES} pieces, found {len(found)}; take one sentence")
    return found
