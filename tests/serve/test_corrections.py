"""Corrections of clients: answered from then on in every dialect, kept on the disk, and within limits."""

import asyncio
import errno
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.errors import UserError
from dragoman.serve.corrections import Corrections
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from serve.standin import client_of, service_of, shouter

TEXT, BETTER = "Save the file.", "Speichere die Datei."
PAIR = {"source": "en", "target": "de"}
EN_DE = ("en", "de")


def learning(file: Path, limits: Limits | None = None, **more: Any) -> TestClient:
    limits = limits or Limits()
    service = service_of(EN_DE, ("de", "en"), limits=limits, **more)
    service.corrections = Corrections(limits, file)
    return client_of(service)


def correct(client: TestClient, text: str = TEXT, better: str = BETTER) -> Any:
    return client.post("/api/v1/corrections", json={**PAIR, "text": text, "translation": better})


def answers(client: TestClient, text: str) -> dict[str, str]:
    """Of every dialect."""
    own = client.post("/api/v1/translate", json={**PAIR, "texts": [text]}).json()
    libre = client.post("/translate", json={**PAIR, "q": text}).json()
    deepl = {"text": [text], "source_lang": "EN", "target_lang": "DE"}
    apertium = client.get("/translate", params={"langpair": "en|de", "q": text}).json()
    html = client.post("/translate", json={**PAIR, "q": f"<p>{text}</p>", "format": "html"}).json()
    file = {"file": ("a.txt", text.encode())}
    return {
        "own": own["translations"][0]["text"],
        "libretranslate": libre["translatedText"],
        "deepl": client.post("/v2/translate", json=deepl).json()["translations"][0]["text"],
        "apertium": apertium["responseData"]["translatedText"],
        "html": html["translatedText"].removeprefix("<p>").removesuffix("</p>"),
        "document": client.post("/api/v1/documents", data=PAIR, files=file).text,
    }


@pytest.mark.parametrize("dialect", ["own", "libretranslate"])
def test_every_dialect_answers_with_a_correction(tmp_path: Path, dialect: str) -> None:
    with learning(tmp_path / "c.tmx") as client:
        assert set(answers(client, TEXT).values()) == {TEXT.upper()}
        if dialect == "own":
            assert correct(client).json() == {"corrections": 1}
        else:
            assert client.post("/suggest", data={**PAIR, "q": TEXT, "s": BETTER}).json() == {"success": True}
        assert set(answers(client, TEXT).values()) == {BETTER}
        assert set(answers(client, f"  {TEXT} Good day.\n").values()) == {f"  {BETTER} GOOD DAY.\n"}
        assert client.get("/frontend/settings").json()["suggestions"]
        assert client.get("/api/v1/languages").json()["corrections"]


def test_a_memory_of_the_operator_is_asked_in_every_dialect_too(client: TestClient) -> None:
    assert set(answers(client, "The cat sat on the mat.").values()) == {"Die Katze saß auf der Matte."}
    asked = {**PAIR, "texts": ["The cat sat on the mat."], "memory": False}
    found = client.post("/api/v1/translate", json=asked).json()["translations"][0]
    assert (found["text"], found["from_memory"]) == ("THE CAT SAT ON THE MAT.", False)


def test_the_last_correction_counts_and_can_be_taken_back(tmp_path: Path) -> None:
    with learning(tmp_path / "c.tmx") as client:
        correct(client)
        assert correct(client, f" {TEXT} ".replace(" ", "  "), "Datei speichern.").json() == {
            "corrections": 1
        }
        assert set(answers(client, TEXT).values()) == {"Datei speichern."}
        again = client.request("DELETE", "/api/v1/corrections", json={**PAIR, "text": TEXT})
        assert again.json() == {"corrections": 0}
        assert set(answers(client, TEXT).values()) == {TEXT.upper()}
        assert client.request("DELETE", "/api/v1/corrections", json={**PAIR, "text": TEXT}).status_code == 404


def test_similar_texts_have_a_hint_with_the_difference(tmp_path: Path) -> None:
    with learning(tmp_path / "c.tmx") as client:
        correct(client)
        text = "Save the files."
        asked = {**PAIR, "texts": [text], "memory": True}
        found = client.post("/api/v1/translate", json=asked).json()["translations"][0]
        assert found["text"] == text.upper()
        (match,) = found["matches"]
        assert (match["source"], match["target"]) == (TEXT, BETTER) and 90 < match["quality"] < 100
        assert [tuple(part.values()) for part in match["difference"]] == [
            ("same", "Save the "),
            ("removed", "file"),
            ("added", "files"),
            ("same", "."),
        ]
        libre = client.post("/translate", json={**PAIR, "q": text, "matches": True}).json()
        deepl = {"text": [text], "source_lang": "EN", "target_lang": "DE", "matches": True}
        by_deepl = client.post("/v2/translate", json=deepl).json()["translations"][0]
        query = {"langpair": "en|de", "q": text, "matches": "true"}
        apertium = client.get("/translate", params=query).json()["responseData"]
        assert libre["matches"] == by_deepl["matches"] == apertium["matches"] == [match]
        (similar,) = client.get(f"/tm/en/de/unit/{text}").json()
        assert similar == {name: match[name] for name in ("source", "target", "quality")}


@pytest.mark.parametrize("insists", [False, True])
def test_a_term_that_a_client_asks_for_wins(tmp_path: Path, insists: bool) -> None:
    with learning(tmp_path / "c.tmx", insists=insists) as client:
        correct(client)
        asked = {**PAIR, "texts": [TEXT, TEXT.replace("Save", "Open")], "glossary": {"file": "Akte"}}
        correct(client, "Good day.", "Guten Tag.")
        found = client.post("/api/v1/translate", json=asked).json()["translations"]
        assert [one["text"] for one in found] == ["SAVE THE Akte.", "OPEN THE Akte."]
        other = {**asked, "texts": ["Good day."]}
        assert client.post("/api/v1/translate", json=other).json()["translations"][0]["from_memory"]


def test_without_a_file_nothing_is_learnt(client: TestClient) -> None:
    assert correct(client).status_code == 403
    assert client.post("/suggest", data={**PAIR, "q": TEXT, "s": BETTER}).status_code == 403
    assert client.get("/api/v1/corrections").status_code == 403
    assert not client.get("/frontend/settings").json()["suggestions"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"text": " ", "translation": "a"}, 400),
        ({"text": "a", "translation": ""}, 400),
        ({"text": "a\x01", "translation": "a"}, 400),
        ({"text": "a", "translation": "b\ufffe"}, 400),
        ({"text": "a" * 21, "translation": "a"}, 413),
        ({"text": "a", "translation": "a" * 21}, 413),
        ({"text": "a", "translation": "b", "target": "zz"}, 400),
        ({"text": "a"}, 400),
    ],
)
def test_what_is_no_correction(tmp_path: Path, asked: dict[str, str], status: int) -> None:
    with learning(tmp_path / "c.tmx", Limits(characters=20)) as client:
        assert client.post("/api/v1/corrections", json={**PAIR, **asked}).status_code == status
        libre = {**PAIR, **{{"text": "q", "translation": "s"}.get(name, name): asked[name] for name in asked}}
        assert client.post("/suggest", json=libre).status_code == status
    assert not (tmp_path / "c.tmx").exists()


# --- the file ------------------------------------------------------------------------------------------

HARD = [("a < b & c > d", "x \"y\" 'z'"), ("One\nTwo\r\nThree", "Eins\nZwei\r\nDrei"), ("日本語", "😀 ]]>")]


def kept(file: Path, limits: Limits | None = None, **more: Any) -> Corrections:
    return Corrections(limits or Limits(), file, **more)


def put(found: Corrections, *pairs: tuple[str, str], languages: tuple[str, str] = EN_DE) -> None:
    for source, target in pairs:
        asyncio.run(found.put(languages, source, target))


def content(found: Corrections) -> list[tuple[str, str]]:
    return [(one.source, one.target) for one in found]


def test_they_are_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "c.tmx"
    put(kept(file), *HARD)
    put(kept(file), ("Guten Tag.", "Good day."), languages=("de", "en"))
    found = kept(file)
    assert content(found) == [*HARD, ("Guten Tag.", "Good day.")]
    memory = found.memory(("de", "en"))
    assert memory is not None and memory.exact("Guten Tag.") == "Good day."
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    read = [(one.src, one.tgt) for one in read_pairs(SourceConfig((str(file),)), "en", "de")]
    assert read == [*HARD, ("Good day.", "Guten Tag.")]
    assert found.tmx() == file.read_bytes()


def test_no_damage_is_taken_for_a_correction(tmp_path: Path) -> None:
    file = tmp_path / "c.tmx"
    put(kept(file), ("a cat", "eine Katze"), ("a dog", "ein Hund"))
    whole, right = file.read_bytes(), content(kept(file))
    refused = 0
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert content(kept(file)) == right, place  # the damage is in the comment itself
        except UserError as error:
            assert str(file) in str(error)
            refused += 1
    assert refused >= len(whole) - 80


def test_a_file_of_another_tool_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c.tmx"
    file.write_text(
        '<tmx version="1.4"><header srclang="EN"/><body>\n'
        '<tu><tuv xml:lang="de"><seg>Ja</seg></tuv><tuv xml:lang="en"><seg>Yes <ph>x</ph></seg></tuv></tu>\n'
        '<tu changedate="20990101T000000Z"><tuv xml:lang="en"><seg>No</seg></tuv></tu></body></tmx>',
        "utf-8",
    )
    (unit,) = kept(file)
    assert (unit.src_lang, unit.tgt_lang, unit.source, unit.target) == ("en", "de", "Yes", "Ja")
    for wrong, said in (("<html/>", "expected <tmx>"), ("<tmx><tu changedate='x'/></tmx>", "not a time")):
        file.write_text(wrong, "utf-8")
        with pytest.raises(UserError, match=said):
            kept(file)


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.tmx"
    with learning(file) as client:
        correct(client)
        before = file.read_bytes()

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            assert correct(client, TEXT, "Anders.").status_code == 507
            assert (
                client.request("DELETE", "/api/v1/corrections", json={**PAIR, "text": TEXT}).status_code
                == 507
            )
        assert file.read_bytes() == before and set(answers(client, TEXT).values()) == {BETTER}
        assert correct(client, TEXT, "Anders.").status_code == 200


# --- limits --------------------------------------------------------------------------------------------


def test_their_number_and_their_bytes_have_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "c.tmx"
    limits = Limits(corrections=2, corrections_bytes=2000)
    with learning(file, limits) as client:
        assert [correct(client, text).status_code for text in ("a", "b", "c", "a")] == [200, 200, 456, 200]
        assert correct(client, "a", "x" * 1500).status_code == 456
    assert len(kept(file, limits)) == 2
    put(kept(file), ("c", "C"))
    with pytest.raises(UserError, match="keeps 2 corrections"):
        kept(file, limits)
    file.write_bytes(b"<tmx>" + b" " * (3 << 20))
    with pytest.raises(UserError, match="too large"):
        kept(file, limits)


def test_they_are_forgotten_when_they_are_old(tmp_path: Path) -> None:
    file, limits = tmp_path / "c.tmx", Limits(corrections_days=30)
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    found = kept(file, limits, now=lambda: now[0])
    put(found, ("one", "eins"))
    now[0] += timedelta(days=20)
    put(found, ("two", "zwei"))
    now[0] += timedelta(days=20)
    put(found, ("three", "drei"))
    memory = found.memory(EN_DE)
    assert memory is not None and (memory.exact("one"), memory.exact("two")) == (None, "zwei")
    assert (
        content(found)
        == content(kept(file, limits, now=lambda: now[0]))
        == [
            ("two", "zwei"),
            ("three", "drei"),
        ]
    )
    now[0] += timedelta(days=20)
    assert content(kept(file, limits, now=lambda: now[0])) == [("three", "drei")]


def test_a_change_is_whole_also_if_its_client_has_left(tmp_path: Path) -> None:
    found = kept(tmp_path / "c.tmx")

    async def leave() -> None:
        asked = asyncio.ensure_future(found.put(EN_DE, "a", "b"))
        await asyncio.sleep(0)
        asked.cancel()
        await found.put(EN_DE, "c", "d")

    asyncio.run(leave())
    assert content(found) == content(kept(tmp_path / "c.tmx")) == [("a", "b"), ("c", "d")]


def test_a_refusal_does_not_hold_the_text(tmp_path: Path) -> None:
    found = kept(tmp_path / "c.tmx", Limits(corrections=1))
    put(found, ("a", "b"))
    with pytest.raises(Refusal) as refused:
        asyncio.run(found.put(EN_DE, "secret", "secret"))
    assert "secret" not in refused.value.message and "secret" not in repr(next(iter(found)))


def test_the_model_is_not_asked_about_what_is_known(tmp_path: Path) -> None:
    service = service_of()
    service.corrections = Corrections(Limits(), tmp_path / "c.tmx")
    with client_of(service) as client:
        correct(client)
        client.post("/translate", json={**PAIR, "q": TEXT})
        assert shouter(service).batches == []
        assert "dragoman_memory_sentences_total 1" in client.get("/metrics").text
