"""The page is one file that asks nobody for anything, shows text as text, and computes what we compute."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from battery.models import make
from dragoman.models.base import EncoderDecoder
from dragoman.probe.attention_steps import steps_of
from dragoman.probe.inside import look_inside
from dragoman.probe.page import fill_template, make_page, probe_asset
from dragoman.probe.vectors import vectors_of
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

SRC, TGT = [5, 9, 4, 11, 7], [8, 3, 12, 6]
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "<!--<script>", "&lt;"]


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.contents.setdefault(self.found[-1][0] if self.found else "", []).append(data)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["abcdefghijklmno"], TokenizerConfig(kind="char"))


def page_of(model: EncoderDecoder, source: str, tokenizer: Tokenizer) -> str:
    seen = look_inside(model, SRC, TGT)
    return make_page(source, seen, vectors_of(model, SRC, TGT), (tokenizer, tokenizer), about="a & b")


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.mark.parametrize("source", HOSTILE)
def test_text_stays_text(source: str, tokenizer: Tokenizer) -> None:
    page = page_of(make("lstm-bahdanau"), source, tokenizer)
    assert data_of(page)["source"] == source
    plain = page_of(make("lstm-bahdanau"), "plain", tokenizer)
    assert [tag for tag, _ in Elements(page).found] == [tag for tag, _ in Elements(plain).found]


def test_nothing_comes_from_outside_and_only_our_script_runs(tokenizer: Tokenizer) -> None:
    page = page_of(make("transformer"), "a", tokenizer)
    assert set(re.findall(r"https?://[^\"'\s]+", page)) <= {
        "http://www.w3.org/2000/svg"
    }  # a name, no address
    for _, attributes in Elements(page).found:
        assert not {"src", "href", "style", "onclick", "onload", "onerror"} & attributes.keys()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    script, style = (re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL) for tag in ("script", "style"))
    for content in (*script, *style):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(script) == len(style) == 1
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(")
    assert not any(markup.search(probe_asset(name)) for name in ("page.js", "numbers.js"))


def test_what_the_page_holds(tokenizer: Tokenizer) -> None:
    model = make("transformer")
    seen, data = look_inside(model, SRC, TGT), data_of(page_of(model, "a", tokenizer))
    assert [(own["kind"], own["layer"], own["masked"]) for own in data["attentions"]] == [
        (each.kind, each.layer, each.kind == "decoder") for each in seen.attentions
    ]
    for own, each in zip(data["attentions"], seen.attentions, strict=True):
        weights = np.frombuffer(base64.b64decode(own["weights"]), "<u2").reshape(each.weights.shape)
        assert weights / 65535 == pytest.approx(each.weights.numpy(), abs=1e-5)
        assert (len(own["rows"]), len(own["columns"])) == each.weights.shape[1:]
    sides = data["sides"]
    assert (
        sides["src"]["pieces"] == tokenizer.pieces(seen.src_ids) and sides["written"]["words"][-1] == "</s>"
    )
    assert data["scores"] == pytest.approx(seen.token_scores, abs=1e-5)
    assert data["attentions"][3]["rows"][1] == "8 › 3"
    scored = data_of(page_of(make("convs2s"), "a", tokenizer))
    assert all(own["vectors"] is None and own["why"] for own in scored["attentions"])
    assert data_of(page_of(make("rnn-none"), "a", tokenizer))["attentions"] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the page's script with")
def test_the_pages_six_steps_are_ours(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The very numbers of the page, by the very script of the page."""
    names = ("transformer", "transformer-shaw", "transformer-t5")
    (tmp_path / "numbers.js").write_text(probe_asset("numbers.js"), encoding="utf-8")
    models = {name: make(name) for name in names}
    pages = {name: data_of(page_of(model, "a", tokenizer))["attentions"] for name, model in models.items()}
    (tmp_path / "data.json").write_text(json.dumps(pages), encoding="utf-8")
    (tmp_path / "run.js").write_text(
        """
        const { numbersOf, sixSteps } = require("./numbers.js");
        const found = {};
        for (const [name, attentions] of Object.entries(require("./data.json"))) {
          found[name] = attentions.map(({ vectors }) => {
            for (const part of ["query", "key", "value", "bias"])
              if (vectors[part] !== null) vectors[part] = numbersOf(vectors[part]);
            const { rows, summed } = sixSteps(vectors, 1, 2);
            const [scores, weights] = ["score", "weight"].map((part) => rows.map((row) => row[part]));
            return { scores, weights, summed: Array.from(summed) };
          });
        }
        console.log(JSON.stringify(found));
        """,
        encoding="utf-8",
    )
    done = subprocess.run(["node", "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    for name, found in json.loads(done.stdout).items():
        vectors = vectors_of(models[name], SRC, TGT)
        seen = look_inside(models[name], SRC, TGT)
        for own, each in zip(found, seen.attentions, strict=True):
            steps = steps_of(vectors[each.module], 1, 2)
            assert own["scores"] == pytest.approx(steps.scores, abs=1e-5)
            assert own["weights"] == pytest.approx(steps.weights, abs=1e-6)
            assert own["summed"] == pytest.approx(steps.summed, abs=1e-5)


def test_an_empty_page_is_whole() -> None:
    page = fill_template({"source": "@STYLE@ @DATA@"})
    assert data_of(page) == {"source": "@STYLE@ @DATA@"}
    assert page.count("<script") == page.count("</script>") == 2
