"""Our tokenizers as the library tokenizers writes them, for whoever has only that library."""

import json
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from dragoman.errors import UserError
from dragoman.text.options import CONTROL_PIECES, EOS_ID
from dragoman.text.published import PublishedTokenizer
from dragoman.text.renumber import added_token, template
from dragoman.text.segment import segment_pattern
from dragoman.text.tokenizer import Tokenizer


def library_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """tokenizer.json: the same ids for every text, and `</s>` after them."""
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.exported()
    config = tokenizer.config
    if config.kind == "byte" or config.word_mark == "end":
        raise UserError(
            f"tokenizer: kind {config.kind} with word_mark {config.word_mark} has no counterpart in "
            "tokenizer.json; kinds bpe, word and char with word_mark start have"
        )
    marked = config.kind != "char"
    pipeline = tokenizers.Tokenizer(tokenizer.library_model())
    pipeline.normalizer = normalizers.Sequence(
        [normalizers.NFC(), *([normalizers.Prepend(" ")] if marked else [])]
    )
    pipeline.pre_tokenizer = pre_tokenizers.Split(Regex(segment_pattern(config)), "isolated")
    plain = [decoders.ByteFallback(), decoders.Fuse()]
    pipeline.decoder = decoders.Sequence([*plain, *([decoders.Strip(" ", 1, 0)] if marked else [])])
    library = json.loads(pipeline.to_str())
    names = tokenizer.pieces(range(tokenizer.size))
    controls = range(len(CONTROL_PIECES) + len(config.specials))
    library["model"]["vocab"] = {names[n]: n for n in controls} | library["model"]["vocab"]
    library["added_tokens"] = [added_token(n, names[n]) for n in controls]
    library["post_processor"] = template([None, names[EOS_ID]], names)
    return library
