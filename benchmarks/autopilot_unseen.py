"""More tasks whose pairs follow from a rule: numbers, codes, formats, formulas. No choice of the autopilot was tuned on
them before they were measured for the first time. `pairs` makes them as `autopilot_made` does."""

import base64
from collections.abc import Callable
from itertools import groupby
from random import Random

Pair = tuple[str, str]
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_MORSE = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
        ],
        strict=True,
    )
)
_CODONS = dict(
    zip(
        (a + b + c for a in "TCAG" for b in "TCAG" for c in "TCAG"),
        "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG",
        strict=True,
    )
)
_OWN_DIGITS = ("nul", "ka", "po", "tir", "mel", "sun", "vax", "lor", "den", "hib")
_CHINESE = "零一二三四五六七八九"
_NAMES = ("Anna", "Bo", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hanna", "Ivo", "Jana", "Kofi", "Lena")
_CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Prague", "Kyoto", "New York", "Porto", "Quito", "Riga")
_UNITS = (
    *(("km", "m", 1000), ("m", "cm", 100), ("kg", "g", 1000), ("t", "kg", 1000), ("h", "min", 60)),
    *(("min", "s", 60), ("l", "ml", 1000), ("ft", "in", 12)),
)
_PIECES = {"K": "king", "Q": "queen", "R": "rook", "B": "bishop", "N": "knight"}
_FUNCTIONS = ("sin", "cos", "log", "exp")


def _word(dice: Random, low: int = 3, high: int = 9) -> str:
    """A made-up word of syllables."""
    syllables = (
        dice.choice("bdfgklmnprst") + dice.choice("aeiou") for _ in range(dice.randint(low, high) // 2 + 1)
    )
    return "".join(syllables) + dice.choice(("", "n", "s", "r"))


def roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def roman_to_number(dice: Random) -> Pair:
    number = dice.randrange(1, 4000)
    return roman(number), str(number)


def number_to_roman(dice: Random) -> Pair:
    return roman_to_number(dice)[::-1]


def own_number_words(dice: Random) -> Pair:
    """A language that counts in twenties, small part first."""
    number = dice.randrange(8000)

    def told(n: int) -> str:
        if n < 10:
            return _OWN_DIGITS[n]
        if n < 20:
            return f"teg{_OWN_DIGITS[n - 10]}"
        unit, name = (20, "vig") if n < 400 else (400, "mor")
        rest = f"{told(n % unit)} ti " if n % unit else ""
        return f"{rest}{told(n // unit)}{name}"

    return str(number), told(number)


def chinese_number(dice: Random) -> Pair:
    number = dice.randrange(10_000)
    units = ("", "十", "百", "千")
    digits = [int(digit) for digit in str(number)]
    text = "".join(
        _CHINESE[digit] + (units[len(digits) - place - 1] if digit else "")
        for place, digit in enumerate(digits)
    )
    text = "零".join(part for part in text.split("零") if part) or "零"
    return str(number), text


def phones(dice: Random) -> Pair:
    area, number = f"{dice.randrange(20, 1000)}", f"{dice.randrange(100_000, 9_999_999)}"
    form = dice.choice(("0{a} {n}", "(0{a}) {n}", "0{a}/{n}", "+49 {a} {n}", "0049-{a}-{n}"))
    cut = number[:3] + "-" + number[3:]
    return form.format(a=area, n=dice.choice((number, cut, cut.replace("-", " ")))), f"+49-{area}-{number}"


def conversions(dice: Random) -> Pair:
    large, small, factor = dice.choice(_UNITS)
    number = dice.randrange(1, 1000)
    return f"{number} {large} in {small}", f"{number * factor} {small}"


def products(dice: Random) -> Pair:
    a, b = dice.randrange(100), dice.randrange(100)
    return f"{a}*{b}", str(a * b)


def differences(dice: Random) -> Pair:
    a, b = dice.randrange(1000), dice.randrange(1000)
    return f"{a} minus {b}", str(a - b)


def comparisons(dice: Random) -> Pair:
    a = dice.randrange(10_000)
    b = dice.choice((a, dice.randrange(10_000), max(0, a + dice.randrange(-20, 20))))
    return f"{a} ? {b}", "<" if a < b else ">" if a > b else "="


def binary(dice: Random) -> Pair:
    number = dice.randrange(10_000)
    return str(number), f"{number:b}"


def next_numbers(dice: Random) -> Pair:
    start, step, count = dice.randrange(200), dice.randrange(1, 30), dice.randint(3, 6)
    row = [start + step * n for n in range(count + 2)]
    return ", ".join(map(str, row[:count])), ", ".join(map(str, row[count:]))


def truth(dice: Random) -> Pair:
    def formula(depth: int) -> str:
        if depth == 0 or dice.random() < 0.2:
            return dice.choice(("true", "false"))
        kind = dice.choice(("and", "or", "not"))
        if kind == "not":
            return f"not ( {formula(depth - 1)} )"
        return f"( {formula(depth - 1)} {kind} {formula(depth - 1)} )"

    text = formula(3)
    words = {"true": True, "false": False}

    def value(tokens: list[str]) -> bool:
        token = tokens.pop(0)
        if token in words:
            return words[token]
        if token == "not":
            tokens.pop(0)
            inner = value(tokens)
            tokens.pop(0)
            return not inner
        left = value(tokens)
        kind = tokens.pop(0)
        right = value(tokens)
        tokens.pop(0)
        return (left and right) if kind == "and" else (left or right)

    return text, str(value(text.split())).lower()


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
    return " ".join(words), " / ".join(" ".join(_MORSE[letter] for letter in word) for word in words)


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


def clock(dice: Random) -> Pair:
    hour, minute = dice.randrange(1, 13), dice.choice((0, 15, 30, 45, 5, 10, 20, 25, 35, 40, 50, 55))
    half = dice.choice(("am", "pm"))
    shown = hour % 12 + (12 if half == "pm" else 0)
    if minute == 0:
        text = f"{hour} o'clock"
    elif minute <= 30:
        text = {15: "quarter", 30: "half"}.get(minute, f"{minute} minutes") + f" past {hour}"
    else:
        text = {45: "quarter"}.get(minute, f"{60 - minute} minutes") + f" to {hour % 12 + 1}"
    lead = dice.choice(("", "at ", "it is ", "around "))
    return f"{lead}{text} {half}", f"{shown:02}:{minute:02}"


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


def derivatives(dice: Random) -> Pair:
    powers = sorted(dice.sample(range(6), dice.randint(1, 4)), reverse=True)
    terms = [(dice.randint(1, 12), power) for power in powers]

    def shown(rows: list[tuple[int, int]]) -> str:
        texts = [f"{a}" if p == 0 else f"{a}*x" if p == 1 else f"{a}*x^{p}" for a, p in rows]
        return " + ".join(texts) or "0"

    return shown(terms), shown([(a * p, p - 1) for a, p in terms if p])


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


def many_to_one(dice: Random) -> Pair:
    """A written amount in any of many forms."""
    number, cents = dice.randrange(1000), dice.randrange(100)
    form = dice.choice(
        (
            "{n} euros and {c} cents",
            "EUR {n}.{c:02}",
            "{n},{c:02} €",
            "€{n}.{c:02}",
            "{n}.{c:02} euro",
            "{n}€{c:02}",
        )
    )
    return form.format(n=number, c=cents), f"{number}.{cents:02} EUR"


RULES: dict[str, tuple[Callable[[Random], Pair], int]] = {
    "roman to number 2k": (roman_to_number, 2000),
    "number to roman 2k": (number_to_roman, 2000),
    "own number words 4k": (own_number_words, 4000),
    "Chinese numbers 3k": (chinese_number, 3000),
    "phones 2k": (phones, 2000),
    "conversions 3k": (conversions, 3000),
    "products 5k": (products, 5000),
    "differences 10k": (differences, 10_000),
    "comparisons 5k": (comparisons, 5000),
    "binary 3k": (binary, 3000),
    "next numbers 5k": (next_numbers, 5000),
    "truth 2k": (truth, 2000),
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
    "clock 300": (clock, 300),
    "moves 600": (moves, 600),
    "regexes 3k": (regexes, 3000),
    "LaTeX 10k": (latex, 10_000),
    "derivatives 20k": (derivatives, 20_000),
    "JSON 2k": (json_records, 2000),
    "records 2k": (records_to_sentences, 2000),
    "markdown 5k": (markdown, 5000),
    "amounts 2k": (many_to_one, 2000),
}
"""With the number of pairs for training."""
