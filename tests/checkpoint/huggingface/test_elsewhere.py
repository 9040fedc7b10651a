"""What is exported for transformers, taken by programs that know real Marian and Pegasus models alone."""

import json
from pathlib import Path

import pytest
import torch
import transformers

from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import LoadedModel, model_description, vocab_of
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.norm import NormPlace
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

ctranslate2 = pytest.importorskip("ctranslate2")
TEXTS = ["the cat sat on the mat", "a red dog ran under the mat", "zwei größere Hunde", "12 cats, 3 dogs!"]


@pytest.fixture(scope="module", params=["post", "pre"])
def model(request: pytest.FixtureRequest) -> LoadedModel:
    norm: NormPlace = request.param
    tokenizer = Tokenizer.train(TEXTS * 3, TokenizerConfig(vocab_size=330, min_frequency=1))
    config = TransformerConfig(num_layers=2, model_dim=32, num_heads=4, ff_dim=64, norm=norm)
    vocab = vocab_of(tokenizer, tokenizer)
    torch.manual_seed(4)
    network = build_model("transformer", config, vocab).eval()
    with torch.no_grad():
        network.get_parameter("encoder.embedding.weight").mul_(3)  # so that it says something
    state = {"model": model_description("transformer", config, vocab, tokenizer, tokenizer)}
    return LoadedModel(network, tokenizer, tokenizer, "x", state)


@pytest.fixture(scope="module")
def out(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_huggingface(model, tmp_path_factory.mktemp("export") / "out")


def test_it_is_laid_out_as_a_real_one(model: LoadedModel, out: Path) -> None:
    fields = json.loads((out / "config.json").read_text("utf-8"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    size = model.src_tokenizer.size
    assert fields["decoder_start_token_id"] == fields["pad_token_id"] == tokenizer.pad_token_id
    assert fields["eos_token_id"] == tokenizer.eos_token_id and tokenizer.unk_token_id == 1
    if fields["model_type"] == "marian":
        assert (fields["eos_token_id"], fields["pad_token_id"]) == (0, size - 1)
        theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(out)
        assert not theirs.get_input_embeddings().weight[-1].any()
    else:
        assert (fields["pad_token_id"], fields["normalize_before"]) == (0, True)


def test_the_converter_of_ctranslate2_takes_it(model: LoadedModel, out: Path, tmp_path: Path) -> None:
    converted = ctranslate2.converters.TransformersConverter(str(out)).convert(str(tmp_path / "fast"))
    fast = ctranslate2.Translator(converted, device="cpu", intra_threads=1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    rows = [tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) for text in TEXTS]
    said = fast.translate_batch(rows, beam_size=1, max_decoding_length=12, disable_unk=True)
    ours = Translator([model.model], model.src_tokenizer, model.tgt_tokenizer, SearchConfig(beam=1))
    search = SearchConfig(beam=1, max_ratio=0, max_extra=12, loop_guard=False)
    expected = [row[0].tokens for row in ours.hypotheses(TEXTS, search=search)]
    for found, tokens in zip(said, expected, strict=True):
        names = [name.replace("▁", " ") for name in model.tgt_tokenizer.pieces(tokens)]
        assert found.hypotheses[0][: len(names)] == names[: len(found.hypotheses[0])]
    lengths = [len(one.hypotheses[0]) for one in said]
    assert max(lengths) > 3
    pairs = [(text, other) for text in TEXTS for other in TEXTS]
    targets = [tokenizer.convert_ids_to_tokens(tokenizer(other).input_ids)[:-1] for _, other in pairs]
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) for text, _ in pairs]
    scores = [row.log_probs for row in fast.score_batch(sources, targets)]
    network = model.model
    for (text, other), row in zip(pairs, scores, strict=True):
        src = torch.tensor([[*model.src_tokenizer.encode(text), 2]])
        tgt = [*model.tgt_tokenizer.encode(other), 2]
        with torch.no_grad():
            logits = network.project(network(src, src != 0, torch.tensor([[1, *tgt[:-1]]])))[0]
        logits[:, 0] = -1e4  # <pad> has no part in it
        theirs = torch.tensor(row)
        mine = logits.log_softmax(-1)[torch.arange(len(tgt)), torch.tensor(tgt)]
        torch.testing.assert_close(theirs, mine, atol=1e-4, rtol=1e-4)
