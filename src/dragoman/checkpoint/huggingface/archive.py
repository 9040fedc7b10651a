"""Marian's own archives (.npz with vocab.yml and SentencePiece files), as OPUS-MT publishes them.

An archive becomes what a Hugging Face directory of the same model holds: fields of config.json, tensors under
transformers' names, and a vocabulary with `<pad>` last. As there, `<pad>` has a zero embedding and begins the
target; Marian has no such piece, so it has no part in the softmax. Arrays are read without pickle.
"""

import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.checkpoint.huggingface.bart_layers import BIAS, SHARED
from dragoman.errors import UserError, shown
from dragoman.files import read_regular
from dragoman.nn.linear import SILENCE
from dragoman.plain import parse_yaml
from dragoman.text.tokenizer_file import LARGEST_VOCABULARY

_OPTIONS, _EMBEDDING, _OUT = "special:model.yml", "Wemb", "decoder_ff_logit_out_b"
_PAD, _EOS = "<pad>", "</s>"
_LARGEST_VOCABULARY_FILE, _LARGEST_ARCHIVE = 64 << 20, 16 << 30
_ONLY = {
    "type": "transformer",
    "tied-embeddings-all": True,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-ffn-depth": 2,
    "transformer-train-position-embeddings": False,
    "transformer-tied-layers": [],
}
"""Options that have one value here, where they are told at all."""
_PARTS = {"self": "self_attn", "context": "encoder_attn"}
_PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
_NAME = re.compile(r"(encoder|decoder)_l(\d{1,4})_(self|context|ffn)_(.+)")


def is_archive(directory: Path) -> bool:
    return not (directory / "config.json").exists() and any(directory.glob("*.npz"))


def read_archive(directory: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The fields of config.json, and the weights."""
    path = _only(directory, "*.npz", "archive of weights")
    arrays = _read_arrays(path)
    options = _read_options(path, arrays)
    vocabulary = read_vocabulary(directory)
    embedding = arrays.get(_EMBEDDING)
    if embedding is None or embedding.ndim != 2:
        raise UserError(f"{path}: it has no matrix {_EMBEDDING}; only models with one embedding are read")
    size = len(vocabulary) - 1
    if len(embedding) != size:
        raise UserError(f"{path}: {_EMBEDDING} has {len(embedding)} rows, and the vocabulary {size} pieces")
    bias = arrays.pop(_OUT, np.zeros((1, size), np.float32))
    tensors = {_renamed(name): _tensor(name, array) for name, array in arrays.items() if name != _EMBEDDING}
    tensors[SHARED] = torch.cat([torch.from_numpy(embedding), torch.zeros(1, embedding.shape[1])])
    tensors[BIAS] = torch.cat([torch.from_numpy(bias).flatten(), torch.tensor([SILENCE])])[None]
    shape = {"layers": ("enc-depth", "dec-depth")}
    shape |= {"attention_heads": ("transformer-heads",) * 2, "ffn_dim": ("transformer-dim-ffn",) * 2}
    fields = {
        f"{side}_{name}": options.get(told[place])
        for name, told in shape.items()
        for place, side in enumerate(("encoder", "decoder"))
    }
    for name, value in fields.items():
        if type(value) is not int:
            raise UserError(f"{path}: its options do not tell {name.replace('_', ' ')}")
    return fields | {
        "model_type": "marian",
        "d_model": embedding.shape[1],
        "vocab_size": size + 1,
        "pad_token_id": size,
        "decoder_start_token_id": size,
        "eos_token_id": vocabulary[_EOS],
        "activation_function": options.get("transformer-ffn-activation", "swish"),
        "scale_embedding": True,
        "dropout": 0.1,
        "share_encoder_decoder_embeddings": True,
    }, tensors


def read_vocabulary(directory: Path) -> dict[str, int]:
    """The number of every piece, `<pad>` last. A line is `piece: number`; quoted pieces are YAML's."""
    path = _only(directory, "*vocab*.yml", "vocabulary")
    found: dict[str, int] = {}
    for place, line in enumerate(
        read_regular(path, _LARGEST_VOCABULARY_FILE).decode("utf-8").splitlines(), 1
    ):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, number = line.rpartition(": ")
        if name[:1] in "\"'":
            read = parse_yaml(name.encode())
            name = read if isinstance(read, str) else ""
        if not name or not number.strip().isdecimal() or name in found:
            raise UserError(f"{path}:{place}: expected a piece and its number, found {shown(line)}")
        found[name] = int(number)
    if not 0 < len(found) < LARGEST_VOCABULARY or sorted(found.values()) != list(range(len(found))):
        raise UserError(f"{path}: it does not number its pieces from 0 on")
    if _EOS not in found or _PAD in found:
        raise UserError(f"{path}: expected a piece {_EOS} and none that is called {_PAD}")
    return {**found, _PAD: len(found)}


def _only(directory: Path, pattern: str, what: str) -> Path:
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise UserError(f"{directory}: expected one {what} ({pattern}), found {names}")
    return found[0]


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _LARGEST_ARCHIVE:
                raise UserError(f"{path}: its arrays take more than {_LARGEST_ARCHIVE:,} bytes")
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry) for entry in entries}
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise UserError(f"{path}: not an archive of arrays ({shown(str(error))})") from None


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """The size that the header tells is held to that of the entry before memory is taken for it."""
    known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in known:
            raise ValueError(f"{entry.filename}: arrays of version {version} are not known")
        shape, _, dtype = known[version](file)
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > entry.file_size:
            raise ValueError(f"{entry.filename}: its header does not fit its size")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _read_options(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    told = arrays.pop(_OPTIONS, None)
    if told is None:
        raise UserError(f"{path}: it has no options ({_OPTIONS})")
    text = told.tobytes().rstrip(b"\0")
    found = parse_yaml(text)
    if not isinstance(found, dict):
        raise UserError(f"{path}: its options are not a mapping")
    for name, value in _ONLY.items():
        if found.get(name, value) != value:
            raise UserError(
                f"{path}: {name}: such models are read with {shown(value)} alone, found {shown(found[name])}"
            )
    return found


def _renamed(name: str) -> str:
    """transformers' name; what has none keeps its own, and is refused by it later."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name
    side, layer, part, rest = match.groups()
    place = f"model.{side}.layers.{int(layer) - 1}"
    if part == "ffn":
        kinds = {"W1": "fc1.weight", "b1": "fc1.bias", "W2": "fc2.weight", "b2": "fc2.bias"}
        norms = {"ffn_ln_scale": "final_layer_norm.weight", "ffn_ln_bias": "final_layer_norm.bias"}
        known = kinds | norms
        return f"{place}.{known[rest]}" if rest in known else name
    own = _PARTS[part]
    norms = {"Wo_ln_scale": f"{own}_layer_norm.weight", "Wo_ln_bias": f"{own}_layer_norm.bias"}
    kinds = {f"W{key}": f"{own}.{value}.weight" for key, value in _PROJECTIONS.items()}
    kinds |= {f"b{key}": f"{own}.{value}.bias" for key, value in _PROJECTIONS.items()}
    known = norms | kinds
    return f"{place}.{known[rest]}" if rest in known else name


def _tensor(name: str, array: np.ndarray) -> Tensor:
    """Matrices stand on their side there, and vectors are matrices of one row."""
    if array.dtype != np.float32 or array.ndim > 2:
        raise UserError(
            f"'{name}' holds no matrix of float32, but {array.dtype} of the shape {list(array.shape)}"
        )
    tensor = torch.from_numpy(array)
    is_vector = "_ln_" in name or re.search(r"_b[qkvo12]$", name) is not None
    return tensor.flatten() if is_vector else tensor.t().contiguous()
