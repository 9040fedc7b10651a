"""A trained model for ONNX Runtime, in the layout of optimum and transformers.js.

    onnx/encoder_model.onnx           with int8 weights encoder_model_quantized.onnx
    onnx/decoder_model_merged.onnx    with and without a cache
    config.json                       sizes and ids, in the words of Marian's configuration
    tokenizer.json                    for the tokenizers library, if it can represent the tokenizer
    export.json                       hashes of all files, search settings and languages

Programs read only the size of the cache and the special ids from config.json. The computation is in the
graphs, so models without a class in transformers run too: rotary positions, LSTMs.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.checkpoint.model import LoadedModel
from dragoman.config import from_dict
from dragoman.decode.alignment.attention import SequencePair
from dragoman.decode.search.config import SearchConfig
from dragoman.engines.export import DEFAULT_POSITIONS, check_positions, write_tokenizers
from dragoman.engines.manifest import MANIFEST, ONNX, ONNX_FOLDER, Export, manifest_bytes
from dragoman.engines.onnx_graph import OnnxGraph
from dragoman.errors import UserError
from dragoman.files import explained, hash_file, new_directory, scratch_directory, write_new
from dragoman.models import config_class
from dragoman.models.base import EncoderDecoder
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID, EOS_ID, PAD_ID

QUANTIZATIONS = ("float32", "int8")
_ENCODER, _DECODER, _INT8 = "encoder_model", "decoder_model_merged", "_quantized"
"""File names that optimum and transformers.js expect."""
_LARGEST_FILE = (1 << 31) - (1 << 20)
"""Maximum size of a graph with its weights: protobuf's limit."""


def export_onnx(
    loaded: LoadedModel,
    out: Path,
    *,
    search: SearchConfig,
    languages: tuple[str, str] = ("src", "tgt"),
    quantize: str = "float32",
    positions: int = DEFAULT_POSITIONS,
    card: str | None = None,
) -> Path:
    """Write the model to `out`, atomically."""
    if quantize not in QUANTIZATIONS:
        raise UserError(f"--quantize: for ONNX expected {' or '.join(QUANTIZATIONS)}, found '{quantize}'")
    check_positions(positions)
    described = loaded.state["model"]
    kind = str(described["kind"])
    config = from_dict(config_class(kind), described["config"], "model")
    graphs, shape = _graphs(loaded.model, kind, config, positions)
    ids = {"pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
    ids["decoder_start_token_id"] = BOS_ID
    suffix = _INT8 if quantize == "int8" else ""
    with explained(out), new_directory(out) as directory:
        (directory / ONNX_FOLDER).mkdir()
        for name, graph in graphs.items():
            _write_graph(directory / ONNX_FOLDER / f"{name}{suffix}.onnx", graph, quantize)
        write_new(directory / "config.json", (_json(_config(loaded.model, shape) | ids),))
        write_new(directory / "generation_config.json", (_json(_generation(search) | ids),))
        tokenizers = write_tokenizers(directory, loaded.src_tokenizer, loaded.tgt_tokenizer)
        if (directory / "tokenizer.json").exists():
            write_new(directory / "tokenizer_config.json", (_json(_tokenizer_config(loaded.src_tokenizer)),))
        names = (path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
        export = Export(
            engine=ONNX,
            quantization=quantize,
            positions=positions if isinstance(config, TransformerConfig) else None,
            shortlist=False,
            src_lang=languages[0],
            tgt_lang=languages[1],
            tokenizers=tokenizers,
            search=search,
            files={name: hash_file(directory / name) for name in sorted(names)},
        )
        write_new(directory / MANIFEST, (manifest_bytes(export),))
        if card is not None:
            write_new(directory / "README.md", (card.encode("utf-8"),))
    return out


def _graphs(
    model: EncoderDecoder, kind: str, config: object, positions: int
) -> tuple[dict[str, OnnxGraph], dict[str, int]]:
    """Both graphs by name, and the sizes of the cache."""
    if getattr(config, "copy", False):
        raise UserError(
            "model.copy: the ONNX graphs cannot copy from the source; use the run itself, or train one with "
            "model.copy=false"
        )
    if isinstance(config, TransformerConfig):
        from dragoman.engines import onnx_transformer as transformer

        transformer.refuse_unsupported(config)
        heads, head_dim, _ = config.heads
        rows = max(positions, config.max_positions) if config.positions == "learned" else positions
        return {
            _ENCODER: transformer.encoder_graph(model, config, rows),
            _DECODER: transformer.decoder_graph(model, config, rows),
        }, {"layers": config.decoder_layers, "heads": heads, "width": heads * head_dim, "positions": rows}
    if isinstance(config, RnnConfig):
        from dragoman.engines import onnx_recurrent as recurrent

        recurrent.refuse_unsupported_recurrent(config)
        return {
            _ENCODER: recurrent.encoder_graph(model, config),
            _DECODER: recurrent.decoder_graph(model, config),
        }, {"layers": 1, "heads": 1, "width": recurrent.cache_width(config), "positions": positions}
    raise UserError(f"model.kind: only transformer and rnn are written as ONNX, not {kind}")


def _write_graph(path: Path, graph: OnnxGraph, quantize: str) -> None:
    content = graph.model().SerializeToString()
    if len(content) > _LARGEST_FILE:
        raise UserError(f"{path}: a graph of {len(content):,} bytes is more than a file of ONNX can hold")
    write_new(path, (_in_int8(content) if quantize == "int8" else content,))


def _in_int8(content: bytes) -> bytes:
    """The graph with int8 matrices; activations are quantised dynamically."""
    from onnxruntime.quantization import (  # pyright: ignore[reportMissingImports]
        QuantType,
        quantize_dynamic,
    )

    with scratch_directory() as scratch:
        whole, small = scratch / "whole.onnx", scratch / "small.onnx"
        whole.write_bytes(content)
        options = {"per_channel": True, "weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul"]}
        quantize_dynamic(whole, small, **options)
        return small.read_bytes()


def _config(model: EncoderDecoder, shape: dict[str, int]) -> dict[str, Any]:
    sides = {"layers": shape["layers"], "attention_heads": shape["heads"], "ffn_dim": shape["width"]}
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "d_model": shape["width"],
        "num_hidden_layers": shape["layers"],
        **{f"{side}_{name}": size for name, size in sides.items() for side in ("encoder", "decoder")},
        "max_position_embeddings": shape["positions"],
        "vocab_size": model.vocab.tgt_size,
        "forced_eos_token_id": None,
        "use_cache": True,
    }


def _generation(search: SearchConfig) -> dict[str, Any]:
    from dragoman.decode.search.config import EARLY_STOPPING, BeamSearch

    beam = search.converted(BeamSearch, n_best=1)
    return {
        "num_beams": beam.beam,
        "length_penalty": beam.alpha,
        "early_stopping": EARLY_STOPPING[beam.stop] if beam.beam > 1 else False,
        "bad_words_ids": [[PAD_ID], [BOS_ID]],
        "forced_eos_token_id": None,
        "max_length": 512,
    }


def _tokenizer_config(tokenizer: Tokenizer) -> dict[str, Any]:
    names = tokenizer.pieces(range(3))
    about = dict(zip(("pad_token", "bos_token", "eos_token"), names, strict=True))
    return {"tokenizer_class": "PreTrainedTokenizerFast", **about}


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def largest_difference(
    exported: EncoderDecoder, ours: EncoderDecoder, pairs: Sequence[SequencePair]
) -> float:
    """Largest difference of the log-probabilities of target pieces, over given pairs of ids."""
    import torch

    from dragoman.data.batch import collate

    worst = 0.0
    with torch.inference_mode():
        for pair in pairs:
            batch = collate([pair])
            ours_and_theirs = [
                model.project(model(batch.src_ids, batch.src_mask, batch.tgt_in)).log_softmax(-1)
                for model in (ours, exported)
            ]
            worst = max(worst, float((ours_and_theirs[0] - ours_and_theirs[1]).abs().max()))
    return worst
