"""A small made-up language and English beside it: enough grammar to make translation more than a dictionary.

    the old cat sees a garden house   →   la kato oldo un gardodomo vidas

Adjectives follow their noun and agree with it, verbs come last, two nouns become one word, and a few verbs
have two translations, of which one is drawn: no model can be certain there.
"""

from random import Random

NOUNS = {
    "cat": "kato", "dog": "hundo", "house": "domo", "garden": "gardo", "bird": "birda", "tree": "arba",
    "horse": "kavalo", "river": "rivera", "book": "libro", "table": "tabla", "teacher": "tichero",
    "friend": "amika", "city": "urba", "door": "porto", "boat": "naveto", "song": "kanta", "king": "rego",
    "queen": "rega", "forest": "silvo", "window": "fenestra",
}  # fmt: skip
"""Those that end in -o take adjectives in -o, the others in -a."""
ADJECTIVES = {
    "old": "old", "new": "nov", "red": "rus", "blue": "blav", "small": "pikol", "large": "grand",
    "happy": "felic", "quiet": "kalm", "quick": "rapid", "dark": "nigr",
}  # fmt: skip
VERBS = {
    "sees": ("vidas", "miras"), "hears": ("audas",), "likes": ("amas", "gustas"), "finds": ("trovas",),
    "paints": ("pintas",), "follows": ("segas", "kuras"), "knows": ("konas",), "carries": ("portas",),
}  # fmt: skip
SECOND = 0.3
"""How often a verb with two translations has the second one."""
LINKS = {"and": "e", "because": "kar", "while": "dum"}
DETERMINERS = {"the": "la", "a": "un"}
_WORDS_OF_A_CLAUSE = 6


def sentence_pair(random: Random, shortest: int, longest: int) -> tuple[str, str]:
    """One clause or more, of about so many words on the English side."""
    low, high = (max(1, words // _WORDS_OF_A_CLAUSE) for words in (shortest, longest))
    source, target = _clause(random)
    for _ in range(random.randint(low, high) - 1):
        link = random.choice(list(LINKS))
        more_source, more_target = _clause(random)
        source += [link, *more_source]
        target += [LINKS[link], *more_target]
    return " ".join(source), " ".join(target)


def judged_sentence(random: Random) -> tuple[str, str]:
    """A sentence of the made-up language in which adjectives agree with their nouns, or one does not."""
    endings = {"o": "a", "a": "o"}
    while True:
        words = _clause(random)[1]
        places = [place for place, word in enumerate(words) if word[:-1] in ADJECTIVES.values()]
        if places:
            break
    if random.random() < 0.5:
        return " ".join(words), "right"
    place = random.choice(places)
    words[place] = words[place][:-1] + endings[words[place][-1]]
    return " ".join(words), "wrong"


def _clause(random: Random) -> tuple[list[str], list[str]]:
    verb = random.choice(list(VERBS))
    words = VERBS[verb]
    said = words[1] if len(words) > 1 and random.random() < SECOND else words[0]
    (subject, who), (thing, what) = _noun_phrase(random), _noun_phrase(random)
    return [*subject, verb, *thing], [*who, *what, said]


def _noun_phrase(random: Random) -> tuple[list[str], list[str]]:
    determiner, noun = random.choice(list(DETERMINERS)), random.choice(list(NOUNS))
    source, word = [noun], NOUNS[noun]
    if random.random() < 0.25:
        first = random.choice(list(NOUNS))
        source, word = [first, noun], NOUNS[first] + word
    target = [DETERMINERS[determiner], word]
    if random.random() < 0.5:
        adjective = random.choice(list(ADJECTIVES))
        source, target = [adjective, *source], [*target, ADJECTIVES[adjective] + word[-1]]
    return [determiner, *source], target
