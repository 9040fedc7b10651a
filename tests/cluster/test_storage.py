"""Runs and files on object storage: a real S3 server that the test starts, sound and failing."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.cluster import storage
from dragoman.cluster.storage import StoragePlace, is_address
from dragoman.errors import UserError

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'dragoman[cluster]'")
pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto", reason="moto is not installed")


TINY = ("tokenizer.vocab_size=280", "train.max_updates=2", "model.num_layers=1", "model.model_dim=16")


class Server:
    """Moto's S3, with faults that `fault` says of each request: an error, or an answer that is cut."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.fault: Callable[[str, str], str] = lambda _method, _path: ""
        self.asked: list[tuple[str, str]] = []
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _answer(self, environ: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path))
        fault = self.fault(method, path)
        if fault == "error":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            begin("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        if fault == "refuse":
            body = b"<Error><Code>AccessDenied</Code><Message>not yours</Message></Error>"
            begin("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        body = b"".join(self._app(environ, begin))
        if fault == "cut":
            return [body[: len(body) // 2]]
        if fault == "slow":
            return (body[at : at + 1] for at in range(len(body)))
        if fault == "rot":
            return [body[:-1] + bytes([body[-1] ^ 1])]
        return [body]

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


@pytest.fixture
def s3(served: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    account = {"endpoint_url": served.url, "key": "k", "secret": "s"}
    account |= {"config_kwargs": {"retries": {"max_attempts": 0}}}
    monkeypatch.setitem(fsspec.config.conf, "s3", account)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(storage, "_PAUSE", 0.0)
    from moto.s3.models import s3_backends

    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    if "store" not in s3_backends.bucket_accounts:
        s3_backends["123456789012"]["aws"].create_bucket("store", "us-east-1")
    yield served
    served.fault = lambda _method, _path: ""
    fsspec.filesystem("s3").rm("store", recursive=True)


def made(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory


def content(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): path.read_text("utf-8")
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("address", ["s3://store/run", "memory://run", "file://{}/run"])
def test_a_directory_comes_back_as_it_was(s3: Server, address: str, tmp_path: Path) -> None:
    place = StoragePlace(address.format(tmp_path))
    first = made(tmp_path / "first", a="one", sub__b="two", empty="")
    assert not place.is_directory()
    place.push(first)
    place.pull(tmp_path / "second")
    assert content(tmp_path / "second") == content(first)
    (first / "a").unlink()
    made(first, c="three")
    s3.asked.clear()
    place.push(first)
    assert sum(method == "PUT" for method, _ in s3.asked) in (0, 2), "only what is new travels"
    place.pull(tmp_path / "second")
    assert content(tmp_path / "second") == content(first)
    place.remove()
    assert not place.is_directory()


@pytest.mark.parametrize("fault", ["error", "cut", "slow"])
def test_a_server_that_fails_now_and_then(s3: Server, fault: str, tmp_path: Path) -> None:
    count = 0

    def every_fifth(method: str, _path: str) -> str:
        nonlocal count
        count += 1
        return fault if count % 5 == 0 and (fault != "cut" or method == "GET") else ""

    first = made(tmp_path / "first", a="one " * 100, b="two", c="three")
    s3.fault = every_fifth
    StoragePlace("s3://store/run").push(first)
    StoragePlace("s3://store/run").pull(tmp_path / "second")
    assert content(tmp_path / "second") == content(first)
    StoragePlace("s3://store/text").put(first / "a")
    StoragePlace("s3://store/text").get(tmp_path / "third")
    assert (tmp_path / "third").read_bytes() == (first / "a").read_bytes()


def test_whole_or_not_at_all(s3: Server, tmp_path: Path) -> None:
    """Cut off at any request, the old directory is there; and the next call goes on."""
    place, first = StoragePlace("s3://store/run"), made(tmp_path / "first", a="old", b="old too")
    place.push(first)
    old = content(first)
    made(first, a="new", b="new too", c="more")
    for allowed in range(3):
        written = 0

        def end(method: str, _path: str, allowed: int = allowed) -> str:
            nonlocal written
            written += method == "PUT"
            return "refuse" if written > allowed else ""

        s3.fault = end
        with pytest.raises(UserError, match=r"s3://store/run: cannot be (written|read|looked up)"):
            place.push(first)
        s3.fault = lambda _method, _path: ""
        place.pull(tmp_path / f"seen-{allowed}")
        assert content(tmp_path / f"seen-{allowed}") == old
    place.push(first)
    place.pull(tmp_path / "second")
    assert content(tmp_path / "second") == content(first)


def test_what_has_changed_is_never_taken(s3: Server, tmp_path: Path) -> None:
    place, first = StoragePlace("s3://store/run"), made(tmp_path / "first", a="one", b="two")
    place.push(first)
    s3.fault = lambda method, path: "rot" if method == "GET" and "/blocks/" in path else ""
    with pytest.raises(UserError, match=r"cannot be read \(.*(checksum|SHA-256)"):
        place.pull(tmp_path / "second")
    assert content(tmp_path / "second") == {}
    on_disk = StoragePlace(f"file://{tmp_path}/disk")
    on_disk.push(first)
    for block in (tmp_path / "disk" / "blocks").iterdir():
        block.write_text("six", encoding="utf-8")
    with pytest.raises(UserError, match="is not what its SHA-256 says"):
        on_disk.pull(tmp_path / "second")
    assert content(tmp_path / "second") == {}
    s3.fault = lambda _method, _path: ""
    system = fsspec.filesystem("s3")
    plain = json.loads(system.cat_file("store/run/files.json"))
    for change in ({"files": {}}, {"seal": "x"}):
        system.pipe_file("store/run/files.json", json.dumps(plain | change).encode())
        with pytest.raises(UserError, match=r"files\.json: damaged"):
            place.pull(tmp_path / "third")
    outside = {"../x": plain["files"]["a"]}
    system.pipe_file(
        "store/run/files.json", json.dumps({"files": outside, "seal": storage._seal(outside)}).encode()
    )
    with pytest.raises(UserError, match=r"files\.json: damaged"):
        place.pull(tmp_path / "third")


def test_a_pipe_at_an_address_is_not_waited_for(tmp_path: Path) -> None:
    place, first = StoragePlace(f"file://{tmp_path}/disk"), made(tmp_path / "first", a="one")
    place.push(first)
    place.beside("file").put(first / "a")
    block = next((tmp_path / "disk" / "blocks").iterdir())
    for path, read in (
        (block, place.pull),
        (tmp_path / "disk" / "files.json", place.pull),
        (tmp_path / "file", place.beside("file").get),
    ):
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(UserError, match="this is a named pipe"):
            read(tmp_path / "second")


@pytest.mark.usefixtures("s3")
def test_commands_take_addresses(small_run: Path, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    run, text = small_run, tmp_path / "some.en"
    text.write_text("".join(f"{src}\n" for src, _ in pairs[:5]), encoding="utf-8")
    StoragePlace("s3://store/run").push(run)
    StoragePlace("s3://store/some.en").put(text)

    def say(*arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    say("translate", str(run), "-i", str(text), "--out", str(tmp_path / "alone"), "--device", "cpu")
    say(
        "translate",
        "s3://store/run",
        "-i",
        "s3://store/some.en",
        "--out",
        "s3://store/out/some.de",
        "--device",
        "cpu",
    )
    system = fsspec.filesystem("s3")
    assert system.cat_file("store/out/some.de") == (tmp_path / "alone").read_bytes()
    assert system.find("store/out") == ["store/out/some.de"], "nothing else is left"

    table = tmp_path / "few.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs[:4]), encoding="utf-8")
    say("evaluate", "s3://store/run", str(table), "--bootstrap", "0", "--device", "cpu", "--name", "x")
    StoragePlace("s3://store/run").pull(tmp_path / "again")
    assert (tmp_path / "again" / "evaluation" / "x" / "report.json").is_file(), "what a command adds is kept"

    say("filter", str(table), "--out", "s3://store/clean/few")
    assert system.find("store/clean") == [f"store/clean/few.{end}" for end in ("dropped.tsv", "src", "tgt")]

    say("train", str(tmp_path / "few.tsv"), "--out", "s3://store/new", *TINY, "-q")
    StoragePlace("s3://store/new").pull(tmp_path / "new")
    assert (tmp_path / "new" / "manifest.json").is_file() and list(
        (tmp_path / "new" / "checkpoints").iterdir()
    )


@pytest.mark.usefixtures("s3")
def test_a_job_goes_on_from_the_address_on_another_machine(
    small_run: Path, pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.runs import corpus_job

    run, text = small_run, tmp_path / "mono.en"
    text.write_text("".join(f"{src}\n" for src, _ in pairs), encoding="utf-8")
    monkeypatch.setattr(corpus_job, "LINES_AT_ONCE", 10)
    command = ["back-translate", str(run), str(text), "--device", "cpu", "--out"]
    assert CliRunner().invoke(app, [*command, str(tmp_path / "alone")]).exit_code == 0
    translate, asked = corpus_job._translate, []

    def until_killed(translator: Any, texts: Any, *rest: Any) -> Any:
        asked.append(list(texts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return translate(translator, texts, *rest)

    monkeypatch.setattr(corpus_job, "_translate", until_killed)
    assert CliRunner().invoke(app, [*command, "s3://store/mono.de"]).exit_code != 0
    system = fsspec.filesystem("s3")
    system.invalidate_cache()
    assert not system.exists("store/mono.de")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    result = CliRunner().invoke(app, [*command, "s3://store/mono.de"])
    assert result.exit_code == 0, result.output
    assert asked[3] == asked[2], "what is done is not done again"
    system.invalidate_cache()
    assert system.cat_file("store/mono.de") == (tmp_path / "alone").read_bytes()
    assert not system.exists("store/mono.de.unfinished/files.json")


def test_what_is_an_address() -> None:
    assert all(map(is_address, ["s3://store/run", "gs://b/x", "memory://x", "abfs://c@a/x"]))
    assert not any(map(is_address, ["https://a.b/c", "a text with s3://b in it", "run", "x://", "ray://h:1"]))
