"""ONNX Runtime beside our own model: the same scores, the same translations, the same surface."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from typer.testing import CliRunner

from dragoman.checkpoint.model import LoadedModel
from dragoman.cli.main import app
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.engines.manifest import verify_export
from dragoman.engines.onnx_export import export_onnx
from dragoman.engines.onnx_model import OnnxTranslator
from dragoman.errors import UserError
from dragoman.runs.directory import Run
from engines.conftest import MakeModel

TRANSFORMERS = {
    "rotary": {"positions": "rotary", "norm": "pre"},
    "rotary-halves": {
        "positions": "rotary",
        "position_layout": "halves",
        "gated": True,
        "activation": "silu",
    },
    "sinusoidal": {"activation": "gelu", "tie_embeddings": False},
    "learned": {"positions": "learned", "max_positions": 6, "activation": "gelu_tanh", "head_dim": 5},
    "t5": {
        **{"positions": "t5", "relative_buckets": 8, "relative_max_distance": 10, "norm_kind": "rms"},
        **{"bias": False, "scale_attention": False, "scale_embeddings": False, "scale_output": True},
    },
    "shaw": {"positions": "shaw", "relative_window": 3, "norm_embeddings": True},
}
RECURRENT = {
    "lstm": {},
    "gru": {"cell": "gru", "num_layers": 2, "attention": "scaled_dot"},
    "cosine": {"wiring": "luong", "attention": "cosine"},
    "input-feeding": {"wiring": "luong", "attention": "dot", "input_feeding": True, "bidirectional": False},
    "concat": {"cell": "rnn", "attention": "concat", "attention_dim": 12},
    "no-attention": {"attention": "none"},
}
GREEDY, BEAM = SearchConfig(loop_guard=False, beam=1), SearchConfig(loop_guard=False, beam=3)


def _compare(loaded: LoadedModel, directory: Path, texts: list[str]) -> None:
    ours = Translator(loaded.model, loaded.src_tokenizer, loaded.tgt_tokenizer, BEAM)
    fast = OnnxTranslator.open(export_onnx(loaded, directory / "out", search=BEAM))
    pairs = list(zip(texts, texts[::-1], strict=True))
    for mine, theirs in zip(ours.score(pairs), fast.score(pairs), strict=True):
        assert theirs.token_scores == pytest.approx(mine.token_scores, abs=5e-5)
    for search in (GREEDY, BEAM):
        expected = [best[0].tokens for best in ours.hypotheses(texts, search=search)]
        assert [best[0].tokens for best in fast.hypotheses(texts, search=search)] == expected


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(make_model: MakeModel, tmp_path: Path, texts: list[str], name: str) -> None:
    _compare(make_model(**TRANSFORMERS[name], output_bias=True), tmp_path, texts[:12])


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_models(make_model: MakeModel, tmp_path: Path, texts: list[str], name: str) -> None:
    _compare(make_model("rnn", model_dim=16, **RECURRENT[name]), tmp_path, texts[:12])


def test_each_side_with_its_own_vocabulary(make_model: MakeModel, tmp_path: Path, texts: list[str]) -> None:
    _compare(make_model(joint=False, num_layers=1), tmp_path, texts[:6])


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("transformer", {"copy": True}, "model.copy"),
        ("transformer", {"decoder_self": "average"}, "model.decoder_self"),
        ("transformer", {"value_dim": 3}, "model.value_dim"),
        ("rnn", {"model_dim": 16, "attention": "location"}, "model.attention"),
        ("convs2s", {"model_dim": 16, "num_layers": 1}, "only transformer and rnn"),
    ],
)
def test_what_has_no_graph(
    make_model: MakeModel, tmp_path: Path, kind: str, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        export_onnx(make_model(kind, **fields), tmp_path / "out", search=BEAM)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def out(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_onnx(loaded, tmp_path_factory.mktemp("onnx") / "out", search=GREEDY, languages=("en", "de"))


def test_the_layout_that_optimum_loads(out: Path, loaded: LoadedModel) -> None:
    assert sorted(path.name for path in (out / "onnx").iterdir()) == [
        "decoder_model_merged.onnx",
        "encoder_model.onnx",
    ]
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert config["vocab_size"] == loaded.tgt_tokenizer.size
    assert config["d_model"] % config["decoder_attention_heads"] == 0
    assert verify_export(out) == []
    path = out.parent / "changed"
    path.mkdir()
    for file in out.rglob("*"):
        if file.is_file():
            (path / file.relative_to(out)).parent.mkdir(exist_ok=True)
            (path / file.relative_to(out)).write_bytes(file.read_bytes() + b"x" * file.name.startswith("enc"))
    with pytest.raises(UserError, match=r"encoder_model\.onnx: changed"):
        OnnxTranslator.open(path)


def test_too_long_a_text(loaded: LoadedModel, tmp_path: Path) -> None:
    fast = OnnxTranslator.open(export_onnx(loaded, tmp_path / "out", search=GREEDY, positions=5))
    with pytest.raises(UserError, match="more than the 5 positions"):
        fast.translate(["the cat sat on the mat and then slept"])


def test_int8(loaded: LoadedModel, ours: Translator, tmp_path: Path, unseen: list[str]) -> None:
    small = export_onnx(loaded, tmp_path / "out", search=GREEDY, quantize="int8")
    assert (small / "onnx" / "encoder_model_quantized.onnx").exists()
    pairs = [(text, text.upper()) for text in unseen[:20]]
    mine, theirs = (translator.score(pairs) for translator in (ours, OnnxTranslator.open(small)))
    assert [one.log_prob for one in theirs] == pytest.approx([one.log_prob for one in mine], abs=0.5)
    with pytest.raises(UserError, match="for ONNX expected float32 or int8"):
        export_onnx(loaded, tmp_path / "other", search=GREEDY, quantize="int16")


def test_the_documented_loop(out: Path, ours: Translator, unseen: list[str]) -> None:
    page = Path("docs/engines.md").read_text("utf-8")
    (code,) = (
        part for part in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def translate" in part
    )
    names: dict[str, object] = {}
    exec(code.replace('"en-de-onnx"', repr(str(out))), names)
    translate = names["translate"]
    assert callable(translate)
    assert [translate(text).strip() for text in unseen[:10]] == ours.translate(unseen[:10], search=GREEDY)


def test_commands_take_it(run: Run, out: Path, unseen: list[str], tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    written = tmp_path / "out"
    done = invoke(app, ["export", str(run.directory), "--to", "onnx", "-o", str(written)])
    assert done.exit_code == 0 and "checked with ONNX Runtime on" in done.output
    assert (written / "README.md").exists()
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{text}\t{text.upper()}\n" for text in unseen[:10]), "utf-8")
    done = invoke(app, ["evaluate", str(written), str(test), "--bootstrap", "0"])
    assert done.exit_code == 0 and "BLEU" in done.output, done.output
    done = invoke(app, ["translate", str(out), unseen[0]])
    assert done.output.strip() == unseen[0].upper()


OPENED = """
import sys
from pathlib import Path
from dragoman.engines.opening import open_export
open_export(Path(sys.argv[1])).translate(["a"])
"""


def test_nothing_of_its_use_is_written_down_or_sent(out: Path, tmp_path: Path) -> None:
    """ONNX Runtime keeps a list of what it is used for until it has sent it to its makers."""
    variables = {name: str(tmp_path) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run([sys.executable, "-c", OPENED, str(out)], env=kept | variables, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert list(tmp_path.iterdir()) == []
