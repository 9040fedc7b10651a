"""GPT and GPT-2 against Hugging Face's models with the same random weights: logits, padding, generation."""

import copy

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, OpenAIGPTConfig, OpenAIGPTLMHeadModel

from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.model import load_into
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.gpt import GptConfig
from searching import search

SIZE, PLACES, WIDTH, LAYERS = 29, 24, 16, 2
SIZES = {"vocab_size": SIZE, "n_positions": PLACES, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": 4}
VOCAB = Vocab(SIZE, SIZE, shared=True)


def gpt2() -> tuple[torch.nn.Module, EncoderDecoder]:
    theirs = GPT2LMHeadModel(GPT2Config(**SIZES))
    return theirs, copied(theirs, GptConfig(LAYERS, WIDTH, 4, 4 * WIDTH, max_positions=PLACES))


def gpt() -> tuple[torch.nn.Module, EncoderDecoder]:
    theirs = OpenAIGPTLMHeadModel(OpenAIGPTConfig(**SIZES))
    config = GptConfig(LAYERS, WIDTH, 4, 4 * WIDTH, norm="post", max_positions=PLACES)
    return theirs, copied(theirs, config)


def copied(theirs: torch.nn.Module, config: GptConfig) -> EncoderDecoder:
    """Ours with the weights of theirs, none of them left as it was."""
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            gain = "ln_" in name and name.endswith("weight")
            parameter.normal_(mean=1.0 if gain else 0.0, std=0.1 if parameter.dim() == 1 else 0.5)
    ours = build_model("gpt", config, VOCAB)
    weights = dict(theirs.named_parameters())
    table = family_of("gpt", config).weights(config, True)
    load_into(ours, {name: weight.read(weights) for name, weight in table.items()}, "theirs")
    return ours.eval()


@pytest.fixture(params=[gpt, gpt2], ids=["gpt", "gpt-2"], scope="module")
def both(request: pytest.FixtureRequest) -> tuple[torch.nn.Module, EncoderDecoder]:
    torch.manual_seed(1)
    theirs, ours = request.param()
    return theirs.eval(), ours


def logits(ours: EncoderDecoder, ids: torch.Tensor, source: int) -> torch.Tensor:
    """Of all places after the first `source`, which are read as the source."""
    mask = torch.ones(len(ids), source, dtype=torch.bool)
    return ours.project(ours(ids[:, :source], mask, ids[:, source:]))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_logits_are_the_same_wherever_the_source_ends(both, dtype: torch.dtype, tolerance: float) -> None:
    theirs, ours = (model.to(dtype) for model in both)
    ids = torch.randint(3, SIZE, (3, PLACES), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = theirs(ids).logits
        for source in (1, 2, 11, 23):
            torch.testing.assert_close(
                logits(ours, ids, source), expected[:, source:], atol=tolerance, rtol=0
            )


def test_padded_sources(both) -> None:
    theirs, ours = (model.double() for model in both)
    lengths, width, targets = [5, 2, 7], 7, 6
    ids = torch.randint(3, SIZE, (3, width + targets), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        found = ours.project(ours(ids[:, :width].masked_fill(~mask, 0), mask, ids[:, width:]))
        for row, length in enumerate(lengths):
            whole = torch.cat([ids[row, :length], ids[row, width:]])[None]
            expected = theirs(whole).logits[0, length:]
            torch.testing.assert_close(found[row], expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_generations_are_the_same(both, beam: int) -> None:
    """Theirs has to begin with `<s>`, as ours does. At the greatest length theirs just stops, and ours pays
    for its `</s>`; so that most end by themselves, `</s>` is made likely."""
    theirs, ours = (copy.deepcopy(model).double() for model in both)
    with torch.no_grad():
        for embedding in (theirs.get_input_embeddings().weight, ours.decoder.embedding.weight):
            embedding[2] *= 2
    prompts = torch.randint(3, SIZE, (20, 5), generator=torch.Generator().manual_seed(4))
    config = SearchConfig(beam=beam, max_ratio=0, max_extra=PLACES - 7, alpha=1.0, loop_guard=False)
    found = search(Scorer([ours]), prompts, torch.ones_like(prompts, dtype=torch.bool), config)
    ended = 0
    for prompt, (best, *_) in zip(prompts, found, strict=True):
        given = torch.cat([prompt, torch.tensor([1])])[None]
        settings = {"num_beams": beam, "do_sample": False, "length_penalty": 1.0, "early_stopping": True}
        ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "suppress_tokens": [0, 1]}
        mask = torch.ones_like(given)
        whole = theirs.generate(given, attention_mask=mask, max_length=PLACES - 1, **settings, **ids)
        expected = whole[0, 6:].tolist()
        if 2 in expected and len(expected) < PLACES - 7:
            assert list(best.tokens) == expected[: expected.index(2) + 1]
            ended += 1
    assert ended > 7


@pytest.mark.parametrize("lengths", [[9, 9], [9, 4]], ids=["whole", "padded"])
def test_what_every_layer_reads_is_the_same(both, lengths: list[int]) -> None:
    theirs, ours = (model.double() for model in both)
    ids = torch.randint(3, SIZE, (2, 9), generator=torch.Generator().manual_seed(4))
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states
        layers = ours.read_layers(ids.masked_fill(~mask, 0), mask, torch.zeros_like(ids))
    for layer, their_layer in zip(layers, expected, strict=True):
        torch.testing.assert_close(layer[mask], their_layer[mask], atol=1e-10, rtol=0)
