"""The parts by themselves: distances, memories, languages, masks, routes."""

import itertools
import random
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.serve.jobs import DocumentJob
from dragoman.serve.languages import base, name_of, resolve
from dragoman.serve.limits import Limits
from dragoman.serve.masks import mask
from dragoman.serve.memory import TranslationMemory, open_memories, similarity
from dragoman.serve.metrics import Metrics
from dragoman.serve.service import Served, Service
from dragoman.text.glossary import Glossary, GlossaryEntry
from serve.standin import Shouter, service_of


def table_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def test_similarity_is_that_of_the_table_of_distances() -> None:
    """Also for characters outside the Basic Multilingual Plane, combining marks and empty texts."""
    chance = random.Random(3)
    for _ in range(300):
        one, other = ("".join(chance.choices("abcé\u0301𝄞", k=chance.randint(0, 90))) for _ in range(2))
        longer = max(len(one), len(other))
        if one == other or min(len(one), len(other)) * 3 < longer:
            continue
        expected = min(99.0, round(100 * (1 - table_distance(one, other) / longer), 1))
        assert similarity(one, other) == expected


def test_a_memory_ranks_by_similarity() -> None:
    memory = TranslationMemory(
        [(f"Sentence number {n} of the book", str(n)) for n in range(500)] + [("", "x"), ("y", " ")]
    )
    assert len(memory) == 500
    found = memory.matches("Sentence number 77 of the book", least=90)
    assert (found[0].target, found[0].quality) == ("77", 100.0)
    assert all(one.quality >= two.quality for one, two in itertools.pairwise(found))
    assert memory.matches("quite another thing") == [] and memory.matches("") == []


def test_only_the_same_sentence_is_a_match_of_100() -> None:
    """One character in a thousand is another sentence, however the share rounds."""
    long = "word " * 250 + "end"
    memory = TranslationMemory([(long, "a"), (long.replace("end", "und"), "b")])
    assert [(one.target, one.quality) for one in memory.matches(long)] == [("a", 100.0), ("b", 99.0)]
    assert similarity(long, long + "s") == 99.0 and similarity(long, f" {long}  ") == 100.0
    assert similarity("abcdefghij", "abcdefghix") == 90.0 and similarity("ab", "abcdefg") == 0.0


def test_memories_find_their_pair(tmp_path: Path) -> None:
    unit = "<tu><tuv xml:lang='{}'><seg>{}</seg></tuv><tuv xml:lang='{}'><seg>{}</seg></tuv></tu>"
    head = "<tmx version='1.4'><header srclang='en-US'/><body>"
    path = tmp_path / "a.tmx"
    path.write_text(f"{head}{unit.format('en-US', 'A cat', 'de-DE', 'Eine Katze')}</body></tmx>", "utf-8")
    for pair, exact in ((("en", "de"), ("A cat", "Eine Katze")), (("de", "en"), ("Eine Katze", "A cat"))):
        memories = open_memories([path], [("fr", "en"), pair])
        assert memories[pair].exact(exact[0]) == exact[1]
    with pytest.raises(UserError, match=r"a\.tmx: it holds en and de, which no run here"):
        open_memories([path], [("fr", "en")])


def test_broken_rows_of_a_memory_are_left_out_and_told(tmp_path: Path) -> None:
    path, told = tmp_path / "a.tsv", []
    path.write_text("en\tde\nA cat\tEine Katze\nA dog\nNo\tNein\tNon\nYes\tJa\n", "utf-8")
    memory = open_memories([path], [("en", "de")], told.append)["en", "de"]
    assert (memory.exact("A cat"), memory.exact("Yes"), memory.exact("No")) == ("Eine Katze", "Ja", None)
    first = f"{path}:3: expected 2 columns as in line 1, found 1"
    assert told == [f"--memory {path}: 2 lines were left out; the first: {first}"]


def test_codes_of_languages() -> None:
    served = ["en", "de-DE", "zh", "nb"]
    asked = ["EN", "en_US", "EN-GB", "de", "deu", "ZH-HANS", "no", "fr", ""]
    assert [resolve(code, served) for code in asked] == [
        *("en", "en", "en", "de-DE", "de-DE", "zh", "nb"),
        *(None, None),
    ]
    assert (base("PT-BR"), name_of("pt-br"), name_of("src")) == ("pt", "Portuguese (Brazilian)", "src")


def test_masks() -> None:
    glossary = Glossary([GlossaryEntry("heart attack", ("Herzinfarkt",)), GlossaryEntry("x", ("y",))])
    masked = mask("A heart attack <x>heart attack</x> {k1} https://x.example/x", glossary, ["X"])
    assert masked.text == "A {kk1} {kk2} {k1} https://x.example/x"
    assert masked.unmask("{kk2} B {kk1} {k1}") == "<x>heart attack</x> B Herzinfarkt {k1}"
    for unclosed in ("a <x> b", "a </x> b", "<x>"):
        assert mask(unclosed, None, ["x"]).text == unclosed
    assert mask("a <x/> b", None, ["x"]).unmask("{k1}") == "<x/>"


def test_the_source_is_one_of_those_that_are_served() -> None:
    service = service_of(("deu", "en"), ("pt-BR", "en"), ("pt-PT", "en"), ("en", "deu"))
    assert service.detect("Das Buch ist nicht auf dem Tisch.", "en")[0][0] == "deu"
    assert service.detect("O livro não está na mesa.")[0][0] == "pt-BR"
    assert service.detect("The book is on the table.", "de") == [("en", pytest.approx(99, abs=2))]
    assert service.detect("Das Buch ist nicht auf dem Tisch.", "de") == [("en", pytest.approx(0, abs=1))]


def test_routes() -> None:
    service = service_of(("en", "de"), ("de", "en"), ("fr", "en"), ("en", "fr"), pivot="EN-US")
    assert service.routes["fr", "de"] == (("fr", "en"), ("en", "de")) and ("fr", "fr") not in service.routes
    assert ("fr", "de") not in service_of(("en", "de"), ("fr", "en")).routes
    meeting = service_of(("fr", "en"), ("en", "de"), ("fr", "it"), ("it", "es"), pivot="en")
    assert ("fr", "es") not in meeting.routes and meeting.routes["fr", "de"] == (("fr", "en"), ("en", "de"))
    with pytest.raises(UserError, match="--pivot de: no two of the runs meet"):
        service_of(("en", "de"), ("fr", "en"), pivot="de")
    twice = [Served(("en", "de"), Shouter(), name=name) for name in ("runs/a", "runs/b")]
    with pytest.raises(UserError, match=r"runs/b: en→de is served already by runs/a"):
        Service(twice)
    with pytest.raises(UserError, match="queue: expected a number above 0, found 0"):
        Limits(queue=0)


def test_times_of_requests_add_up() -> None:
    metrics = Metrics()
    for seconds in (0.25, 0.5):
        metrics.request("deepl", 200, seconds)
    told = metrics.exposition({})
    assert "dragoman_request_seconds_sum 0.750000" in told and "dragoman_request_seconds_count 2" in told


def test_a_document_waits_until_it_is_its_turn() -> None:
    assert not DocumentJob("a.txt", 1, 1).running
