"""More tasks whose pairs follow from a rule: codes, formats, formulas; `autopilot_made.pairs` makes them.

No choice of the autopilot was tuned on them before they were planned and measured for the first time.
"""

import base64
from collections.abc import Callable
from itertools import groupby
from random import Random

from autopilot_numbers import NUMBER_RULES

Pair = tuple[str, str]
_MORSE = (
    *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--"),
    *("-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--.."),
)
_CODONS = dict(
    zip(
        (a + b + c for a in "TCAG" for b in "TCAG" for c in "TCAG"),
        "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG",
        strict=True,
    )
)
_NAMES = ("Anna", "Bo", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hanna", "Ivo", "Jana", "Kofi", "Lena")
_CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Prague", "Kyoto", "New York", "Porto", "Quito", "Riga")
_PIECES = {"K": "king", "Q": "queen", "R": "rook", "B": "bishop", "N": "knight"}
_FUNCTIONS = ("sin", "cos", "log", "exp")


def _word(dice: Random, low: int = 3, high: int = 9) -> str:
    """A made-up word of syllables."""
    syllables = (
        dice.choice("bdfgklmnprst") + dice.choice("aeiou") for _ in range(dice.randint(low, high) // 2 + 1)
    )
    return "".join(syllables) + dice.choice(("", "n", "s", "r"))


def reversed_letters(dice: Random) -> Pair:
    text = _word(dice, 3, 12)
    return text, text[::-1]


def sorted_letters(dice: Random) -> Pair:
    text = _word(dice, 3, 12)
    return text, "".join(sorted(text))


def reversed_words(dice: Random) -> Pair:
    words = [_word(dice, 2, 5) for _ in range(dice.randint(3, 9))]
    return " ".join(words), " ".join(words[::-1])


def without_repeats(dice: Random) -> Pair:
    few = [_word(dice, 2, 5) for _ in range(4)]
    words = [dice.choice(few) for _ in range(dice.randint(4, 10))]
    return " ".join(words), " ".join(word for word, _ in groupby(words))


def run_lengths(dice: Random) -> Pair:
    text = "".join(dice.choice("abcd") * dice.randint(1, 7) for _ in range(dice.randint(2, 6)))
    return text, "".join(f"{letter}{len(list(group))}" for letter, group in groupby(text))


def pig_latin(dice: Random) -> Pair:
    words = [
        _word(dice, 2, 6) if dice.random() < 0.7 else _word(dice, 2, 6)[1:] for _ in range(dice.randint(2, 6))
    ]
    return " ".join(words), " ".join(
        f"{word}way" if word[0] in "aeiou" else f"{word[1:]}{word[0]}ay" for word in words
    )


def caesar(dice: Random) -> Pair:
    words = " ".join(_word(dice, 2, 6) for _ in range(dice.randint(2, 6)))
    return words, "".join(chr((ord(c) - 94) % 26 + 97) if c.isalpha() else c for c in words)


def morse(dice: Random) -> Pair:
    words = [_word(dice, 2, 5) for _ in range(dice.randint(1, 3))]
    return " ".join(words), " / ".join(
        " ".join(_MORSE[ord(letter) - ord("a")] for letter in word) for word in words
    )


def base64_text(dice: Random) -> Pair:
    text = " ".join(_word(dice, 2, 6) for _ in range(dice.randint(1, 3)))
    return base64.b64encode(text.encode()).decode(), text


def hexadecimal(dice: Random) -> Pair:
    text = _word(dice, 3, 8)
    return text, " ".join(f"{ord(letter):02x}" for letter in text)


def dna(dice: Random) -> Pair:
    codons = [dice.choice(list(_CODONS)) for _ in range(dice.randint(10, 60))]
    return "".join(codons), "".join(_CODONS[codon] for codon in codons)


def long_lines(dice: Random) -> Pair:
    """Records of about a thousand characters; the target is the one field that was asked for."""
    keys = [_word(dice, 3, 5) for _ in range(60)]
    values = [f"{_word(dice, 3, 6)}-{dice.randrange(1000)}" for _ in keys]
    asked = dice.randrange(60)
    record = "; ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
    return f"{keys[asked]} of {record}", values[asked]


def syllables(dice: Random) -> Pair:
    parts = [
        dice.choice(("", "b", "st", "tr", "k", "m", "pl"))
        + dice.choice("aeiou")
        + dice.choice(("", "", "n", "r", "l"))
        for _ in range(dice.randint(1, 5))
    ]
    return "".join(parts), "-".join(parts)


def moves(dice: Random) -> Pair:
    piece = dice.choice([*_PIECES, ""])
    square = f"{dice.choice('abcdefgh')}{dice.randint(1, 8)}"
    takes, check = dice.random() < 0.3, dice.random() < 0.2
    origin = dice.choice("abcdefgh") if takes and not piece else ""
    written = f"{piece}{origin}{'x' if takes else ''}{square}{'+' if check else ''}"
    verb = "takes on" if takes else "moves to"
    mover = _PIECES.get(piece) or (f"pawn from the {origin} file" if origin else "pawn")
    return written, f"the {mover} {verb} {square}{' and gives check' if check else ''}"


def regexes(dice: Random) -> Pair:
    parts, told = [], []
    kinds = (
        ("digit", r"\d"),
        ("letter", "[a-z]"),
        ("capital letter", "[A-Z]"),
        ("space", r"\s"),
        ("vowel", "[aeiou]"),
    )
    for _ in range(dice.randint(1, 4)):
        name, pattern = dice.choice(kinds)
        least = dice.randint(1, 6)
        form, mark = dice.choice(
            (("one {n}", ""), ("{k} {n}s", "{{{k}}}"), ("at least one {n}", "+"), ("any number of {n}s", "*"))
        )
        if "{k}" in form and least == 1:
            least = 2
        told.append(form.format(n=name, k=least))
        parts.append(pattern + mark.format(k=least))
    return "a line of " + ", then ".join(told), f"^{''.join(parts)}$"


def _term(dice: Random, depth: int) -> tuple[str, str]:
    """A formula in words and in LaTeX."""
    if depth == 0 or dice.random() < 0.15:
        leaf = dice.choice(("x", "y", "z", "a", "b", str(dice.randrange(2, 20))))
        return leaf, leaf
    left, right = _term(dice, depth - 1), _term(dice, depth - 1)
    forms = (
        (f"{left[0]} plus {right[0]}", f"{left[1]} + {right[1]}"),
        (f"the fraction of {left[0]} over {right[0]} end", rf"\frac{{{left[1]}}}{{{right[1]}}}"),
        (f"the root of {left[0]} end", rf"\sqrt{{{left[1]}}}"),
        (f"{dice.choice('xyz')} to the {right[0]} end", rf"x^{{{right[1]}}}"),
        (f"{(name := dice.choice(_FUNCTIONS))} of {left[0]} end", rf"\{name}\left({left[1]}\right)"),
    )
    number = dice.randrange(len(forms))
    text, formula = forms[number]
    return text, formula.replace("x^", f"{text[0]}^", 1) if number == 3 else formula


def latex(dice: Random) -> Pair:
    return _term(dice, 3)


def json_records(dice: Random) -> Pair:
    name, city, age = dice.choice(_NAMES), dice.choice(_CITIES), dice.randrange(1, 100)
    surname = _word(dice, 3, 7).capitalize()
    text, fields = dice.choice(
        (
            (
                f"{name} {surname} is {age} and lives in {city}",
                (("name", f"{name} {surname}"), ("age", age), ("city", city)),
            ),
            (f"{name} {surname} from {city}", (("name", f"{name} {surname}"), ("city", city))),
            (
                f"a person of {age} years called {name} {surname}",
                (("name", f"{name} {surname}"), ("age", age)),
            ),
        )
    )
    shown = (
        f'"{key}": {value}' if isinstance(value, int) else f'"{key}": "{value}"' for key, value in fields
    )
    return text, f"{{{', '.join(shown)}}}"


def records_to_sentences(dice: Random) -> Pair:
    name, city, age = (
        f"{dice.choice(_NAMES)} {_word(dice, 3, 7).capitalize()}",
        dice.choice(_CITIES),
        dice.randrange(1, 100),
    )
    job = dice.choice(("doctor", "teacher", "pilot", "nurse", "baker"))
    source = f"name[{name}], age[{age}], city[{city}], job[{job}]"
    return source, f"{name} is a {job} of {age} years who lives in {city}."


def markdown(dice: Random) -> Pair:
    kinds = (
        (("**", "**"), ("<b>", "</b>")),
        (("*", "*"), ("<i>", "</i>")),
        (("`", "`"), ("<code>", "</code>")),
    )
    src, tgt = [], []
    for _ in range(dice.randint(3, 8)):
        word = _word(dice, 2, 6)
        before, after = dice.choice(kinds) if dice.random() < 0.4 else (("", ""), ("", ""))
        src.append(f"{before[0]}{word}{before[1]}")
        tgt.append(f"{after[0]}{word}{after[1]}")
    return " ".join(src), f"<p>{' '.join(tgt)}</p>"


UNSEEN_RULES: dict[str, tuple[Callable[[Random], Pair], int]] = {
    **NUMBER_RULES,
    "reversed letters 10k": (reversed_letters, 10_000),
    "sorted letters 10k": (sorted_letters, 10_000),
    "reversed words 10k": (reversed_words, 10_000),
    "without repeats 5k": (without_repeats, 5000),
    "run lengths 5k": (run_lengths, 5000),
    "pig latin 5k": (pig_latin, 5000),
    "caesar 3k": (caesar, 3000),
    "morse 1k": (morse, 1000),
    "base64 10k": (base64_text, 10_000),
    "hexadecimal 1k": (hexadecimal, 1000),
    "DNA 5k": (dna, 5000),
    "long lines 3k": (long_lines, 3000),
    "syllables 1k": (syllables, 1000),
    "moves 600": (moves, 600),
    "regexes 3k": (regexes, 3000),
    "LaTeX 10k": (latex, 10_000),
    "JSON 2k": (json_records, 2000),
    "records 2k": (records_to_sentences, 2000),
    "markdown 5k": (markdown, 5000),
}
"""With the number of pairs for training."""
