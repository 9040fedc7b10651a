"""The dates task: held against Babel's own formatter, and searched for texts with two meanings."""

import hashlib
import subprocess
import sys
import unicodedata
from datetime import date, timedelta

import pytest
from babel.dates import format_date, format_skeleton

from dragoman.data import demo_date_formats, demo_dates
from dragoman.errors import UserError

MAY_9 = date(2026, 5, 9)
SAMPLE = [demo_dates.FIRST + timedelta(days=733 * n + n % 7) for n in range(49)]


def written(locale: str, day: date) -> set[str]:
    return {way.write(day) for way in demo_date_formats.ways_of(locale) if day.day in way.days}


@pytest.fixture(scope="module")
def task() -> demo_dates.DateTask:
    return demo_dates.draw_dates(seed=3, train_size=20_000, valid_size=300, test_size=400)


@pytest.mark.parametrize(
    "locale, text",
    [
        ("es", "sábado, 9 de mayo de 2026"),
        ("es", "sábado 9 de mayo de 2026"),
        ("es", "Sábado, 9 de mayo de 2026"),
        ("en", "May 9th, 2026"),
        ("en", "saturday, may 9, 2026"),
        ("en_GB", "9th of May 26"),
        ("en_GB", "09/05/2026"),
        ("de", "Samstag, den 9. Mai 2026"),
        ("de", "9.5.26"),
        ("ru", "9 мая 2026 г."),
        ("ru", "9 май 2026 г."),
        ("pl", "9 maja 2026"),
        ("hu", "2026. május 9."),
        ("he", "9 במאי 2026"),
        ("ar", "السبت 9 مايو 2026"),
        ("ja", "2026年5月9日土曜日"),
        ("ko", "26년 5월 9일"),
        ("vi", "9 tháng 5, 2026"),
    ],
)
def test_known_ways(locale: str, text: str) -> None:
    assert unicodedata.normalize("NFC", text) in written(locale, MAY_9)


def test_the_first_of_the_month_has_its_ordinal() -> None:
    assert "1er mai 2026" in written("fr", date(2026, 5, 1))
    assert not any("2er" in text for text in written("fr", date(2026, 5, 2)))
    assert {"May 1st, 2026", "May 22nd, 2026", "May 13th, 2026", "May 31st, 2026"} <= {
        text for day in (1, 22, 13, 31) for text in written("en", date(2026, 5, day))
    }


def test_month_first_numbers_are_left_out() -> None:
    assert not written("en", date(2026, 5, 22)) & {"5/22/26", "5/22/2026"}


def test_many_languages() -> None:
    assert len({locale.partition("_")[0] for locale in demo_dates.LOCALES}) >= 40
    assert all(len(demo_date_formats.ways_of(locale)) >= 6 for locale in demo_dates.LOCALES)


def test_same_text_as_babel() -> None:
    """The compiled tables against Babel's formatter, for every pattern that comes from the CLDR as it is."""
    compared = 0
    for locale in demo_dates.LOCALES:
        for way in demo_date_formats.ways_of(locale):
            if way.variant != "plain" or (locale == "ru" and way.pattern == "yMEd"):
                continue  # Babel's stand-alone weekdays of Russian depend on what was loaded before
            for day in SAMPLE:
                if way.pattern in ("full", "long", "medium", "short"):
                    expected = format_date(day, way.pattern, locale=locale)
                elif way.pattern in ("yMMMd", "yMMMEd", "yMd", "yMEd"):
                    expected = format_skeleton(way.pattern, day, locale=locale)  # type: ignore[arg-type]
                else:
                    continue
                typed = expected.translate(demo_date_formats._UNTYPED)
                assert way.write(day) == unicodedata.normalize("NFC", typed), (locale, way.name)
                compared += 1
    assert compared > 49 * 4 * len(demo_dates.LOCALES) / 2


def test_no_text_has_two_meanings() -> None:
    """Every way over all days of two years; a two-figure year over every year that looks like a day.

    A year of four figures can be mistaken for nothing else, so two of them stand for all. A year of two
    figures could be taken for a day only from 01 to 31.
    """
    long_years = [day for day in demo_dates.all_days() if day.year in (1987, 2012)]
    short_years = [day for day in demo_dates.all_days() if 2001 <= day.year <= 2031 and day.day % 3 == 0] + [
        date(2000 + year, month, year) for year in range(1, 32) for month in (1, 3, 5, 7, 8, 10, 12)
    ]
    meaning: dict[str, date] = {}
    for locale in demo_dates.LOCALES:
        for way in demo_date_formats.ways_of(locale):
            two_figures = way.write(date(1987, 1, 1)).find("1987") < 0
            for day in short_years if two_figures else long_years:
                if day.day in way.days:
                    text = way.write(day)
                    assert meaning.setdefault(text, day) == day, (text, locale, way.name)


def test_texts_do_not_depend_on_the_order_of_loading() -> None:
    """Babel changes names that a locale inherits when another one is loaded; ours must not follow."""
    program = (
        "import sys, hashlib, datetime; from dragoman.data import demo_date_formats as w\n"
        "order = w.LOCALES[::int(sys.argv[1])]\n"
        "texts = {l: [x.write(datetime.date(2026, 5, 1)) for x in w.ways_of(l)] for l in order}\n"
        "print(hashlib.sha256(repr([texts[l] for l in w.LOCALES]).encode()).hexdigest())"
    )
    forward, backward = (
        subprocess.run(
            [sys.executable, "-c", program, step], check=True, capture_output=True, text=True
        ).stdout
        for step in ("1", "-1")
    )
    here = [
        [way.write(date(2026, 5, 1)) for way in demo_date_formats.ways_of(locale)]
        for locale in demo_dates.LOCALES
    ]
    assert forward == backward
    assert forward.strip() == hashlib.sha256(repr(here).encode()).hexdigest()


def test_same_seed_same_pairs(task: demo_dates.DateTask) -> None:
    assert demo_dates.draw_dates(3, 20_000, 300, 400) == task
    assert demo_dates.draw_dates(4, 200, 30, 40).train != task.train[:200]


def test_sizes_and_no_source_text_twice(task: demo_dates.DateTask) -> None:
    sizes = [len(part) for part in (task.train, task.valid, task.test_dates, task.test_ways)]
    assert sizes == [20_000, 300, 400, 400]
    sources = [src for src, _ in task.train + task.valid] + [e.src for e in task.test_dates + task.test_ways]
    assert len(set(sources)) == len(sources)


def test_held_out_days_are_in_no_training_pair(task: demo_dates.DateTask) -> None:
    seen = {tgt for _, tgt in task.train}
    assert not seen & {e.tgt for e in task.test_dates}
    assert not seen & {tgt for _, tgt in task.valid}
    parts = [demo_dates.part_of(day) for day in demo_dates.all_days()]
    assert 0.095 < parts.count("test") / len(parts) < 0.105


def test_held_out_ways_are_in_no_training_pair(task: demo_dates.DateTask) -> None:
    known, unseen = demo_dates.split_ways()
    for example in task.test_ways:
        day = date.fromisoformat(example.tgt)
        assert example.way in {way.name for way in unseen[example.locale]}
        assert example.src not in {way.write(day) for way in known[example.locale] if day.day in way.days}
    share = sum(map(len, unseen.values())) / sum(map(len, known.values()))
    assert 0.08 < share < 0.15


def test_words_of_held_out_ways_are_known_to_training() -> None:
    known, unseen = demo_dates.split_ways()
    for locale, ways in unseen.items():
        assert all(
            any(word in way.vocabulary for way in known[locale]) for w in ways for word in w.vocabulary
        )


def test_the_source_shows_day_and_year(task: demo_dates.DateTask) -> None:
    """An independent look at the pairs: the figures of the target's day and year are in the source."""
    for src, tgt in task.train[:5000]:
        numbers = {int(n) for n in "".join(c if c.isdecimal() else " " for c in src).split()}
        year, _, day = map(int, tgt.split("-"))
        assert day in numbers and (year in numbers or year % 100 in numbers), (src, tgt)


def test_files(task: demo_dates.DateTask, tmp_path) -> None:
    paths = demo_dates.paths(tmp_path / "dates")
    demo_dates.write_dates(paths, task)
    lines = paths["train"].read_text(encoding="utf-8").split("\n")
    assert [tuple(line.split("\t")) for line in lines[:-1]] == task.train
    assert len(paths["test_ways"].read_text(encoding="utf-8").split("\n")) == 401
    assert all(unicodedata.is_normalized("NFC", src) for src, _ in task.train)


def test_too_many_pairs_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"en": [demo_date_formats.ways_of("en")[0]]}
    monkeypatch.setattr(demo_dates, "split_ways", lambda: (one, {}))
    with pytest.raises(UserError, match=r"5000 pairs.*ask for fewer"):
        demo_dates.draw_dates(1, train_size=10, valid_size=5000, test_size=0)


def test_without_babel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(UserError, match=r"pip install .*\[demo\]"):
        demo_date_formats._babel_locale("de")
