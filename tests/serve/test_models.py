"""Models that do not translate: what is answered is what the library computes, part by part or at once, in
our own dialect and in OpenAI's; and what every request has to pass is in force for them too."""

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.cli.served_models import _Ear, open_model, run_without_translation, stop_in, without_prompt
from dragoman.data.formats.dialogue import context
from dragoman.data.labelled.example import Example
from dragoman.decode.search.config import SampleSearch
from dragoman.decode.translator.generate import Prompt
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.probe.continuation import spelling
from dragoman.probe.embed import Embedder
from dragoman.probe.fill import Filler
from dragoman.probe.inside import look_inside
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_predictor
from dragoman.serve.app import Options, build
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Models
from serve.live import Client, Running, in_a_thread, on_a_still_clock, serving_gate, until
from serve.standin import Echo, client_of, echoes, service_of
from serve.test_openai import streamed

FIELDS = [
    *("tokenizer.vocab_size=320", "train.max_updates=2", "train.validate_every=2", "train.batch_tokens=400"),
    *("train.samples=0", "train.device=cpu", "data.valid_size=8", "-q"),
    *("model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=32"),
]
WORDS = ["red", "blue", "old", "new", "cat", "dog", "fish", "hill"]
PROMPTS = ["the red", "one line\nthe b", "the old cat "]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hardly trained: only what they compute is asked for."""
    folder = tmp_path_factory.mktemp("models")
    lines = [f"the {a} {b} and the {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "labels.tsv").write_text("".join(f"{line}\t{line.split()[1]}\n" for line in lines))
    (folder / "talk.dialogues").write_text("".join(f"hello __eou__ {one} __eou__ bye\n" for one in lines))
    kinds = {"gpt": "pretrain", "t5": "pretrain", "labels": "finetune", "talk": "train"}
    for name, start in kinds.items():
        own = [folder / "labels.tsv", "--task", "classify"]
        if start == "train":
            own = [folder / "talk.dialogues", "data.turns=2", "train.metric=perplexity"]
        if start == "pretrain":
            own = [folder / "text.txt", "--model", f"{name}-tiny", "objective.block=64"]
        fields = [field for field in FIELDS if start != "finetune" or "valid_size" not in field]
        result = CliRunner().invoke(app, [start, *map(str, own), "-o", str(folder / name), *fields])
        assert result.exit_code == 0, result.exception
    return folder


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[httpx.Client]:
    found = [run_without_translation(runs / name) for name in ("gpt", "t5", "labels")]
    models = Models([open_model(run, "best", "cpu") for run in found if run], Limits(), Metrics())
    with in_a_thread(None, models=models) as address, httpx.Client(base_url=address, timeout=300) as client:
        yield client


def asked(client: Any, path: str, **fields: Any) -> Any:
    response = client.post(path, json=fields)
    assert response.status_code == 200, response.text
    return response.json()


def test_predictions_are_those_of_the_library(server: httpx.Client, runs: Path) -> None:
    texts = ["the red cat and the dog", "the new fish"]
    found = asked(server, "/api/v1/predict", texts=texts)
    own = open_predictor(runs / "labels", device="cpu").predict([Example((t,), None, "") for t in texts])
    assert found["model"] == "labels"
    for told, mine in zip(found["predictions"], own, strict=True):
        assert told["label"] == mine.value and told["probability"] == pytest.approx(mine.confidence, abs=1e-5)
        assert told["probabilities"] == pytest.approx(mine.probabilities, abs=1e-5)


def test_gaps_are_filled_as_by_the_library(server: httpx.Client, runs: Path) -> None:
    found = asked(server, "/api/v1/fill", texts=["the <mask> cat"], count=3)
    own = Filler(Run.open(runs / "t5"), device="cpu").fill("the <mask> cat", 3)
    assert [one["text"] for one in found["fillings"][0]] == [one.text for one in own]
    response = server.post("/api/v1/fill", json={"texts": ["the <mask> cat", "no gap"]})
    assert response.status_code == 400 and "there is no gap" in response.json()["error"]


@pytest.mark.parametrize("name", ["gpt", "t5", "labels"])
def test_vectors_are_those_of_the_library(server: httpx.Client, runs: Path, name: str) -> None:
    from dragoman.checkpoint.model import load_network

    run = Run.open(runs / name)
    loaded = load_network(run.directory)
    network: Any = getattr(loaded.model, "network", loaded.model)
    causal = not learning_of(run.config).reads_source
    texts = ["the cat", "a much longer text about a dog"]
    own = Embedder(network, loaded.tgt_tokenizer, causal=causal).embed(texts)
    found = asked(server, "/api/v1/embed", texts=texts, model=name)["vectors"]
    for told, mine in zip(found, own, strict=True):
        assert told == pytest.approx(mine.rows[0, 0].tolist(), abs=1e-5)
    fields = {"model": name, "input": texts, "encoding_format": "base64"}
    for told, one in zip(found, asked(server, "/v1/embeddings", **fields)["data"], strict=True):
        data = base64.b64decode(one["embedding"])
        assert struct.unpack(f"<{len(told)}f", data) == pytest.approx(told, abs=1e-5)


def test_texts_go_on_as_in_the_library(server: httpx.Client, runs: Path) -> None:
    generator = Run.open(runs / "gpt").generator(device="cpu")
    search = generator.search.converted(SampleSearch, n_best=2, seed=7, temperature=0.7)
    how = {"seed": 7, "temperature": 0.7, "max_tokens": 9, "prompt_open": True}
    found = asked(server, "/api/v1/generate", prompts=PROMPTS, count=2, **how)["continuations"]
    for prompt, row in zip(PROMPTS, found, strict=True):
        *before, last = prompt.split("\n")
        own = generator.hypotheses(last, before=before, max_tokens=9, prompt_open=True, search=search)
        assert [one["log_prob"] for one in row] == pytest.approx([one.log_prob for one in own], abs=1e-4)
        assert [without_prompt(one.text, last) for one in own] == [one["text"] for one in row]
    whole = [row[0]["text"] for row in found]
    sent = {"model": "gpt", "temperature": 0.7, "seed": 7, "max_tokens": 9}
    for prompt, text in zip(PROMPTS, whole, strict=True):
        parts = streamed(server, "/api/v1/generate", {"prompts": [prompt], "stream": True, **how})
        assert "".join(part.get("text", "") for part in parts) == text
        assert parts[-1]["continuations"][0][0]["text"] == text
        (choice,) = asked(server, "/v1/completions", prompt=prompt, **sent)["choices"]
        assert choice["text"] == text
        echoed = streamed(server, "/v1/completions", {"prompt": prompt, **sent, "stream": True, "echo": True})
        assert "".join(part["choices"][0]["text"] for part in echoed) == prompt + text
        assert echoed[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]
    prompt, longest = max(zip(PROMPTS, whole, strict=True), key=lambda both: len(both[1]))
    stop = longest[2:4]
    cut = longest[: longest.index(stop)]
    (choice,) = asked(server, "/v1/completions", prompt=prompt, stop=stop, **sent)["choices"]
    assert choice["text"] == cut and choice["finish_reason"] == "stop"
    parts = streamed(server, "/v1/completions", sent | {"prompt": prompt, "stop": [stop], "stream": True})
    assert "".join(part["choices"][0]["text"] for part in parts) == cut


def test_a_chat_goes_on_as_the_library_does(server: httpx.Client, runs: Path) -> None:
    generator = Run.open(runs / "gpt").generator(device="cpu")
    search = generator.search.converted(SampleSearch, n_best=1, seed=5)
    lines = ["the red cat", "and the dog"]
    (own,) = generator.hypotheses("", before=lines, max_tokens=7, search=search)
    messages = [{"role": role, "content": line} for role, line in zip(("system", "user"), lines, strict=True)]
    fields = {"model": "gpt", "messages": messages, "seed": 5, "max_tokens": 7}
    (choice,) = asked(server, "/v1/chat/completions", **fields)["choices"]
    assert choice["message"]["content"] == own.text
    parts = streamed(server, "/v1/chat/completions", {**fields, "stream": True})
    assert "".join(part["choices"][0]["delta"].get("content", "") for part in parts) == own.text


def test_a_run_of_dialogues_replies_to_its_last_turns(runs: Path) -> None:
    translator = Run.open(runs / "talk").translator(device="cpu")
    search = translator.search.converted(SampleSearch, n_best=2, seed=5, max_length=6)
    turns = ["hello", "the red cat", "and the dog"]
    (own,) = translator.hypotheses([context(turns, 2)], search=search)
    model = open_model(Run.open(runs / "talk"), "best", "cpu")
    assert model.does == ("chat",)
    fields = {"model": "talk", "messages": [{"role": "user", "content": turn} for turn in turns]}
    fields |= {"seed": 5, "max_tokens": 6}
    models = Models([model], Limits(), Metrics())
    with in_a_thread(None, models=models) as address, httpx.Client(base_url=address, timeout=300) as client:
        found = asked(client, "/v1/chat/completions", **fields, n=2, logprobs=True)["choices"]
        assert [one["message"]["content"] for one in found] == [one.text for one in own]
        for choice, one in zip(found, own, strict=True):
            scores = [piece["logprob"] for piece in choice["logprobs"]["content"]]
            assert scores == pytest.approx(one.token_scores[: len(scores)], abs=1e-4)
            assert "".join(piece["token"] for piece in choice["logprobs"]["content"]) == one.text
        parts = streamed(client, "/v1/chat/completions", {**fields, "stream": True})
        (alone,) = asked(client, "/v1/chat/completions", **fields)["choices"]
        told = "".join(part["choices"][0]["delta"].get("content", "") for part in parts)
        assert told == alone["message"]["content"]
        response = client.post("/v1/completions", json={"model": "talk", "prompt": "x"})
        assert response.status_code == 400 and "talk does chat alone" in response.json()["error"]["message"]


def test_probabilities_of_pieces_are_those_of_the_model(server: httpx.Client, runs: Path) -> None:
    generator = Run.open(runs / "gpt").generator(device="cpu")
    tokenizer = generator.translator.tgt_tokenizer
    search = generator.search.converted(SampleSearch, n_best=1, seed=5, temperature=0.7)
    prompt = Prompt.of("one line\nthe b", open=True)
    ((own,),) = generator.write([prompt], max_tokens=9, search=search)
    seen = look_inside(
        generator.translator.model, generator.source_of(prompt, 9), own.tokens, num_alternatives=3
    )
    fields = {"model": "gpt", "prompt": "one line\nthe b", "seed": 5, "temperature": 0.7, "max_tokens": 9}
    (choice,) = asked(server, "/v1/completions", **fields, logprobs=3)["choices"]
    told = choice["logprobs"]
    count = len(told["tokens"])
    assert 0 < count < len(own.tokens) and "".join(told["tokens"]) == choice["text"]
    assert told["token_logprobs"] == pytest.approx(own.token_scores[:-1][-count:], abs=1e-4)
    places = zip(told["tokens"], told["text_offset"], strict=True)
    assert all(choice["text"][place:].startswith(text) for text, place in places)
    for best, others in zip(told["top_logprobs"], seen.alternatives[:-1][-count:], strict=True):
        wanted = {spelling(tokenizer, token): value for token, value in others}
        assert best == pytest.approx(wanted, abs=1e-4)
    stop = choice["text"][1:3]
    (cut,) = asked(server, "/v1/completions", **fields, logprobs=0, stop=stop)["choices"]
    assert "".join(cut["logprobs"]["tokens"]) == cut["text"] == choice["text"].split(stop)[0]
    assert all(not best for best in cut["logprobs"]["top_logprobs"])
    message = {"role": "user", "content": "one line"}
    chat = {"model": "gpt", "messages": [message], "seed": 5, "max_tokens": 9, "logprobs": True}
    (choice,) = asked(server, "/v1/chat/completions", **chat, top_logprobs=2)["choices"]
    content = choice["logprobs"]["content"]
    assert "".join(one["token"] for one in content) == choice["message"]["content"]
    assert {len(one["top_logprobs"]) for one in content} == {2}
    assert bytes(content[0]["bytes"]).decode() == content[0]["token"]


def test_several_prompts_are_written_as_if_each_were_alone(runs: Path) -> None:
    generator = Run.open(runs / "gpt").generator(device="cpu")
    prompts = [Prompt.of(text, open=True) for text in [*PROMPTS, ""]]
    for search in (generator.search.with_method("sample"), generator.search):
        together = generator.write(prompts, max_tokens=6, search=search)
        for prompt, row in zip(prompts, together, strict=True):
            (alone,) = generator.write([prompt], max_tokens=6, search=search)
            assert [one.text for one in row] == [one.text for one in alone]


def test_lines_before_a_prompt_are_read_from_a_file_or_stand_in_it(runs: Path, tmp_path: Path) -> None:
    lines = ["the red cat", "the old dog"]
    (tmp_path / "shots.txt").write_text("".join(f"{line}\n" for line in lines))
    generator = Run.open(runs / "gpt").generator(device="cpu")
    (own,) = generator.hypotheses("the b", before=lines, prompt_open=True, max_tokens=6)
    common = ["generate", str(runs / "gpt"), "--prompt-open", "--max-tokens", "6", "--method", "beam"]
    ways = (["the b", "--before", str(tmp_path / "shots.txt")], ["\n".join([*lines, "the b"])])
    for way in ways:
        result = CliRunner().invoke(app, [*common, *way])
        assert result.stdout == own.text + "\n"
    (blind,) = generator.hypotheses("the b", prompt_open=True, max_tokens=6)
    assert blind.log_prob != own.log_prob


def test_a_stop_is_never_told_though_it_comes_in_parts() -> None:
    for parts in (["the ca", "t an", "d a", " dog"], list("the cat and a dog")):
        told: list[str] = []
        ear = _Ear("the ", ["and a", "hill"], told.append)
        for part in parts:
            ear.hear(part)
        ear.end()
        assert "".join(told) == "cat " and ear.stopped
    assert stop_in("abc", []) == 3 and without_prompt("the cat", "the ") == "cat"
    assert without_prompt("the", "the ") == ""


def test_options_for_translations_need_one(runs: Path) -> None:
    for option in ("--memory", "--corrections"):
        result = CliRunner().invoke(app, ["serve", str(runs / "gpt"), option, str(runs / "text.txt")])
        assert isinstance(result.exception, UserError) and f"{option}: it is for" in str(result.exception)


@pytest.mark.parametrize(
    ("path", "fields", "status", "message"),
    [
        ("predict", {"texts": ["one"]}, 400, "texts.0: a expects a list of two texts"),
        ("predict", {"texts": [["one", " "]]}, 400, "none of them blank"),
        ("predict", {"texts": [["one", "x" * 50]]}, 413, "exceeds text limit (40)"),
        ("predict", {"texts": [["one", "two"]] * 4}, 413, "exceed the limit (6)"),
        ("generate", {"prompts": ["a"], "max_tokens": 33}, 400, "at most 32 pieces for a prompt, found 33"),
        ("generate", {"prompts": ["a"], "max_tokens": 9, "count": 4}, 400, "found 4 × 9"),
        ("generate", {"prompts": ["a"], "count": 9, "max_tokens": 1}, 400, "at most 8, found 9"),
        ("generate", {"prompts": ["a", "b"], "stream": True}, 400, "one continuation of one prompt"),
        ("generate", {"prompts": ["a"], "stop": [""]}, 400, "texts that are not empty"),
        ("generate", {"prompts": ["a"], "stop": ["x"] * 9}, 400, "stop"),
        ("generate", {"prompts": ["a"], "stop": ["x" * 41]}, 413, "stop: a text exceeds text limit (40)"),
        ("generate", {"prompts": ["refuse"]}, 400, "this one is refused"),
        ("generate", {"prompts": ["refuse"], "stream": True}, 400, "this one is refused"),
        ("fill", {"texts": ["a"], "count": 0}, 400, "count"),
        ("embed", {"texts": ["a"], "model": "c"}, 404, "it is not served; expected a"),
    ],
)
def test_what_cannot_be_answered_is_told(
    path: str, fields: dict[str, Any], status: int, message: str
) -> None:
    limits = Limits(characters=40, texts=6, written=32)
    with client_of(None, models=echoes("a", limits=limits)) as client:
        if path == "generate":
            fields = {"max_tokens": 4, **fields}
        response = client.post(f"/api/v1/{path}", json=fields)
    assert response.status_code == status and message in response.json()["error"]


def test_models_stand_beside_translators_behind_the_same_gate() -> None:
    service = service_of()
    models = echoes("a", "b", metrics=service.metrics)
    with client_of(service, Options(keys=Keys(["a-secret-key"])), models) as client:
        assert client.post("/api/v1/embed", json={"texts": ["x"]}).status_code == 401
        wrong = client.post("/v1/embeddings", json={}, headers={"Authorization": "Bearer no"})
        assert wrong.status_code == 401 and wrong.json()["error"]["type"] == "invalid_request_error"
        client.headers["Authorization"] = "Bearer a-secret-key"
        told = client.post("/api/v1/embed", json={"texts": ["x"]}).json()["error"]
        assert told == "model: expected one of a, b"
        assert asked(client, "/api/v1/embed", texts=["xy"], model="b")["vectors"] == [[2.0, 0.1]]
        assert asked(client, "/translate", q="hello", source="en", target="de")["translatedText"] == "HELLO"
        assert client.get("/api/v1/ready").status_code == 200
        assert 'dialect="openai",status="401"} 1' in client.get("/metrics").text
        assert "Translate" in client.get("/").text and "/v1/completions" in client.get("/docs").text
    with client_of(None, models=echoes("a")) as client:
        assert "POST /api/v1/predict" in client.get("/").text
        assert client.get("/api/v1/languages").status_code == 404
    with pytest.raises(UserError, match="two runs have this name"):
        echoes("a", "a")


def generating(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields).encode()
    head = b"POST /api/v1/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_work(echo: Echo) -> Any:
    models = echoes("a", echo=echo, limits=Limits(queue=1, window_s=0))
    return serving_gate(build(None, models=models), models.limits), models


def test_parts_come_while_the_model_writes_and_who_leaves_stops_it() -> None:
    echo = Echo()
    echo.go_on.clear()
    opened, _ = in_work(echo)

    async def story() -> None:
        async with opened as server:
            (client,) = await server.clients(1)
            await client.send(generating({"prompts": ["one two three"], "stream": True}))
            found = b""
            while b'{"text":" one"}' not in found:
                found += await client.receive()
            assert b"text/event-stream" in found and echo.told == 1 and not echo.gone
            client.close()
            await until(lambda: not server.connections.busy)
            echo.go_on.set()
            await until(lambda: echo.gone)
            assert echo.told == 1

    on_a_still_clock(story)


def test_a_full_queue_refuses_and_the_end_waits_for_a_stream() -> None:
    echo = Echo()
    echo.go_on.clear()
    opened, models = in_work(echo)

    async def ended(server: Running, client: Client) -> None:
        server.server.stop()
        await until(lambda: server.connections.draining)
        echo.go_on.set()
        found = await client.rest()
        assert found.count(b"data: ") == 3 and b'"finish_reason":"stop"' in found

    async def story() -> None:
        async with opened as server:
            first, second, third = await server.clients(3)
            await first.send(generating({"prompts": ["one two"], "stream": True}))
            await until(lambda: echo.told)
            await second.send(generating({"prompts": ["three"]}))
            await until(lambda: models.waiting == 1)
            assert await third.ask(generating({"prompts": ["four"]})) == 429
            second.close()
            await ended(server, first)

    on_a_still_clock(story)
