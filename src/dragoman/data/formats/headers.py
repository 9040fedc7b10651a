"""What the names of columns say: which is the source, which the target, which is in what language, and which
holds no text."""

import re
from collections.abc import Sequence

from dragoman.data.formats.language_codes import language_named

_SOURCES = """
src source sourcetext sourcesegment sourcesentence sourcestring srctext original originaltext msgid
quelle quelltext quellsegment quellsatz ausgangstext textesource segmentsource origen textoorigen
textofuente originale testooriginale brontekst text sentence segment satz
"""
_TARGETS = """
tgt trg target targettext targetsegment targetsentence targetstring tgttext translation translated
translatedtext translatedsentence msgstr ziel zieltext zielsegment zielsatz übersetzung cible textecible
segmentcible traduction destino textodestino traducción traduzione tradução doeltekst vertaling ref reference
"""
_PAIRS = """
input-output input-target instruction-output document-summary article-summary article-highlights text-summary
question-answer prompt-completion prompt-response sentence1-sentence2 text1-text2
"""
_KEYS = "id ident nr no num idx index key uuid guid row line lang language locale sprache"
"""Names of columns that tell rows apart, or say something about all of a row. They are never text."""
_OTHERS = """
number date datum time timestamp created changed updated author autor auteur user translator übersetzer
bearbeiter client customer kunde project projekt projet domain comment kommentar commentaire note notes
remark bemerkung context kontext contexte status statut state score quality license url link file datei
path split category kategorie type typ tag tags hash origin numéro langue stand version length
"""
_SIDES = [tuple(pair.split("-")) for pair in _PAIRS.split()]
_SIDE_NAMES = (_SOURCES.split(), _TARGETS.split())
_KNOWN = frozenset(f"{_SOURCES} {_TARGETS} {_KEYS} {_OTHERS}".split())
_ROLES = re.compile(
    r"\b(text|sentence|segment|string|side|source|target|src|tgt|trg|satz|quelle|ziel|phrase|cible)\b",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]+)[)\]]")
_NOT_A_LETTER = re.compile(r"[\W_]+")
_UNNAMED = re.compile(r"unnamed\d*|column\d+|spalte\d+|")
DOCUMENT_NAMES = ("document", "document_id", "doc", "doc_id", "docid")


def named_sides(names: Sequence[str], is_text: Sequence[bool]) -> tuple[int, int] | None:
    """The columns that are called source and target in some way. Where several are, those that hold text
    come first."""
    keys = [_key(name) for name in names]
    for source, target in _SIDES:
        if source in keys and target in keys:
            return keys.index(source), keys.index(target)
    found = []
    for words in _SIDE_NAMES:
        places = [keys.index(word) for word in words if word in keys]
        places.sort(key=lambda place: not is_text[place])
        found += places[:1]
    return (found[0], found[1]) if len(found) == 2 else None


def language_in(name: str) -> str | None:
    """The language in `de`, `German`, `text_de`, `de_sentence`, `DE (target)`, `Satz (Englisch)` and
    `sentence_eng_Latn`."""
    name = name.strip(' "')
    before, bracketed = name.partition("(")[0], _IN_BRACKETS.search(name)
    without = _ROLES.sub(" ", name.replace("_", " ")).strip(" .:-")
    tried = [name, before, without, without.replace(" ", "-"), *([bracketed[1]] if bracketed else [])]
    return next((code for each in tried if (code := language_named(each)) is not None), None)


def is_key(name: str) -> bool:
    """Whether a column of this name is certain to hold no text."""
    key = _key(name)
    return key in _KEYS.split() or _UNNAMED.fullmatch(key) is not None


def are_all_known(names: Sequence[str]) -> bool:
    """Whether every name is a usual one for a column, so that this is a header, whatever it says."""
    usual = [_key(name) in _KNOWN or is_key(name) for name in names]
    return any(usual) and all(
        is_usual or language_in(name) is not None for is_usual, name in zip(usual, names, strict=True)
    )


def _key(name: str) -> str:
    """`Source text`, `source_text` and `SourceText (EN)` as `sourcetext`."""
    return _NOT_A_LETTER.sub("", name.partition("(")[0].casefold())
