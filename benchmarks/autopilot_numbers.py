"""Tasks with numbers, for `autopilot_unseen.py`: formats, units, sums, bases, times."""

from collections.abc import Callable
from random import Random

Pair = tuple[str, str]
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)

_OWN_DIGITS = ("nul", "ka", "po", "tir", "mel", "sun", "vax", "lor", "den", "hib")

_CHINESE = "零一二三四五六七八九"

_UNITS = (
    *(("km", "m", 1000), ("m", "cm", 100), ("kg", "g", 1000), ("t", "kg", 1000), ("h", "min", 60)),
    *(("min", "s", 60), ("l", "ml", 1000), ("ft", "in", 12)),
)


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
    lead = dice.choice(("", "at ", "it is ", "around ", "about ", "by "))
    return f"{lead}{text} {half}", f"{shown:02}:{minute:02}"


def derivatives(dice: Random) -> Pair:
    powers = sorted(dice.sample(range(6), dice.randint(1, 4)), reverse=True)
    terms = [(dice.randint(1, 12), power) for power in powers]

    def shown(rows: list[tuple[int, int]]) -> str:
        texts = [f"{a}" if p == 0 else f"{a}*x" if p == 1 else f"{a}*x^{p}" for a, p in rows]
        return " + ".join(texts) or "0"

    return shown(terms), shown([(a * p, p - 1) for a, p in terms if p])


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


NUMBER_RULES: dict[str, tuple[Callable[[Random], Pair], int]] = {
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
    "clock 300": (clock, 300),
    "derivatives 20k": (derivatives, 20_000),
    "amounts 2k": (many_to_one, 2000),
}
"""With the number of pairs for training."""
