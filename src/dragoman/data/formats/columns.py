"""Which two columns (or fields) of a table are the source and the target."""

from collections.abc import Sequence

from dragoman.errors import UserError

_SIDES = (("src", "tgt"), ("source", "target"))
# ISO 639-1: what a header of language codes is made of.
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee
el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io
is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn
mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo
wa wo xh yi yo za zh zu
"""
_LANGUAGES = frozenset(_CODES.split())


def is_language(name: str) -> bool:
    """Whether `name` looks like a language code: de, pt-BR, zh_Hans."""
    code, _, rest = name.replace("_", "-").partition("-")
    return code.lower() in _LANGUAGES and (not rest or (rest.isalnum() and 2 <= len(rest) <= 4))


def find_sides(names: Sequence[str], src_lang: str, tgt_lang: str) -> tuple[int, int] | None:
    """The positions of the two sides among `names`, or None where the names do not tell.

    Looked for in turn: the languages of the run, src/tgt, source/target, and last a row of nothing but
    language codes, of which the first two count.
    """
    folded = [name.strip().casefold() for name in names]
    for src, tgt in ((src_lang.casefold(), tgt_lang.casefold()), *_SIDES):
        if src in folded and tgt in folded:
            return folded.index(src), folded.index(tgt)
    if len(folded) >= 2 and len(set(folded)) == len(folded) and all(map(is_language, folded)):
        return 0, 1
    return None


def find_named(names: Sequence[str], src: str | None, tgt: str | None, where: str) -> tuple[int, int]:
    """The positions of the columns that the configuration names."""
    if src is None or tgt is None:
        raise UserError(f"{where}: name both columns, src and tgt, or neither")
    return _position(names, src, where), _position(names, tgt, where)


def _position(names: Sequence[str], wanted: str, where: str) -> int:
    stripped = [name.strip() for name in names]
    if wanted in stripped:
        return stripped.index(wanted)
    if is_number(wanted) and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    raise UserError(f"{where}: there is no column '{wanted}'; there are {', '.join(map(repr, stripped))}")


def is_number(name: str | None) -> bool:
    """Whether a column is given by its number; such a table need not have a header."""
    return name is not None and name.isascii() and name.isdigit()
