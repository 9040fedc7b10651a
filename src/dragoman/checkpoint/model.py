"""Load the model of a run directory; the training data are not needed.

run/best.json             name of the best checkpoint
run/tokenizer.json        or tokenizer.src.json and tokenizer.tgt.json
run/checkpoints/NAME/     weights; its state.json describes the model and its tokenizers
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor, nn

from dragoman import checkpoint
from dragoman.config import WIDEST, check_counts, check_not_negative, from_dict, to_dict
from dragoman.errors import UserError, shown
from dragoman.files import read_regular, remove_unfinished, replace_file
from dragoman.models import Network, build_network, config_class
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.task_heads import HeadConfig, TaskNetwork, make_head
from dragoman.nn.context_counts import CountTable
from dragoman.nn.lora import add_pairs, folded_tensors, pair_names
from dragoman.text.tokenizer import Tokenizer

CHECKPOINTS = "checkpoints"
BEST = "best.json"
_BEST_LIMIT = 1 << 20
LORA = "lora"
"""Key of the LoRA settings in the description of a model."""
_NETWORK, _HEAD = "network", "head"
"""The two parts of a `TaskNetwork`."""
_JOINT, _SRC, _TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


@dataclass(frozen=True)
class LoadedNetwork:
    model: Network | TaskNetwork
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    name: str
    """Name of the checkpoint of the weights."""
    state: dict[str, Any]


@dataclass(frozen=True)
class LoadedModel(LoadedNetwork):
    model: EncoderDecoder


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Weights and buffers by name; a tied weight is listed once, under the first of its names.

    The constructor of a model ties its weights, so loading one name sets them all.
    """
    unique: dict[int, str] = {}
    entries = model.state_dict(keep_vars=True)
    for name, tensor in entries.items():
        unique.setdefault(id(tensor), name)
    return {name: entries[name].detach() for name in unique.values()}


def load_into(model: nn.Module, tensors: Mapping[str, Tensor], source: object) -> None:
    """Copy weights into a model in place; names and shapes must be exactly the model's.

    Only tables of counts take the sizes of the file.
    """
    tables = {name: module for name, module in model.named_modules() if isinstance(module, CountTable)}
    for name, table in tables.items():
        table.make_room(name, tensors)
    expected = model_tensors(model)
    checkpoint.refuse_other_names(source, tensors, expected)
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])
    for name, table in tables.items():  # wrong offsets would allocate memory without limit
        if not table.keys.is_meta and not table.is_sound():
            raise UserError(f"{source}: '{name}' is not a table of counts: its rows contradict each other")


def model_description(
    kind: str, config: object, vocab: Vocab, src: Tokenizer, tgt: Tokenizer, head: HeadConfig | None = None
) -> dict[str, Any]:
    """The description of a model in a checkpoint: enough to rebuild it, and to refuse another tokenizer."""
    described = {
        "kind": kind,
        "config": to_dict(config),
        "vocab": asdict(vocab),
        "tokenizers": {"src": src.sha256, "tgt": tgt.sha256},
    }
    return described if head is None else {**described, _HEAD: to_dict(head)}


def renamed_weights(
    tensors: Mapping[str, Tensor], described: Mapping[str, Any], wanted: Mapping[str, Any]
) -> dict[str, Tensor]:
    """The weights of a network under the names that they have with and without a head. Head weights are kept
    if the head is the same."""
    parts = _parted(tensors, described)
    if _HEAD not in wanted:
        return parts[_NETWORK]
    named = {f"{_NETWORK}.{name}": tensor for name, tensor in parts[_NETWORK].items()}
    if _HEAD in described and _head_of(described) == _head_of(wanted):
        named |= {f"{_HEAD}.{name}": tensor for name, tensor in parts[_HEAD].items()}
    return named


def _parted(tensors: Mapping[str, Tensor], described: Mapping[str, Any]) -> dict[str, dict[str, Tensor]]:
    """The weights of the network and of its head, each under its own names."""
    parts: dict[str, dict[str, Tensor]] = {_HEAD: {}, _NETWORK: {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".") if _HEAD in described else (_NETWORK, ".", name)
        if part not in parts:
            raise UserError(f"tensor {shown(name)} is neither of the network nor of its head")
        parts[part][rest] = tensor
    return parts


def same_model(described: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptions are of the same model; old ones lack newer options."""
    return _completed(described) == _completed(other)


def _completed(described: Mapping[str, Any]) -> dict[str, Any]:
    config = from_dict(config_class(str(described["kind"])), described["config"], "model")
    head = {_HEAD: to_dict(_head_of(described))} if _HEAD in described else {}
    return {**described, "config": to_dict(config), **head}


def _head_of(described: Mapping[str, Any]) -> HeadConfig:
    return from_dict(HeadConfig, described[_HEAD], _HEAD)


@dataclass(frozen=True)
class _Lora:
    rank: int
    alpha: float
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        check_counts(self, "rank", most=WIDEST)
        check_not_negative(self, "alpha")


def _lora_of(described: Mapping[str, Any]) -> _Lora | None:
    return from_dict(_Lora, described[LORA], LORA) if described.get(LORA) is not None else None


def vocab_of(src: Tokenizer, tgt: Tokenizer) -> Vocab:
    return Vocab(src.size, tgt.size, src.config.joint, src.pad_id, src.bos_id, src.eos_id)


def tokenizer_files(run: Path) -> list[Path]:
    """One file if both sides share a vocabulary, otherwise one for source and one for target."""
    joint = run / _JOINT
    return [joint] if joint.exists() else [run / _SRC, run / _TGT]


def save_tokenizers(run: Path, src: Tokenizer, tgt: Tokenizer) -> None:
    if src.config.joint and src.sha256 == tgt.sha256:
        src.save(run / _JOINT)
    else:
        src.save(run / _SRC)
        tgt.save(run / _TGT)


def load_tokenizers(run: Path) -> tuple[Tokenizer, Tokenizer]:
    loaded = [Tokenizer.load(path) for path in tokenizer_files(run)]
    return loaded[0], loaded[-1]


def check_tokenizers(run: Path, state: Mapping[str, Any], src: Tokenizer, tgt: Tokenizer) -> None:
    trained_with = state["model"]["tokenizers"]
    files = tokenizer_files(run)
    for side, tokenizer, path in (("src", src, files[0]), ("tgt", tgt, files[-1])):
        if tokenizer.sha256 != trained_with[side]:
            raise UserError(
                f"{path}: this is not the tokenizer that the model was trained with: its SHA-256 is "
                f"{tokenizer.sha256[:12]}…, the checkpoint says {str(trained_with[side])[:12]}…"
            )


def _check_vocab(found: checkpoint.Checkpoint, src: Tokenizer, tgt: Tokenizer) -> None:
    told = from_dict(Vocab, found.state["model"]["vocab"], f"{found.path / checkpoint.STATE}: vocab")
    if told != vocab_of(src, tgt):
        raise UserError(f"{found.path / checkpoint.STATE}: vocab: these are not the sizes of the tokenizers")


def read_best(run: Path) -> dict[str, Any] | None:
    """Name, metric and value of the best checkpoint so far."""
    path = run / BEST
    try:
        raw = read_regular(path, _BEST_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    try:
        best = json.loads(raw)
        return {"name": str(best["name"]), "metric": str(best["metric"]), "value": float(best["value"])}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: damaged: choose a checkpoint by its name, or resume the run") from None


def write_best(run: Path, best: Mapping[str, Any]) -> None:
    replace_file(run / BEST, json.dumps(dict(best), indent=1).encode())


def load_model(run: Path, device: torch.device | str = "cpu", which: str = "best") -> LoadedModel:
    """The model of a run, ready to translate. `which` is `best`, `last`, or the name of a checkpoint."""
    loaded = load_network(run, device, which)
    if isinstance(loaded.model, TaskNetwork):
        raise UserError(
            f"{run}: this run is fine-tuned for a task; use it with  dragoman predict {quote(str(run))}"
        )
    if not isinstance(loaded.model, EncoderDecoder):
        raise UserError(f"{run}: its model reads and does not write")
    return LoadedModel(
        loaded.model, loaded.src_tokenizer, loaded.tgt_tokenizer, name=loaded.name, state=loaded.state
    )


def load_network(run: Path, device: torch.device | str = "cpu", which: str = "best") -> LoadedNetwork:
    """Load the network of any run, including encoders such as BERT."""
    chosen = find_checkpoint(run, which)
    src, tgt = load_tokenizers(run)
    try:
        check_tokenizers(run, chosen.state, src, tgt)
        _check_vocab(chosen, src, tgt)
        model = build_with(chosen.state["model"], loaded_weights(chosen), chosen.path, folded=True)
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{chosen.path / checkpoint.STATE}: it does not describe a model") from None
    return LoadedNetwork(model.to(device).eval(), src, tgt, chosen.name, chosen.state)


def find_checkpoint(run: Path, which: str = "best") -> checkpoint.Checkpoint:
    """The best checkpoint, the last, or the one with this name."""
    root = run / CHECKPOINTS
    if not root.is_dir():
        raise UserError(f"{run}: there is no trained model here (a run directory holds '{CHECKPOINTS}')")
    best = read_best(run) if which == "best" else None
    if best is not None:
        best_checkpoint = checkpoint.load_checkpoint(root / Path(best["name"]).name)
        _refuse_other_best(run, best, best_checkpoint)
        return best_checkpoint
    if which in ("best", "last"):  # not validated yet: use the last one
        last = checkpoint.newest(root)
        if which == "best":
            checkpoint.refuse_lost_best(run / BEST, last)
        return last
    if Path(which).name == which:
        remove_unfinished(root / which)  # a process that died while it replaced this checkpoint
    if Path(which).name != which or not (root / which).is_dir():
        known = ", ".join(checkpoint.names(root)) or "none"
        raise UserError(f"{run}: there is no checkpoint '{which}'; there are {known}")
    return checkpoint.load_checkpoint(root / which)


def _refuse_other_best(run: Path, best: Mapping[str, Any], found: checkpoint.Checkpoint) -> None:
    """A best checkpoint also records this itself, so a flipped bit in best.json cannot choose another."""
    own = checkpoint.told_best(found.state)
    if own is None or any(own.get(key) != value for key, value in best.items()):
        raise UserError(f"{run / BEST}: damaged: {found.name} is not the best checkpoint that it tells of")


def build_with(
    described: Mapping[str, Any], tensors: Mapping[str, Tensor], source: object, folded: bool = False
) -> Network | TaskNetwork:
    """Build the described model with the weights of a file.

    A description may contain any sizes. So they are checked against the weights before memory is allocated:
    the model is built on the device "meta" first, where tensors have shapes but no data.
    """
    shapes = {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
    lora = _lora_of(described)
    if lora is not None:
        shapes = folded_tensors(shapes, lora.rank, lora.alpha)
    parts = _parted(shapes, described)
    try:
        with torch.device("meta"):
            network = _network_of(described)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    load_into(network, parts[_NETWORK], source)
    network = _network_of(described)
    if _HEAD in described:
        load_into(make_head(network, _head_of(described), device="meta"), parts[_HEAD], source)
    model = _assembled(network, described, folded)
    load_into(model, tensors, source)
    return model


def build_described(described: Mapping[str, Any], folded: bool = False) -> Network | TaskNetwork:
    """Build a model with its LoRA matrices (`nn/lora.py`), or with them merged. Sizes are trusted; use
    `build_with` for untrusted descriptions."""
    return _assembled(_network_of(described), described, folded)


def _network_of(described: Mapping[str, Any]) -> Network:
    kind = str(described["kind"])
    config = from_dict(config_class(kind), described["config"], "model")
    return build_network(kind, config, from_dict(Vocab, described["vocab"], "vocab"))


def _assembled(network: Network, described: Mapping[str, Any], folded: bool) -> Network | TaskNetwork:
    model = TaskNetwork(network, _head_of(described)) if _HEAD in described else network
    lora = _lora_of(described)
    if lora is not None and not folded:
        add_pairs(model, lora.rank, lora.alpha, lora.targets)
    return model


def loaded_weights(chosen: checkpoint.Checkpoint, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """The weights of a checkpoint for inference, with LoRA matrices merged."""
    tensors = chosen.read(str(chosen.state["weights"]), device)
    lora = _lora_of(chosen.state["model"])
    return dict(tensors) if lora is None else folded_tensors(tensors, lora.rank, lora.alpha)


def own_pairs(model: nn.Module) -> dict[str, Tensor]:
    """The LoRA matrices of a model by name. The model that a run starts from has none."""
    tensors = model_tensors(model)
    return {name: tensors[name] for name in pair_names(model)}
