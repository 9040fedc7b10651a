"""A model that ONNX Runtime runs, with the interface of `models/base.py`: our search, constraints and scores
work as with a run. The search needs PyTorch; docs/engines.md shows a loop without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled, Job
from dragoman.decode.translator.base import SentenceProgress
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, Translator
from dragoman.engines.manifest import ONNX, ONNX_FOLDER, Export, read_export
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, Memory, Vocab
from dragoman.nn.state import rows_of
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.tokenizer import Tokenizer

_PAST, _PRESENT = "past_key_values", "present"


class _Session:
    """An ONNX Runtime session of one graph."""

    def __init__(self, path: Path) -> None:
        import onnxruntime  # pyright: ignore[reportMissingImports]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self._session: Any = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library has many exception classes
            reason = str(error).splitlines()[0]
            raise UserError(f"{path}: ONNX Runtime cannot load this model ({reason})") from None
        self.inputs: dict[str, list[Any]] = {one.name: one.shape for one in self._session.get_inputs()}
        self.outputs: list[str] = [one.name for one in self._session.get_outputs()]

    def __call__(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = self._session.run(None, {name: tensor.numpy() for name, tensor in tensors.items()})
        return {name: torch.from_numpy(part) for name, part in zip(self.outputs, found, strict=True)}


class OnnxEncoder(nn.Module):
    def __init__(self, session: _Session) -> None:
        super().__init__()
        self.session = session

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        found = self.session({"input_ids": src_ids, "attention_mask": src_mask.long()})
        return Memory(found["last_hidden_state"], src_mask)


class OnnxDecoder(nn.Module):
    """The decoder graph; it returns scores over the vocabulary."""

    def __init__(self, session: _Session) -> None:
        super().__init__()
        self.session = session
        self.empty = {
            name: (shape[1], shape[3]) for name, shape in session.inputs.items() if name.startswith(_PAST)
        }
        """Number of heads and width of each part of the cache."""
        self.one_by_one = session.inputs["input_ids"][1] == 1

    def start(self, memory: Memory) -> "OnnxState":
        past = {
            name: memory.hidden.new_zeros(len(memory.hidden), heads, 0, width)
            for name, (heads, width) in self.empty.items()
        }
        return OnnxState(memory.hidden, memory.mask, past, beams=1)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "OnnxState"
    ) -> tuple[Float[Tensor, "N V"], "OnnxState"]:
        logits, state = self._read(last_ids[:, None], state)
        return logits[:, -1], state

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T V"]:
        state = self.start(memory)
        if not self.one_by_one:
            return self._read(tgt_in, state)[0]
        found = []
        for ids in tgt_in.unbind(1):
            logits, state = self.step(ids, state)
            found.append(logits)
        return torch.stack(found, dim=1)

    def _read(
        self, ids: Int[Tensor, "N T"], state: "OnnxState"
    ) -> tuple[Float[Tensor, "N T V"], "OnnxState"]:
        cached = next(iter(state.past.values())).size(2) > 0
        found = self.session(
            {
                "input_ids": ids.contiguous(),
                "encoder_hidden_states": state.hidden,
                "encoder_attention_mask": state.mask.long(),
                "use_cache_branch": torch.tensor([cached]),
                **state.past,
            }
        )
        past = {f"{_PAST}{name.removeprefix(_PRESENT)}": part for name, part in found.items()}
        logits = past.pop(f"{_PAST}logits")
        return logits, replace(state, past=past)


@dataclass(frozen=True)
class OnnxState:
    """The state of a search; every tensor has one row per beam."""

    hidden: Float[Tensor, "N S D"]
    mask: Bool[Tensor, "N S"]
    past: dict[str, Tensor]
    beams: int

    def expand(self, k: int) -> Self:
        rows = torch.arange(len(self.hidden)).repeat_interleave(k)
        return replace(self._rows(rows), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        past = {
            name: part if ".encoder." in name else part.index_select(0, order)
            for name, part in self.past.items()
        }
        return replace(self, past=past)  # the beams of a sentence share their memory

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        return self._rows(rows_of(sentences, self.beams))

    def _rows(self, rows: Int[Tensor, "R"]) -> Self:
        past = {name: part.index_select(0, rows) for name, part in self.past.items()}
        return replace(
            self, hidden=self.hidden.index_select(0, rows), mask=self.mask.index_select(0, rows), past=past
        )


class OnnxTranslator(Translator):
    """An export for ONNX Runtime with its tokenizers."""

    def __init__(self, directory: Path, export: Export) -> None:
        tokenizers = [Tokenizer.load(directory / name) for name in export.tokenizers]
        src, tgt = tokenizers[0], tokenizers[-1]
        model = _model(directory, export, Vocab(src.size, tgt.size, shared=len(tokenizers) == 1))
        super().__init__(model, src, tgt, export.search)
        self.export, self.languages = export, (export.src_lang, export.tgt_lang)
        self.longest_source = None if export.positions is None else export.positions - 1

    @classmethod
    def open(cls, directory: Path | str) -> "OnnxTranslator":
        """Verify every file of an export and load it."""
        directory = Path(directory)
        export = read_export(directory)
        if export.engine != ONNX:
            raise UserError(f"{directory}: this is an export for {export.engine}, not for ONNX Runtime")
        return cls(directory, export)

    def jobs(
        self, texts: Sequence[str], constraints: Sequence[Constraints], cancelled: Sequence[Cancelled]
    ) -> list[Job]:
        jobs = super().jobs(texts, constraints, cancelled)
        self.export.refuse_long((len(job.source) - 1 for job in jobs), "text")
        return jobs

    def search_jobs(
        self,
        jobs: Sequence[Job],
        config: SearchConfig,
        batch_tokens: int | None = None,
        progress: SentenceProgress | None = None,
        scored: bool = True,
    ) -> list[list[Hypothesis]]:
        if (most := self.export.positions) is not None:
            config = replace(config, max_length=min(most, config.max_length or most))
        if self.export.quantization == "int8":
            batch_tokens = 1  # activations have one scale per batch: a result would depend on the other texts
        return super().search_jobs(jobs, config, batch_tokens, progress, scored)

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        for side, tokenizer in enumerate((self.src_tokenizer, self.tgt_tokenizer)):
            rows = tokenizer.encode_batch([pair[side] for pair in pairs])
            self.export.refuse_long(map(len, rows), ("source", "target")[side])
        return super().score(pairs, alpha=alpha, batch_tokens=batch_tokens)


def _model(directory: Path, export: Export, vocab: Vocab) -> EncoderDecoder:
    graphs = sorted(name for name in export.files if name.startswith(f"{ONNX_FOLDER}/"))
    if len(graphs) != 2:
        raise UserError(f"{directory}: expected an encoder and a decoder, found {len(graphs)} graphs")
    decoder, encoder = (_Session(directory / name) for name in graphs)
    rows = {"input_ids", "attention_mask"}, {"input_ids", "encoder_hidden_states", "encoder_attention_mask"}
    for session, needed in zip((encoder, decoder), rows, strict=True):
        if not needed <= set(session.inputs):
            raise UserError(f"{directory}: its graphs are not an encoder and a decoder")
    return EncoderDecoder(vocab, OnnxEncoder(encoder), OnnxDecoder(decoder), None)
