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
"""Nouns. Nouns ending in -o take adjectives in -o, the others in -a."""
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
    """One or more clauses, with a total of about `shortest` to `longest` words on the English side."""
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


# Sentences for single questions


def links_of(source: str) -> set[tuple[int, int]]:
    """Which word of a source became which word of its translation, both counted from 0."""
    links: set[tuple[int, int]] = set()
    begin = place = 0
    words = source.split()
    ends = [*(index for index, word in enumerate(words) if word in LINKS), len(words)]
    for end in ends:
        verb = next(index for index in range(begin, end) if words[index] in VERBS)
        for first, last in ((begin, verb), (verb + 1, end)):
            links.add((first, place))
            adjective = words[first + 1] in ADJECTIVES
            links |= {(index, place + 1) for index in range(first + 1 + adjective, last)}
            if adjective:
                links.add((first + 1, place + 2))
            place += 2 + adjective
        links |= {(verb, place)} | ({(end, place + 1)} if end < len(words) else set())
        begin, place = end + 1, place + 2
    return links


def tagged_sentence(random: Random) -> tuple[str, str]:
    """A sentence of the made-up language, and the part of speech of each of its words."""
    words = _clause(random)[1]
    verbs = {word for both in VERBS.values() for word in both}
    tags = [
        "DET" if word in DETERMINERS.values() else "VERB" if word in verbs
        else "ADJ" if word[:-1] in ADJECTIVES.values() else "NOUN"
        for word in words
    ]  # fmt: skip
    return " ".join(words), " ".join(tags)


LIVING = ("cat", "dog", "bird", "horse", "teacher", "friend", "king", "queen")
THINGS = ("house", "garden", "tree", "river", "book", "table", "city", "door", "boat", "forest", "window")
STATES = {
    "tired": "lac",
    "hungry": "fam",
    "asleep": "dorm",
    "wide": "larg",
    "closed": "ferm",
    "broken": "romp",
}
"""Predicate adjectives. The first three describe living beings, the others things."""
IT = 6
"""Index of «it» in a source of `pronoun_pair`."""


def pronoun_pair(random: Random) -> tuple[str, str]:
    """«the dog sees the river because it was tired»: the last word says who «it» is, and the pronoun of the
    translation and its adjective agree with that noun. The two nouns always take different endings."""
    while True:
        nouns = [random.choice(LIVING), random.choice(THINGS)]
        if NOUNS[nouns[0]][-1] != NOUNS[nouns[1]][-1]:
            break
    who = random.randrange(2)
    state = list(STATES)[3 * who + random.randrange(3)]
    ending = NOUNS[nouns[who]][-1]
    if random.random() < 0.5:
        nouns.reverse()
    verb = random.choice(list(VERBS))
    source = f"the {nouns[0]} {verb} the {nouns[1]} because it was {state}"
    target = f"la {NOUNS[nouns[0]]} la {NOUNS[nouns[1]]} {VERBS[verb][0]} kar {PRONOUNS[ending]}"
    return source, f"{target} {STATES[state]}{ending} estas"


PRONOUNS = {"o": "il", "a": "el"}


def referent(source: str) -> tuple[int, int]:
    """Places of the noun that «it» stands for, and of the other one."""
    words = source.split()
    living = list(STATES).index(words[-1]) < 3
    first, second = 1, 4
    return (first, second) if (words[first] in LIVING) == living else (second, first)


PEOPLE = {"engineer": 0.9, "doctor": 0.75, "baker": 0.6, "writer": 0.4, "teacher": 0.25, "nurse": 0.1}
"""How often the made-up corpus says «he» of them. English here has one pronoun for both, «ze»."""
SAID = {"says": "diras", "thinks": "pensas", "knows": "konas", "hopes": "esperas"}
DAYS = {"today": "hodi", "now": "nun", "often": "oft", "again": "denov", "here": "tie", "still": "ankor"}


def gendered_pair(random: Random) -> tuple[str, str]:
    """«the nurse says that ze was tired today»: nothing in the source says he or she."""
    person, verb = random.choice(list(PEOPLE)), random.choice(list(SAID))
    adjective, day = random.choice(list(ADJECTIVES)), random.choice(list(DAYS))
    pronoun = PRONOUNS["o" if random.random() < PEOPLE[person] else "a"]
    source = f"the {person} {verb} that ze was {adjective} {day}"
    return source, f"la {person}i {SAID[verb]} ke {pronoun} {DAYS[day]} {ADJECTIVES[adjective]}e estas"
