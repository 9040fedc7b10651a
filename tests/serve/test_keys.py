"""Keys: from where, how long, compared how, told to nobody; and guesses, which wait and nobody else does."""

import asyncio
import hashlib
import hmac
import json
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.serve.app import Options
from dragoman.serve.keys import SHORTEST, Guesses, Keys, exposed
from dragoman.serve.limits import Limits
from serve.live import HEALTH, advance, on_a_still_clock, request, serving, turns
from serve.standin import service_of

KEY = "the-right-key-of-somebody"
LOCKED = Options(keys=Keys([KEY, "another-right-key-of-another"]))
LIMITS = Limits(window_s=0)


def test_a_file_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\nfirst-secret-of-a-client\n\n  second-secret-of-a-client\r\n")
    keys = Keys.load(path)
    assert "first-secret-of-a-client" in keys and "second-secret-of-a-client" in keys
    for other in ("# ours", "", None, ["first-secret-of-a-client"], "first-secret-of-a-clien"):
        assert other not in keys and keys.name_of(other) is None
    assert keys.name_of("first-secret-of-a-client") != keys.name_of("second-secret-of-a-client")
    short = "x" * (SHORTEST - 1)
    for text, said in (
        (f"# a\n{short}\n", f":2: a key has at least {SHORTEST} characters and no space; python -c"),
        ("a key with some spaces", ":1: a key has at least"),
        ("#\n", "there is no key"),
        ("é", "ASCII"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(UserError, match=said):
            Keys.load(path)
    with pytest.raises(UserError, match="cannot be read"):
        Keys.load(tmp_path / "nothing")
    with pytest.raises(UserError, match="are too many for a file of keys"):
        Keys.load(Path("/dev/zero"))  # which says that its size is 0


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o640, False), (0o644, True), (0o660, True)])
def test_a_file_that_others_can_read_is_told_of(tmp_path: Path, mode: int, told: bool) -> None:
    path = tmp_path / "keys"
    path.write_text(KEY)
    path.chmod(mode)
    sentence = f"{path}: other users of this machine can read or change the keys; chmod 600 {path}"
    assert exposed(path) == (sentence if told else None)


def test_the_command_tells_of_such_a_file(tmp_path: Path) -> None:
    """And goes on, here until it finds no run."""
    path = tmp_path / "keys"
    path.write_text(KEY)
    path.chmod(0o644)
    found = CliRunner().invoke(app, ["serve", str(tmp_path / "nothing"), "--key-file", str(path)])
    assert "other users of this machine can read" in found.stderr and KEY not in found.output
    assert isinstance(found.exception, UserError) and "nothing" in str(found.exception)


def test_all_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is, or none: as many comparisons, of hashes, by the function that is made for it."""
    compared: list[tuple[bytes, bytes]] = []
    own = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or own(a, b))
    held = [f"{KEY}-{number}" for number in range(5)]
    keys = Keys(held)
    for given in (held[0], held[-1], "x", ""):
        compared.clear()
        assert (given in keys) == (given in held)
        assert [b for _, b in compared] == [hashlib.sha256(one.encode()).digest() for one in held]
        assert {a for a, _ in compared} == {hashlib.sha256(given.encode()).digest()}


def test_wrong_keys_wait_after_some_and_right_ones_never_do() -> None:
    async def story() -> None:
        async with serving(service_of(limits=LIMITS), LOCKED) as server:
            guesses = await server.clients(Guesses.FREE + 1)
            wrong = HEALTH.replace(b"/health", b"/v2/usage").replace(
                b"\r\n\r\n", b"\r\nX-API-Key: no\r\n\r\n"
            )
            right = wrong.replace(b"Key: no", b"Key: " + KEY.encode())
            for client in guesses[:-1]:
                assert await client.ask(wrong) == 403
            await guesses[-1].send(wrong)
            others = await server.client()
            for sent in (HEALTH, right, request(json.dumps({"api_key": KEY, "q": "a"}).encode())):
                assert await others.ask(sent) in (200, 400)
            assert server.gate._guesses._waiting and server.gate.places.taken == 0
            advance(Guesses.DELAY_S)
            assert (await guesses[-1].answer())[0] == 403
            advance(Guesses.FORGOTTEN_S)
            assert await guesses[0].ask(wrong) == 403
            assert server.gate.metrics.value("dragoman_wrong_keys_total") == Guesses.FREE + 2

    on_a_still_clock(story)


def test_no_more_than_some_wait() -> None:
    guesses = Guesses(most=3)

    async def story() -> None:
        for _ in range(Guesses.FREE):
            await guesses.wrong("a")
        waiting = [asyncio.ensure_future(guesses.wrong("a")) for _ in range(5)]
        other = asyncio.ensure_future(guesses.wrong("b"))
        await turns()
        assert [one.done() for one in waiting] == [True, True, False, False, False] and other.done()
        advance(Guesses.DELAY_S)
        await asyncio.gather(*waiting)
        assert not guesses._waiting
        for number in range(2 * Guesses.ADDRESSES):
            await guesses.wrong(str(number))
        assert len(guesses._wrong) == Guesses.ADDRESSES

    on_a_still_clock(story)


def test_no_key_is_ever_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    """At the most verbose level of everything that logs, wherever the key was, whether it is right or not."""
    wrong = "a-wrong-key-that-somebody-tried"
    kind = "multipart/form-data; boundary=x"

    def sent(method: str, path: str, kind: str, body: str, *headers: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", *headers]
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()

    async def story() -> None:
        asyncio.get_running_loop().set_debug(True)
        async with serving(service_of(limits=LIMITS), LOCKED) as server:
            client = await server.client()
            for key in (KEY, wrong):
                part = 'Content-Disposition: form-data; name="auth_key"'
                form = f"--x\r\n{part}\r\n\r\n{key}\r\n--x--\r\n"
                for one in (
                    sent("GET", "/v2/usage", "text/plain", "", f"Authorization: DeepL-Auth-Key {key}"),
                    sent("GET", "/languages", "text/plain", "", f"X-API-Key: {key}"),
                    sent("GET", f"/translate?langpair=en%7Cde&q=a&key={key}", "text/plain", ""),
                    sent("GET", f"/tm/en/de/unit/{key}?key={key}", "text/plain", ""),
                    sent("POST", "/translate", "application/json", json.dumps({"api_key": key})),
                    sent("POST", "/translate", "application/json", json.dumps({"api_key": [key]})),
                    sent("POST", "/translate", "application/x-www-form-urlencoded", f"api_key={key}&q=a"),
                    sent("POST", "/v2/translate", kind, form),
                    sent("POST", "/translate", "application/json", f'{{"api_key": "{key}'),
                ):
                    assert await client.ask(one) < 500
            await (await server.client()).ask(
                b"GET /?key=" + KEY.encode() + b" HTTP/1.1\r\nBad Header: x\r\n\r\n"
            )

    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    try:
        for name in levels:
            logging.getLogger(name).setLevel(logging.NOTSET)
        with caplog.at_level(1):
            on_a_still_clock(story)
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    told = "\n".join(f"{one.getMessage()} {one.args} {one.exc_text}" for one in caplog.records)
    assert len(caplog.records) >= 20 and KEY not in told and wrong not in told
