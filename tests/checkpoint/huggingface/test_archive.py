"""Archives of Marian: a random one, with Marian's names, beside transformers' model of its weights."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
import yaml

from dragoman.checkpoint.huggingface import read_model
from dragoman.decode.search.config import SearchConfig
from dragoman.errors import UserError
from dragoman.training.import_published import import_run
from text.test_sentencepiece import SCORES, spm

OPTIONS = {
    "type": "transformer",
    "tied-embeddings-all": True,
    "enc-depth": 2,
    "dec-depth": 1,
    "dim-emb": 16,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
}
NAMES = ["</s>", "<unk>", "▁", "a", "b", '"', "c", ">>deu<<", "ab", "▁a", ":", "▁abc"]
DIM, SIZE = 16, len(NAMES)


def weights() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(5)

    def matrix(*shape: int) -> np.ndarray:
        return draw.normal(0, 0.5, shape).astype(np.float32)

    found = {"Wemb": matrix(SIZE, DIM), "decoder_ff_logit_out_b": matrix(1, SIZE)}
    for layer in ("encoder_l1", "encoder_l2", "decoder_l1"):
        for part in ("self", "context") if layer.startswith("decoder") else ("self",):
            for key in "qkvo":
                found[f"{layer}_{part}_W{key}"] = matrix(DIM, DIM)
                found[f"{layer}_{part}_b{key}"] = matrix(1, DIM)
            found[f"{layer}_{part}_Wo_ln_scale"] = 1 + matrix(1, DIM)
            found[f"{layer}_{part}_Wo_ln_bias"] = matrix(1, DIM)
        found |= {f"{layer}_ffn_W1": matrix(DIM, 24), f"{layer}_ffn_b1": matrix(1, 24)}
        found |= {f"{layer}_ffn_W2": matrix(24, DIM), f"{layer}_ffn_b2": matrix(1, DIM)}
        found |= {f"{layer}_ffn_ffn_ln_scale": 1 + matrix(1, DIM), f"{layer}_ffn_ffn_ln_bias": matrix(1, DIM)}
    return found


def write(directory: Path, options: dict[str, object], arrays: dict[str, np.ndarray]) -> Path:
    directory.mkdir()
    told = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
    np.savez(directory / "opus.npz", **arrays, **{"special:model.yml": told})
    rows = ((f"'{name}'" if name in '":' else name, number) for number, name in enumerate(NAMES))
    (directory / "opus.vocab.yml").write_text("".join(f"{name}: {n}\n" for name, n in rows), "utf-8")
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(spm(["<unk>", "<s>", "</s>"], SCORES))
    return directory


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("marian") / "in", OPTIONS, weights())


def theirs() -> transformers.MarianMTModel:
    """As transformers' converter does it: transposed, with a row for <pad>."""
    config = transformers.MarianConfig(
        **{"vocab_size": SIZE + 1, "d_model": DIM, "encoder_layers": 2, "decoder_layers": 1},
        **{"encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_function": "swish"},
        **{
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            "scale_embedding": True,
            "forced_eos_token_id": None,
        },
        **{"pad_token_id": SIZE, "eos_token_id": 0, "decoder_start_token_id": SIZE, "bos_token_id": None},
    )
    model, arrays = transformers.MarianMTModel(config).eval(), weights()
    attentions = {"self": "self_attn", "context": "encoder_attn"}
    with torch.no_grad():
        model.model.shared.weight.copy_(torch.tensor(np.pad(arrays["Wemb"], ((0, 1), (0, 0)))))
        model.final_logits_bias.copy_(
            torch.tensor(np.pad(arrays["decoder_ff_logit_out_b"], ((0, 0), (0, 1))))
        )
        for name, array in arrays.items():
            side, _, rest = name.partition("_l")
            if not rest or side not in ("encoder", "decoder"):
                continue
            number, _, rest = rest.partition("_")
            layer = getattr(model.model, side).layers[int(number) - 1]
            part, _, kind = rest.partition("_")
            if "_ln_" in kind:
                norm = "final" if part == "ffn" else attentions[part]
                module = getattr(layer, f"{norm}_layer_norm")
            elif part == "ffn":
                module = getattr(layer, f"fc{kind[1]}")
            else:
                place = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}[kind[1]]
                module = getattr(getattr(layer, attentions[part]), place)
            is_weight = kind.endswith("scale") or (kind.startswith("W") and "_ln_" not in kind)
            target = module.weight if is_weight else module.bias
            target.copy_(
                torch.tensor(array).flatten() if "_ln_" in kind or kind[0] == "b" else torch.tensor(array).T
            )
    return model


def test_the_same_numbers(archive: Path) -> None:
    model, other = read_model(archive).model, theirs()
    order = torch.tensor([SIZE, SIZE, 0, *range(1, SIZE)])
    source, target = torch.tensor([[5, 6, 9, 2], [7, 2, 0, 0]]), torch.tensor([[1, 8, 6, 4], [1, 11, 4, 3]])
    mask = source != 0
    with torch.no_grad():
        logits = model.project(model(source, mask, target))
        expected = other(
            input_ids=order[source], attention_mask=mask.long(), decoder_input_ids=order[target]
        ).logits[..., order]
    torch.testing.assert_close(logits[..., 2:], expected[..., 2:], atol=2e-5, rtol=1e-5)
    assert (logits[..., :2] < -5000).all()  # Marian has no <pad>


def test_blank_lines_and_remarks_in_a_vocabulary_are_no_pieces(tmp_path: Path) -> None:
    directory = write(tmp_path / "in", OPTIONS, weights())
    path = directory / "opus.vocab.yml"
    path.write_text("# made by marian-vocab\n\n" + path.read_text("utf-8") + "  \n", "utf-8")
    loaded = read_model(directory)
    assert loaded.src_tokenizer.size == SIZE + 2  # with <pad>, which stands for two control pieces
    assert loaded.src_tokenizer.pieces(loaded.src_tokenizer.encode("ab c")) == ["▁", "ab", "▁", "c"]


def test_each_side_is_cut_by_its_own_sentencepiece_model(tmp_path: Path) -> None:
    """As published for transformers: two models, and one vocabulary that numbers the pieces of both."""
    theirs().save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate([*NAMES, "<pad>"])}))
    fewer = {piece: score for piece, score in SCORES.items() if piece != "ab"}
    for name, scores in (("source.spm", SCORES), ("target.spm", fewer)):
        (tmp_path / name).write_bytes(spm(["<unk>", "<s>", "</s>"], scores))
    loaded = read_model(tmp_path)
    assert loaded.src_tokenizer.pieces(loaded.src_tokenizer.encode("ab")) == ["▁", "ab"]
    assert loaded.tgt_tokenizer.pieces(loaded.tgt_tokenizer.encode("ab")) == ["▁a", "b"]


def test_a_run_of_it(archive: Path, tmp_path: Path) -> None:
    run = import_run(archive, tmp_path / "run", ("en", "de"), ">>deu<< ")
    translator = run.translator(device="cpu")
    assert translator.src_tokenizer.pieces(translator.src_tokenizer.encode("ab"))[0] == ">>deu<<"
    other, order = theirs(), [SIZE, SIZE, 0, *range(1, SIZE)]
    search = SearchConfig(beam=1, loop_guard=False, max_ratio=0, max_extra=8)
    for text in ("ab c", "abc a"):
        ids = [order[number] for number in translator.src_tokenizer.encode(text)] + [0]
        said = other.generate(
            torch.tensor([ids]), num_beams=1, do_sample=False, max_new_tokens=8, bad_words_ids=[[SIZE]]
        )[0][1:].tolist()
        ((best, *_),) = translator.hypotheses([text], search=search)
        found = [order[number] for number in best.tokens]
        assert said[: len(found)] == found[: len(said)]


@pytest.mark.parametrize(
    ("options", "extra", "message"),
    [
        ({"transformer-postprocess": "dn"}, {}, "transformer-postprocess"),
        ({"type": "s2s"}, {}, "type"),
        ({"enc-depth": "two"}, {}, "encoder layers"),
        ({}, {"encoder_l9_self_Wq": np.zeros((2, 2), np.float32)}, "layers.8"),
        ({}, {"other": np.zeros((2, 2), np.int32)}, "no matrix of float32"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, options: dict[str, object], extra: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_model(write(tmp_path / "in", {**OPTIONS, **options}, {**weights(), **extra}))


def test_no_pickle_is_opened(tmp_path: Path) -> None:
    directory = write(tmp_path / "in", OPTIONS, weights())
    np.savez(directory / "opus.npz", Wemb=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UserError, match="not an archive of arrays"):
        read_model(directory)
    (directory / "opus.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(UserError, match="not an archive of arrays"):
        read_model(directory)


def test_a_header_that_tells_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    directory = write(tmp_path / "m", OPTIONS, weights())
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 1 << 20)}
    )
    with zipfile.ZipFile(directory / "opus.npz", "a") as archive:
        archive.writestr("more.npy", header.getvalue() + b"\0" * 16)
    with pytest.raises(UserError, match=r"opus.npz: not an archive of arrays .*more.npy: its header"):
        read_model(directory)
