"""Engines with the same weights, for `decode_cpu.py`: each translates sentences, one text or many at once."""

import sys
from dataclasses import replace
from pathlib import Path

import ctranslate2
import torch

from dragoman.checkpoint.model import LoadedModel, load_model
from dragoman.config import from_dict
from dragoman.data.batch import pad_sources
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import Quantization, export_ctranslate2
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.linear import quantize
from dragoman.runs.directory import Run
from peers import published_like

MAX_LENGTH = 100
BATCHES = ((32, "examples"), (64, "examples"), (128, "examples"), (1024, "tokens"), (2048, "tokens"))
"""What is tried for CTranslate2 by hand; the quickest is taken."""


def settings(beam: int) -> SearchConfig:
    return SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)


class Model:
    """A run in every form that the engines want, below one temporary directory."""

    def __init__(self, run: Path, directory: Path) -> None:
        self.run = Run.open(run)
        self.loaded: LoadedModel = load_model(run)
        self.loaded.model.requires_grad_(False)  # as in a translator: what is frozen is packed
        self.small: LoadedModel = load_model(run)
        quantize(self.small.model.requires_grad_(False))
        self.config = from_dict(TransformerConfig, self.loaded.state["model"]["config"])
        self.marian = published_like(self.loaded.model, self.config).eval()
        self.marian_directory = directory / "marian"
        self.marian.save_pretrained(self.marian_directory)
        self.exports: dict[Quantization, Path] = {}
        for kind in ("float32", "int8"):
            self.exports[kind] = export_ctranslate2(
                self.loaded,
                directory / kind,
                search=settings(4),
                quantize=kind,
                shortlist=self.run.shortlist(),
            )

    def encode(self, texts: list[str]) -> list[list[int]]:
        return self.loaded.src_tokenizer.encode_batch(texts)


class Ours:
    """The PyTorch translator, from text to text."""

    def __init__(self, model: Model, shortlist: bool = False, precision: str = "float32") -> None:
        loaded, self.listed = model.loaded if precision == "float32" else model.small, shortlist
        self.translator = Translator(loaded.model, loaded.src_tokenizer, loaded.tgt_tokenizer)
        self.translator.scorer.shortlist = model.run.shortlist

    def __call__(self, texts: list[str], beam: int) -> list[str]:
        return self.translator.translate(texts, search=replace(settings(beam), shortlist=self.listed))


class Fast:
    """The CTranslate2 translator, from text to text."""

    def __init__(
        self, directory: Path, shortlist: bool, workers: int | None = None, threads: int = 1
    ) -> None:
        self.translator = CTranslate2Translator.open(
            directory, workers=workers, threads=threads, shortlist=shortlist
        )

    def __call__(self, texts: list[str], beam: int) -> list[str]:
        return self.translator.translate(texts, search=settings(beam))


class HuggingFace:
    """MarianMT's `generate`, from ids to ids, in batches in the order given."""

    def __init__(self, model: Model, batch: int, by_length: bool) -> None:
        self.model, self.batch, self.by_length = model, batch, by_length

    def __call__(self, texts: list[str], beam: int) -> list[str]:
        sources = self.model.encode(texts)
        order = list(range(len(sources)))
        if self.by_length:
            order.sort(key=lambda index: len(sources[index]))
        found: dict[int, str] = {}
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            ids, mask = pad_sources([sources[index] for index in chosen])
            rows = self.model.marian.generate(
                input_ids=ids,
                attention_mask=mask.long(),
                num_beams=beam,
                do_sample=False,
                early_stopping=beam > 1,  # as in our search, and as CTranslate2 does
                max_new_tokens=MAX_LENGTH,
            )[:, 1:].tolist()
            for index, row in zip(chosen, rows, strict=True):
                found[index] = self.model.loaded.tgt_tokenizer.decode(row)
        return [found[index] for index in range(len(texts))]


class ByHand:
    """CTranslate2 without us, sorted and batched by itself. It takes and gives lists of tokens; with `whole`,
    the time from text to tokens and back counts too, as with all others."""

    def __init__(
        self, directory: Path, model: Model, workers: int = 2, threads: int = 1, whole: bool = False
    ) -> None:
        before = torch.get_num_threads()
        self.engine = ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=workers, intra_threads=threads
        )
        torch.set_num_threads(before)  # loading sets OpenMP's threads for torch too
        self.model, self.batch, self.whole = model, BATCHES[1], whole
        self.tokens: dict[tuple[str, ...], list[list[str]]] = {}

    def prepare(self, texts: list[str]) -> list[list[str]]:
        """Kept, unless tokenization is to be in the time."""
        if self.whole:
            return self.tokenize(texts)
        key = tuple(texts)
        if key not in self.tokens:
            self.tokens[key] = self.tokenize(texts)
        return self.tokens[key]

    def tokenize(self, texts: list[str]) -> list[list[str]]:
        return [[*map(str, ids), "2"] for ids in self.model.encode(texts)]

    def __call__(self, texts: list[str], beam: int) -> list[list[str]] | list[str]:
        size, kind = self.batch
        found = self.engine.translate_batch(
            self.prepare(texts),
            max_batch_size=size,
            batch_type=kind,
            beam_size=beam,
            max_decoding_length=MAX_LENGTH,
            max_input_length=0,
        )
        rows = [row.hypotheses[0] for row in found]
        return self.text(rows) if self.whole else rows

    def text(self, rows: list[list[str]]) -> list[str]:
        return [self.model.loaded.tgt_tokenizer.decode([int(name) for name in row]) for row in rows]


def start_commands(model: Model, text: str) -> dict[str, list[str]]:
    """A process each, from nothing to the first sentence."""
    ids = model.encode([text])[0]
    command = "import sys; from dragoman.cli.main import main; sys.argv[0] = 'dragoman'; main()"
    hugging_face = (
        "import sys, torch, transformers\n"
        "model = transformers.MarianMTModel.from_pretrained(sys.argv[1]).eval()\n"
        "ids = torch.tensor([list(map(int, sys.argv[2:]))])\n"
        "model.generate(input_ids=ids, num_beams=4, max_new_tokens=100)"
    )
    by_hand = (
        "import sys, ctranslate2\n"
        "engine = ctranslate2.Translator(sys.argv[1])\n"
        "engine.translate_batch([sys.argv[2:]], beam_size=4)"
    )
    tokens = [*map(str, ids), "2"]
    ours = ["translate", str(model.run.directory), text, "--device", "cpu", "--beam", "4"]
    fast = ["translate", str(model.exports["int8"]), text, "--beam", "4"]
    return {
        "HF generate": [sys.executable, "-c", hugging_face, str(model.marian_directory), *tokens],
        "dragoman translate RUN": [sys.executable, "-c", command, *ours],
        "dragoman translate RUN --shortlist": [sys.executable, "-c", command, *ours, "--shortlist"],
        "CTranslate2 by hand, int8": [sys.executable, "-c", by_hand, str(model.exports["int8"]), *tokens],
        "dragoman translate EXPORT, int8": [sys.executable, "-c", command, *fast],
    }
