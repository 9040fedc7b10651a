"""All that training changes. A checkpoint holds just this, so a resumed run cannot tell that it stopped."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint import Checkpoint
from dragoman.checkpoint.model import (
    LORA,
    build_described,
    load_into,
    loaded_weights,
    model_description,
    model_tensors,
    own_pairs,
    renamed_weights,
    same_model,
    vocab_of,
)
from dragoman.config import from_dict, to_dict
from dragoman.data.packed import Batch
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.auxiliary import WithLanguageModel
from dragoman.learning.base import captures, may_pack
from dragoman.learning.loss import Loss
from dragoman.runs.config import RunConfig, TrainConfig
from dragoman.runs.directory import Corpus
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.budget import Cooling
from dragoman.training.distributed import ALONE, Crew, gather, parts_like
from dragoman.training.graph_capture import GraphRecorder
from dragoman.training.optim import (
    MovingAverage,
    build_optimizer,
    load_compiler,
    load_optimizer,
    optimizer_tensors,
    replaced_weights,
    scale_at,
)
from dragoman.training.progress import TrainingProgress
from dragoman.training.transfer import Transfer
from dragoman.training.word_vectors import begin_with_vectors


class Fitting:
    """Model and progress of a run; a counting model has nothing else."""

    amp = False
    packed = False
    average: MovingAverage | None = None

    def __init__(self, config: RunConfig, prepared: Corpus, device: torch.device, crew: Crew = ALONE) -> None:
        self.config, self.device, self.crew = config, device, crew
        self.sharded = config.train.shard and crew.connected
        self.fingerprint = prepared.fingerprint
        kind, model_config = config.model_config
        src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
        self.tokenizer = tgt
        vocab = vocab_of(src, tgt)
        self.learning = learning_of(config)
        self.description = model_description(kind, model_config, vocab, src, tgt, self.learning.head(config))
        torch.manual_seed(derive_seed(config.seed, "weights"))
        home = torch.device("cpu") if self.sharded else device  # unsharded, it may not fit on the device
        if config.transfer.lora.rank:
            if self.sharded:
                raise UserError("transfer.lora.rank: pairs are not cut into parts; set train.shard to false")
            self.description[LORA] = to_dict(config.transfer.lora)
        self.model: Any = build_described(self.description).to(home).train()
        if self.model.abilities.needs_spelling:
            self.model.spell([tgt.bytes_of(piece) for piece in range(tgt.size)])
        if self.model.abilities.copies:
            self.model.match_pieces(_copyable(src), _copyable(tgt))
        self.progress = TrainingProgress()

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.amp)

    @contextmanager
    def usable_model(self, tensors: Mapping[str, Tensor] | None = None) -> Iterator[Any]:
        """The model with the weights that will be used: the moving average's, where there is one, or those
        given. Of a model in parts, rank 0 has a whole copy inside; the others have nothing that runs."""
        if not self.sharded:
            weights = tensors or (self.average.tensors if self.average else None)
            with replaced_weights(self.model, weights) if weights else nullcontext():
                yield self.model
            return
        tensors = tensors or self._gathered(
            self.average.tensors if self.average else model_tensors(self.model)
        )
        if not self.crew.first:
            yield self.model
            return
        copy = build_described(self.description).train()
        load_into(copy, tensors, "weights")
        yield copy.to(self.device)

    def _gathered(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return gather(tensors, keep=self.crew.first)

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        return {"model": model_tensors(self.model)}

    def state(self) -> dict[str, Any]:
        return {
            "progress": to_dict(self.progress),
            "model": self.description,
            "weights": "ema" if self.average else "model",
            "fingerprint": self.fingerprint,
            "batch_tokens": self.config.train.batch_tokens,
            "seed": self.config.seed,
            "environment": self.environment(),
        }

    def environment(self) -> dict[str, Any]:
        """Settings that must be equal for a resumed run to be bit-identical."""
        return {
            "torch": torch.__version__,
            "device": self.device.type,
            "threads": torch.get_num_threads(),
            "bf16": self.amp,
            "processes": self.crew.size,
            "packed": self.packed,
        }

    def restore(self, found: Checkpoint) -> list[str]:
        """Restore a checkpoint. Returns the differences in the environment, for a warning."""
        state = found.state
        self._refuse_other_run(found)
        load_into(self.model, self._read(found, "model", model_tensors(self.model)), found.path)
        self.progress = from_dict(TrainingProgress, state["progress"], f"{found.path}: progress")
        now, then = self.environment(), {"processes": 1, "packed": False, **state["environment"]}
        return [f"{key} {then.get(key)} → {now[key]}" for key in now if then.get(key) != now[key]]

    def begin_with(self, found: Checkpoint) -> None:
        """Load only the weights of another run's checkpoint."""
        own = model_tensors(self.model)
        read = loaded_weights(found, "cpu" if self.sharded else self.device)
        tensors = renamed_weights(read, found.state["model"], self.description)
        if self.sharded:
            tensors = parts_like(tensors, own)
        if self.learning.head(self.config) is not None:  # a missing head keeps its initial weights
            tensors = {**{name: own[name] for name in own if name.startswith("head.")}, **tensors}
        load_into(self.model, tensors | own_pairs(self.model), found.path)
        if self.average:
            self.average.load(model_tensors(self.model), found.path)

    def begin_with_vectors(self, path: Path) -> str:
        """Embeddings from a file of word vectors; what was found, in words."""
        if self.sharded:
            raise UserError("transfer.vectors: embeddings are not cut into parts; set train.shard to false")
        told = begin_with_vectors(self.model, self.tokenizer, path)
        if self.average:
            self.average.load(model_tensors(self.model), path)
        return told

    def _read(self, found: Checkpoint, part: str, expected: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Read the tensors of one part of the checkpoint, or this process's shard of them."""
        if self.sharded:
            return parts_like(found.read(part), expected)
        return found.read(part, self.device)

    def _refuse_other_run(self, found: Checkpoint) -> None:
        state = found.state
        for key in ("fingerprint", "seed", "batch_tokens", "model", "environment", "progress"):
            if key not in state:
                raise UserError(f"{found.path}: its state has no '{key}'")
        if state["fingerprint"] != self.fingerprint:
            raise UserError(
                f"{found.path}: it was trained on another corpus (fingerprint {state['fingerprint'][:12]}…, "
                f"the data here have {self.fingerprint[:12]}…): start a new run for other data"
            )
        if (state["seed"], state["batch_tokens"]) != (self.config.seed, self.config.train.batch_tokens):
            raise UserError(
                f"{found.path}: seed and train.batch_tokens cannot change: they fix the order of the data"
            )
        if not same_model(state["model"], self.description):
            raise UserError(f"{found.path}: it holds another model or tokenizer than the run's configuration")


class Training(Fitting):
    """Training by gradients: the model, an optimizer, and the average of the weights."""

    def __init__(self, config: RunConfig, prepared: Corpus, device: torch.device, crew: Crew = ALONE) -> None:
        load_compiler()
        super().__init__(config, prepared, device, crew)
        self.transfer = Transfer(config.transfer, self.model)
        self.objective = self.learning.objective(config, self.model, crew.size)
        self.carried = self.objective.carried
        if config.transfer.auxiliary_lm:
            self.objective = WithLanguageModel(self.objective, config.transfer.auxiliary_lm, self.model)
        self._passes = crew.wrap(self.model, self.objective, self.sharded)
        self.optimizer = build_optimizer(config.optim, self.model, self.transfer.scales)
        averages = config.train.ema or config.train.asgd
        self.average = MovingAverage(self.model, config.train.ema) if averages else None
        self.parameters = list(self.model.parameters())
        self.amp = uses_bf16(config.train, device)
        self.packed = may_pack(self.learning, config, self.model, device) and not self.sharded
        self.ahead = device.type == "cuda" and not crew.connected
        """Whether the host may launch an update before the device is done with the one before."""
        steady = captures(self.learning, config, self.model)
        anew = steady and config.train.accumulate == 1
        recorded = self.ahead and (self.packed or steady)
        self.recorder = GraphRecorder(self.passed, self.parameters, anew) if recorded else None
        self.time_share = 0.0
        """How much of the time for updates had passed when this update began; the same in every process."""
        if device.type == "cuda":  # cuDNN benchmarks every new shape, which pays only if there are few
            torch.backends.cuda.enable_cudnn_sdp(steady)

    @property
    def rate(self) -> float:
        """The learning rate of the update under way."""
        assert self.config.optim.rate is not None, "the configuration is resolved before training"
        progress = self.progress
        scale = scale_at(self.config.schedule, progress.update, progress.plateau_cuts, self.time_share)
        if progress.spent is not None and progress.spent.cooling_since is not None:
            scale *= Cooling(progress.spent.cooling_since).scale(self.time_share)
        return self.config.optim.rate * scale

    def loss(self, batch: Batch, update: int) -> Loss:
        if self._passes is None:
            return self.objective(self.model, batch, update)
        total, nll = self._passes(batch, update)
        return Loss(total, nll, batch.num_tokens)

    def passed(self, batch: Batch, update: int = 0, counts: bool = True) -> tuple[Tensor, Tensor]:
        """Forwards and backwards: the summed loss, and the negative log-likelihood. A batch that does not
        `count` has a gradient of zeros."""
        with self.autocast():
            loss = self.loss(batch, update)
        (loss.total if counts else loss.total * 0).backward()
        return loss.total.detach(), loss.nll.detach()  # what is kept must not keep the graph

    def part(self, last: bool) -> AbstractContextManager[None]:
        """Around the passes of one batch: only with the last one do processes exchange gradients."""
        return nullcontext() if self._passes is None else self._passes.part(last)

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """All that a checkpoint holds. Of a model in parts: for rank 0, and all have to ask."""
        parts = super().tensors() | {"optim": optimizer_tensors(self.optimizer, self.model)}
        parts = parts | {"ema": self.average.tensors} if self.average else parts
        if self.carried is not None:
            parts |= {"carried": self.carried.tensors()}
        return {name: self._gathered(part) for name, part in parts.items()} if self.sharded else parts

    def restore(self, found: Checkpoint) -> list[str]:
        changed = super().restore(found)
        expected = optimizer_tensors(self.optimizer, self.model)
        load_optimizer(self.optimizer, self.model, self._read(found, "optim", expected), found.path)
        if self.average:
            part = "ema" if "ema" in found.parts else "model"  # the average was switched on just now
            self.average.load(self._read(found, part, self.average.tensors), found.path)
        if self.carried is not None:
            self.carried.load(found.read("carried", self.device))
        return changed


def _copyable(tokenizer: Tokenizer) -> list[str | None]:
    """The names of all pieces; None for control pieces, which write nothing."""
    names = tokenizer.pieces(range(tokenizer.size))
    return [name if tokenizer.bytes_of(piece) else None for piece, name in enumerate(names)]


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    return config.amp == "bf16" or (config.amp == "auto" and device.type == "cuda")


def derive_seed(*key: int | str) -> int:
    """64 bits that are a pure function of `key`, for torch.manual_seed."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
