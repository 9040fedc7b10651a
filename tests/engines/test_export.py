"""What lies in an export, what is refused, what damage is noticed, and that none of it needs torch."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import tokenizers
from typer.testing import CliRunner, Result

import dragoman
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import LoadedModel
from dragoman.cli.main import app
from dragoman.data.alignment.links import pharaoh
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.engines import export as export_module
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.engines.manifest import MANIFEST, is_export, manifest_bytes, read_export
from dragoman.errors import UserError
from dragoman.files import hash_file
from dragoman.runs.directory import Run
from dragoman.text.sentencepiece_model import sentencepiece_model
from dragoman.text.spans import DEFAULT_KINDS
from engines.conftest import MakeModel

WITHOUT_TORCH = "import sys; sys.modules['torch'] = sys.modules['jaxtyping'] = None\n"


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_everything_lies_in_the_directory(exported: Path, run: Run) -> None:
    assert is_export(exported) and not is_export(run.directory)
    export = read_export(exported)
    assert {path.name for path in exported.iterdir()} == {MANIFEST, *export.files}
    own = {"model.bin", "config.json", "shared_vocabulary.json", "dragoman_tokenizer.json"}
    assert {*own, "tokenizer.json", "sentencepiece.model"} == set(export.files)
    assert (export.src_lang, export.tgt_lang, export.positions) == ("en", "de", 1024)
    assert export.search == run.config.search
    kept = (exported / "dragoman_tokenizer.json").read_bytes()
    assert kept == (run.directory / "tokenizer.json").read_bytes()


def test_others_can_use_it(exported: Path, ours: Translator, unseen: list[str]) -> None:
    """With ctranslate2 and the library tokenizers alone: pieces have their names."""
    tokenizer = tokenizers.Tokenizer.from_file(str(exported / "tokenizer.json"))
    names = json.loads((exported / "shared_vocabulary.json").read_text("utf-8"))
    assert names == ours.tgt_tokenizer.pieces(range(ours.tgt_tokenizer.size))
    engine = ctranslate2.Translator(str(exported), device="cpu", intra_threads=1)
    rows = [[names[number] for number in tokenizer.encode(text).ids] for text in unseen[:8]]
    found = engine.translate_batch(rows, beam_size=1, max_decoding_length=30)
    said = [tokenizer.decode([names.index(name) for name in one.hypotheses[0]]) for one in found]
    search = SearchConfig(beam=1, loop_guard=False, max_ratio=0, max_extra=30)
    assert said == ours.translate(unseen[:8], search=search)
    assert "▁" in "".join(names) and rows[0][-1] == "</s>"


def test_an_export_of_before_still_loads(
    exported: Path, ours: Translator, unseen: list[str], tmp_path: Path
) -> None:
    """Its pieces were called by their numbers, and its tokenizer.json was ours."""
    export = read_export(exported)
    for name in ("model.bin", "config.json"):
        (tmp_path / name).write_bytes((exported / name).read_bytes())
    names = json.loads((exported / "shared_vocabulary.json").read_text("utf-8"))
    numbers = json.dumps([str(number) for number in range(len(names))])
    (tmp_path / "shared_vocabulary.json").write_text(numbers, "utf-8")
    config = json.loads((exported / "config.json").read_text("utf-8"))
    config = {key: str(names.index(value)) if value in names else value for key, value in config.items()}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "tokenizer.json").write_bytes((exported / "dragoman_tokenizer.json").read_bytes())
    files = {path.name: hash_file(path) for path in tmp_path.iterdir()}
    old = replace(export, tokenizers=("tokenizer.json",), files=files)
    (tmp_path / MANIFEST).write_bytes(manifest_bytes(old))
    fast = CTranslate2Translator.open(tmp_path)
    assert fast.translate(unseen[:5]) == ours.translate(unseen[:5])
    prefixed = [hypotheses[0].text for hypotheses in fast.hypotheses(unseen[:2], prefixes=["AB", "AB"])]
    assert all(text.startswith("AB") for text in prefixed)


def test_the_commands(run: Run, ours: Translator, unseen: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command("export", run.directory, "--to", "ctranslate2", "--out", out, "--shortlist")
    assert done.exit_code == 0 and str(out) in done.stdout, done.output
    assert read_export(out).shortlist
    done = command("export", run.directory, "--quantize", "int8")
    assert done.exit_code == 0 and is_export(run.directory / "ctranslate2-int8"), done.output
    plain = tmp_path / "plain"
    assert command("export", run.directory, "--out", plain).exit_code == 0
    texts = unseen[:10]
    translated = command("translate", plain, *texts)
    assert translated.stdout.splitlines() == ours.translate(texts) and translated.exit_code == 0
    best = json.loads(command("translate", plain, texts[0], "--json", "--beam", 3, "--n-best", 2).stdout)
    expected = ours.hypotheses(texts[:1], search=SearchConfig(loop_guard=False, beam=3, n_best=2))[0]
    assert [one["text"] for one in best["translations"]] == [one.text for one in expected]
    (tmp_path / "pairs.tsv").write_text("".join(f"{text}\tAB\n" for text in texts), encoding="utf-8")
    scored = [command("score", one, tmp_path / "pairs.tsv").stdout for one in (plain, run.directory)]
    numbers = [[float(cell) for cell in text.split()] for text in scored]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-4) and len(numbers[0]) == 30
    assert "runs on the CPU" in str(command("translate", plain, "a", "--device", "cuda").exception)


@pytest.mark.parametrize("supported", [{"float32", "int8_float32"}, {"float32", "int16"}])
def test_numbers_that_a_cpu_does_not_have_are_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: set[str]
) -> None:
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda _device: supported)
    for kind, computed in (("int16", "int16" in supported), ("int8", "int8_float32" in supported)):
        done = command("export", run.directory, "--quantize", kind, "--out", tmp_path / kind)
        assert (f"does not compute in {kind} on this CPU" in done.output) == (not computed), done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "tensorrt"], "--to: expected ctranslate2, huggingface, onnx or argos, found 'tensorrt'"),
        (
            ["--quantize", "int4"],
            "--quantize: expected one of float32, int8, int8_float32, int16, found 'int4'",
        ),
        (["--positions", "0"], "--positions: expected a whole number from 1 to 1,048,576, found 0"),
        (
            ["--positions", "99999999999"],
            "--positions: expected a whole number from 1 to 1,048,576, found 99,999,999,999",
        ),
    ],
)
def test_wrong_options(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    assert str(command("export", run.directory, "--out", tmp_path / "x", *arguments).exception) == message
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("rnn", {"model_dim": 8}, "model.kind: CTranslate2 runs the kind transformer, not rnn"),
        ("markov", {}, "model.kind: CTranslate2 runs the kind transformer, not markov"),
        ("transformer", {"decoder_self": "average"}, "model.decoder_self: CTranslate2 has no average"),
        ("transformer", {"copy": True}, "model.copy: CTranslate2 cannot copy from the source"),
        ("transformer", {"value_dim": 4}, "model.value_dim: in CTranslate2 keys and values have one width"),
    ],
)
def test_models_that_it_cannot_run(
    make_model: MakeModel, tmp_path: Path, kind: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        export_ctranslate2(make_model(kind, **fields), tmp_path / "out", search=SearchConfig())
    assert not list(tmp_path.iterdir())


def test_searches_that_it_cannot_run(loaded: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"search\.stop"):
        export_ctranslate2(loaded, tmp_path / "out", search=SearchConfig(stop="limit"))


def test_nothing_is_overwritten_and_nothing_half_is_left(
    loaded: LoadedModel, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="this exists already"):
        export_ctranslate2(loaded, exported, search=SearchConfig())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_module, "write_new", full)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\)"):
        export_ctranslate2(loaded, tmp_path / "out", search=SearchConfig())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", [MANIFEST, "model.bin", "config.json", "dragoman_tokenizer.json", "shared_vocabulary.json"]
)
def test_a_flipped_bit_is_noticed(exported: Path, tmp_path: Path, name: str) -> None:
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    CTranslate2Translator.open(tmp_path)
    damaged = bytearray((exported / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(UserError) as caught:
        CTranslate2Translator.open(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / name)) and "\n" not in str(caught.value)
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match=name):
        CTranslate2Translator.open(tmp_path)


def test_load_takes_an_export_as_a_run(exported: Path, ours: Translator, unseen: list[str]) -> None:
    assert dragoman.load(exported).translate(unseen[:5]) == ours.translate(unseen[:5])
    with pytest.raises(UserError, match="holds one checkpoint; there is no 'last'"):
        dragoman.load(exported, which="last")
    with pytest.raises(UserError, match="runs on the CPU, not on 'cuda'"):
        dragoman.load(exported, device="cuda")


def test_it_translates_without_torch(exported: Path, ours: Translator, unseen: list[str]) -> None:
    program = WITHOUT_TORCH + (
        "from dragoman.engines.ctranslate2 import CTranslate2Translator\n"
        "translator = CTranslate2Translator.open(sys.argv[1])\n"
        "print('\\n'.join(translator.translate(sys.argv[2:])))\n"
    )
    commanded = WITHOUT_TORCH + "sys.argv[1:1] = ['translate']\nfrom dragoman.cli.main import main; main()"
    for code in (program, commanded):
        done = subprocess.run(
            [sys.executable, "-c", code, str(exported), *unseen[:5]], capture_output=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ours.translate(unseen[:5])


def test_it_is_steered_without_torch(exported: Path, ours: Translator, unseen: list[str]) -> None:
    """Protection, alignment, a prefix, a forbidden phrase, and a stream, by the command."""
    program = WITHOUT_TORCH + (
        "sys.argv[1:1] = ['translate']\n"
        "from dragoman.cli.main import main\n"
        "steered = ['--prefix', 'AB ', '--forbid', 'BA']\n"
        "texts, options = sys.argv[3:6], [[], ['--align'], steered, ['--stream']]\n"
        "for given in options:\n"
        "    sys.argv[2:] = [sys.argv[2], *texts, '--beam', '1', *given]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "    sys.stdout.flush()\n"
    )
    texts = [f"{unseen[0]} {{x}}", unseen[1], f"<b>{unseen[2]}</b>"]
    done = subprocess.run(
        [sys.executable, "-c", program, str(exported), *texts], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    search = SearchConfig(beam=1)
    plain = ours.translate(texts, search=search, protect=DEFAULT_KINDS)
    aligned = ours.hypotheses(texts, search=search, protect=DEFAULT_KINDS, align=True)
    assert lines[:3] == lines[9:] == plain
    assert lines[3:6] == [f"{best.text}\t{pharaoh(best.alignment or ())}" for best, *_ in aligned]
    steered = ours.hypotheses(
        texts, search=search, prefixes=["AB "] * 3, forbidden=["BA"], protect=DEFAULT_KINDS
    )
    assert lines[6:9] == [best.text for best, *_ in steered]
    assert lines[6].startswith("AB ")


def test_a_glossary_is_refused_at_once(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("a\tb\n")
    refused = command("translate", exported, "x", "--glossary", tmp_path / "terms.tsv").exception
    assert str(refused).startswith("--glossary: CTranslate2 cannot insist on terms")


def test_a_package_for_argos(run: Run, ours: Translator, unseen: list[str], tmp_path: Path) -> None:
    """What Argos Translate does with it: pieces without an end, a beam, pieces joined."""
    file = tmp_path / "en_de.argosmodel"
    done = command("export", run.directory, "--to", "argos", "--out", file)
    assert done.exit_code == 0 and str(file) in done.output, done.output
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    (package,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    about = json.loads((package / "metadata.json").read_text("utf-8"))
    assert (about["from_code"], about["from_name"], about["to_code"]) == ("en", "English", "de")
    tokenizer, texts = ours.src_tokenizer, unseen[:8]
    (tmp_path / "again").write_bytes(sentencepiece_model(tokenizer))
    assert (package / "sentencepiece.model").read_bytes() == (tmp_path / "again").read_bytes()
    engine = ctranslate2.Translator(str(package / "model"), device="cpu", intra_threads=1)
    rows = [tokenizer.pieces(tokenizer.encode(text)) for text in texts]
    said = engine.translate_batch(rows, beam_size=4, length_penalty=0.2, max_decoding_length=30)
    search = SearchConfig(beam=4, alpha=0.2, loop_guard=False, stop="complete", max_ratio=0, max_extra=30)
    expected = ours.translate(texts, search=search)
    assert ["".join(one.hypotheses[0]).replace("▁", " ").lstrip(" ") for one in said] == expected
    again = tmp_path / "twice.argosmodel"
    assert command("export", run.directory, "--to", "argos", "--out", again).exit_code == 0
    assert again.read_bytes() == file.read_bytes()
    refused = command("export", run.directory, "--to", "argos", "--shortlist").exception
    assert "no --shortlist" in str(refused)


def test_scoring_commands_take_exports(
    run: Run, exported: Path, make_model: MakeModel, unseen: list[str], tmp_path: Path
) -> None:
    """Of CTranslate2 and of Hugging Face; `test_onnx.py` has the one of ONNX Runtime."""
    published = export_huggingface(make_model(), tmp_path / "published", beam=2)
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{text}\t{text.upper()}\n" for text in unseen[:10]), "utf-8")
    lines = []
    for directory in (run.directory, exported, published):
        done = command("evaluate", directory, test, "--beam", "1", "--bootstrap", "0")
        assert done.exit_code == 0, done.output
        lines.append(next(line for line in done.output.splitlines() if "BLEU" in line))
        assert (directory / "evaluation" / "test.tsv" / "report.json").exists()
        done = command("align", directory, test)
        assert done.exit_code == 0 and len(done.output.splitlines()) >= 10, done.output
    assert lines[0] == lines[1]
    assert "an export names no test set" in str(command("evaluate", exported).exception)
    labels = [part for name in "abc" for part in ("--label", name)]
    runs = run.directory, exported, published
    done = command("compare", *runs, "--test", test, "--out", tmp_path / "lengths", "--beam", "1", *labels)
    assert done.exit_code == 0, done.output
    refused = command("evaluate", tmp_path / "en_de.argosmodel", test).exception
    assert "dragoman export RUN --to ctranslate2" in str(refused)
