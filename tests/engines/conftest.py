"""A run with given weights, random models, and sentences for them. No test here trains a model: what it holds
CTranslate2 to must not depend on how this machine rounds."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dragoman.checkpoint.model import LoadedModel, load_model, model_description, vocab_of
from dragoman.decode.translator.translator import Translator
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.models import build_model, config_class
from dragoman.runs.directory import Run
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from given import given_run
from toy import toy_config, toy_pairs, write_pairs

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "and", "then", "slept", "red", "blue")
SMALL = {"num_layers": 2, "num_decoder_layers": 1, "model_dim": 24, "num_heads": 4, "ff_dim": 32}
MakeModel = Callable[..., LoadedModel]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 14, (40,), generator=generator).tolist()
    rows = [torch.randint(0, len(WORDS), (n,), generator=generator).tolist() for n in lengths]
    return [" ".join(WORDS[i] for i in row) + "." for row in rows]


@pytest.fixture(scope="session")
def make_model(texts: list[str]) -> MakeModel:
    """Its weights are large enough for scores that differ."""

    def make(kind: str = "transformer", joint: bool = True, **fields: object) -> LoadedModel:
        config = config_class(kind)(**(SMALL | fields if kind == "transformer" else fields))
        tokenizers = [Tokenizer.train(texts, TokenizerConfig(vocab_size=340, joint=joint))] * 2
        if not joint:
            tokenizers[1] = Tokenizer.train(texts[::-1], TokenizerConfig(vocab_size=300, joint=False))
        vocab = vocab_of(*tokenizers)
        torch.manual_seed(4)
        model = build_model(kind, config, vocab)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1).mul_(1.3)
        state = {"model": model_description(kind, config, vocab, *tokenizers)}
        return LoadedModel(model.eval(), *tokenizers, "0000001", state)

    return make


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """It says words in capitals."""
    directory = tmp_path_factory.mktemp("engines")
    pairs = [(src, src.upper()) for src, _ in toy_pairs(600)]
    config = toy_config(write_pairs(directory, pairs))
    config["train"] |= {"max_updates": 1, "validate_every": 1}
    return given_run(directory / "run", config, pairs)


@pytest.fixture(scope="session")
def unseen() -> list[str]:
    return [src for src, _ in toy_pairs(200, seed=2)]


@pytest.fixture(scope="session")
def loaded(run: Run) -> LoadedModel:
    return load_model(run.directory)


@pytest.fixture(scope="session")
def ours(run: Run) -> Translator:
    return run.translator(device="cpu")


@pytest.fixture(scope="session")
def exported(run: Run, loaded: LoadedModel) -> Path:
    directory = run.directory.parent / "exported"
    return export_ctranslate2(
        loaded,
        directory,
        search=run.config.search,
        languages=("en", "de"),
        examples=run.validation_examples(),
    )


@pytest.fixture(scope="session")
def fast(exported: Path) -> CTranslate2Translator:
    return CTranslate2Translator.open(exported)
