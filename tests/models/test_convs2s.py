"""What convolutional models promise beside the battery: reach, long sentences, other encoders, gradients."""

import pytest
import torch

from battery.models import SEPARATE, VOCAB, make, random_batch, weights_of_three_beams
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.models.convs2s import ConvDecoder, ConvS2SConfig
from dragoman.nn.linear import TokenEmbedding
from dragoman.nn.scores import SCORES
from dragoman.probe.record import record


def seen_from(model: EncoderDecoder, length: int, at: int) -> list[int]:
    """Source positions whose embedding has a part in the memory at one position."""
    src, mask, _ = random_batch(model.vocab, [length], 1)
    embedded: list[torch.Tensor] = []
    model.encoder.embedding.register_forward_hook(lambda _m, _i, output: embedded.append(output))  # type: ignore[attr-defined]
    memory = model.encode(src, mask)
    (gradient,) = torch.autograd.grad(memory.hidden[:, at].pow(2).sum(), embedded[0])
    return gradient[0].abs().sum(dim=-1).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_dilation_reaches_exponentially_far(layers: int) -> None:
    """Plain, L layers of width 3 see 2L + 1 positions; with dilation 3 in turn, all of 3^L."""
    at, length = 60, 121
    for base, reach in ((1, 2 * layers + 1), (3, 3**layers)):
        torch.manual_seed(0)
        config = ConvS2SConfig(num_layers=layers, model_dim=8, dilation_base=base)
        model = build_model("convs2s", config, VOCAB).double().eval()
        assert seen_from(model, length, at) == list(range(at - reach // 2, at + reach // 2 + 1))


def test_a_sentence_longer_than_the_table_of_positions_is_no_error() -> None:
    torch.manual_seed(0)
    model = (
        build_model("convs2s", ConvS2SConfig(num_layers=2, model_dim=8, max_positions=5), VOCAB)
        .double()
        .eval()
    )
    src, mask, tgt = random_batch(VOCAB, [12, 3], 9)
    with torch.no_grad():
        memory = model.encode(src, mask)
        whole, state = model.decode(tgt, memory), model.start(memory)
        for position in range(9):
            hidden, state = model.step(tgt[:, position], state)
            torch.testing.assert_close(hidden, whole[:, position], atol=1e-12, rtol=0)
        assert whole.isfinite().all()
        constant = torch.full_like(src[:1], 4)  # one token throughout: only positions and the ends differ
        rows = model.encode(constant, mask[:1]).hidden[0]
    torch.testing.assert_close(rows[7], rows[8])
    assert not torch.allclose(rows[1], rows[8])


@pytest.mark.parametrize("attention", [name for name in SCORES if name != "basic"])
@pytest.mark.parametrize("values", [False, True], ids=["hidden", "values"])
def test_the_decoder_reads_any_memory_of_any_width_by_any_score(attention: str, values: bool) -> None:
    torch.manual_seed(0)
    config = ConvS2SConfig(num_layers=2, model_dim=8, conv_dim=12, attention=attention, max_positions=4)  # type: ignore[arg-type]
    decoder = ConvDecoder(config, TokenEmbedding(23, 8, 0), memory_dim=10).double().eval()
    _, mask, tgt = random_batch(SEPARATE, [7, 4], 6)
    hidden = torch.randn(2, 7, 10, dtype=torch.float64)
    memory = Memory(hidden, mask, values=torch.randn_like(hidden) if values else None)
    with torch.no_grad():
        whole, state = decoder(tgt, memory), decoder.start(memory)
        for position in range(6):
            out, state = decoder.step(tgt[:, position], state)
            torch.testing.assert_close(out, whole[:, position], atol=1e-12, rtol=0)
        without = decoder(tgt, Memory(hidden, mask))
        assert torch.equal(whole, without) == (not values)


def test_a_recording_names_the_attention_of_every_layer() -> None:
    model = make("convs2s")
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad(), record(model) as seen:
        model(src, mask, tgt)
    assert list(seen) == [f"decoder.layers.{layer}.attention" for layer in range(3)]
    for (weights,) in seen.values():
        assert weights.shape == (2, 1, 5, 7)
        assert (weights[1, ..., 4:] == 0).all()


def test_beams_of_a_sentence_share_its_memory() -> None:
    assert weights_of_three_beams(make("convs2s")) == [(2, 1, 3, 7)] * 3


def test_the_encoders_gradient_is_divided_by_the_number_of_attentions() -> None:
    """That of the source embedding inside the values is not (Gehring et al. 2017, section 3.4)."""
    model = make("convs2s")
    model.decoder.training, model.decoder.dropout = True, 0.0  # its layers stay as they are
    _, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    z, e = (torch.randn(2, 7, 16, dtype=torch.float64, requires_grad=True) for _ in range(2))
    weights = torch.randn(2, 5, 16, dtype=torch.float64)

    def loss(z: torch.Tensor) -> torch.Tensor:
        return (model.decode(tgt, Memory(z, mask, values=z + e)) * weights).sum()

    of_z, of_e = torch.autograd.grad(loss(z), (z, e))
    step = 1e-6 * torch.randn_like(z)
    with torch.no_grad():
        numerically = (loss(z + step) - loss(z - step)).item() / 2
    assert (of_z * step).sum().item() == pytest.approx(numerically / 3, rel=1e-5)  # three decoder layers
    step = 1e-6 * torch.randn_like(e)
    with torch.no_grad():
        before = loss(z).item()
        e += step
        numerically = loss(z).item() - before
    assert (of_e * step).sum().item() == pytest.approx(numerically, rel=1e-4)


@pytest.mark.parametrize("name", ["convs2s", "convs2s-dilated", "convs2s-deep-decoder"])
def test_the_host_never_waits_for_a_value(name: str) -> None:
    """On the meta device tensors have no values: asking for one, as for a length, would fail."""
    model = make(name).to("meta").train()
    src, mask, tgt = (x.to("meta") for x in random_batch(model.vocab, [7, 4], 5))
    memory = model.encode(src, mask)
    model.decode(tgt, memory).sum().backward()
    _, state = model.step(tgt[:, 0], model.start(memory))
    order = torch.arange(6, device="meta")
    hidden, _ = model.step(order, state.expand(3).select(order))
    assert hidden.shape == (6, 16)


def test_dropout_is_drawn_in_training_alone() -> None:
    model = make("convs2s")
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad():
        assert torch.equal(model(src, mask, tgt), model(src, mask, tgt))
        model.train()
        assert not torch.equal(model(src, mask, tgt), model(src, mask, tgt))


def test_what_a_layer_finds_in_the_source_is_added() -> None:
    """With a context of 1 everywhere, whatever the attention says."""
    model = build_model("convs2s", ConvS2SConfig(model_dim=8, conv_dim=12, num_layers=1), VOCAB).eval()
    layer = model.decoder.layers[0]  # type: ignore[union-attr, index]
    with torch.no_grad():
        layer.context.weight.zero_()  # type: ignore[union-attr]
        layer.context.bias.fill_(1.0)  # type: ignore[union-attr]
        state = model.start(model.encode(torch.tensor([[3, 4, 2]]), torch.ones(1, 3, dtype=torch.bool)))
        memory = state.memory[0]  # type: ignore[attr-defined]
        h = torch.randn(1, 2, layer.context.bias.numel())  # type: ignore[union-attr]
        found = layer._look(h, torch.randn(1, 2, 8), memory)  # type: ignore[operator]
    torch.testing.assert_close(found, h + 1)


def test_widths_of_scores_come_from_their_own_fields() -> None:
    config = ConvS2SConfig(model_dim=8, num_layers=1, attention="additive", attention_dim=5, max_positions=9)
    named = dict(build_model("convs2s", config, VOCAB).named_parameters())
    (energy,) = (tensor for name, tensor in named.items() if name.endswith("score.energy.weight"))
    assert energy.shape == (1, 5)
    config = ConvS2SConfig(model_dim=8, num_layers=1, attention="location", max_positions=9)
    named = dict(build_model("convs2s", config, VOCAB).named_parameters())
    (places,) = (tensor for name, tensor in named.items() if name.endswith("score.places.weight"))
    assert places.shape == (9, 8)
