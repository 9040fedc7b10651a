"""Heads switched off, spread and weighed: each held against a computation of its own."""

import numpy as np
import pytest
import torch

from battery.models import make
from dragoman.data.batch import collate
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention_kernels import tap_is_open
from dragoman.probe.heads import entropy, head_counts, importance, mask_heads, weighted_norms
from dragoman.probe.inside import look_inside
from searching import search

SRC, TGT = [5, 9, 4, 11, 7], [8, 3, 12, 6]


def log_prob(model: EncoderDecoder) -> float:
    with torch.no_grad():
        return Scorer([model]).forced(collate([(SRC, TGT)]))[0].sum().item()


def without_head(name: str, module: str, head: int) -> EncoderDecoder:
    """The same model whose output projection does not read this head."""
    model = make(name)
    attention = model.get_submodule(module)
    with torch.no_grad():
        attention.out.weight.unflatten(1, (attention.num_heads, -1))[:, head] = 0.0
    return model


@pytest.mark.parametrize("name", ["transformer", "transformer-shaw"])
def test_importance_is_the_fall_without_the_head(name: str) -> None:
    model = make(name)
    found = importance(model, SRC, TGT)
    assert {module: len(falls) for module, falls in found.items()} == head_counts(model)
    for module in ("encoder.layers.1.self_attention", "decoder.layers.0.cross_attention"):
        for head in (0, 3):
            fall = log_prob(model) - log_prob(without_head(name, module, head))
            assert found[module][head] == pytest.approx(fall, abs=1e-9)
            assert abs(fall) > 1e-6


def test_the_head_of_a_scored_attention_is_its_context() -> None:
    model, other = make("lstm-luong-general"), make("lstm-luong-general")
    width = other.encoder.embedding.weight.size(1)
    with torch.no_grad():
        other.decoder.readout.weight[:, :width] = 0.0  # it reads [context; state]
    assert importance(model, SRC, TGT) == {
        "decoder.attention": [pytest.approx(log_prob(model) - log_prob(other), abs=1e-9)]
    }


def test_masks_hold_in_a_search_and_end_with_their_block() -> None:
    model, module = make("transformer"), "decoder.layers.1.cross_attention"
    batch = collate([(SRC, TGT)])
    config = SearchConfig(beam=3, n_best=3, max_length=8)

    def found(asked: EncoderDecoder) -> list[tuple[int, ...]]:
        with torch.inference_mode():
            ended = search(Scorer([asked]), batch.src_ids, batch.src_mask, config)
        return [each.tokens for each in ended[0]]

    before = found(model)
    with mask_heads(model, {module: [0, 1, 2, 3]}):
        masked = found(model)
        assert tap_is_open()
    other = make("transformer")
    with torch.no_grad():
        other.get_submodule(module).out.weight.zero_()
    assert masked == found(other)
    assert found(model) == before != masked
    assert not tap_is_open()


def test_masks_of_what_is_not_there() -> None:
    model = make("transformer")
    with pytest.raises(UserError, match="no attention 'x'"), mask_heads(model, {"x": [0]}):
        pass
    name = "encoder.layers.0.self_attention"
    with pytest.raises(UserError, match="has no head 4; they are 0 to 3"), mask_heads(model, {name: [4]}):
        pass


def test_entropy_by_hand() -> None:
    seen = look_inside(make("transformer"), SRC, TGT)
    for each in seen.attentions:
        rows = [[-sum(p * np.log(p) for p in row if p > 0) for row in head] for head in each.weights.tolist()]
        assert entropy(each).tolist() == pytest.approx([np.mean(head) for head in rows], abs=1e-12)
    first_row = seen.of("decoder")[0].weights[:, 0]
    assert (first_row[:, 0] == 1).all()  # which adds nothing


def test_norms_by_hand() -> None:
    """‖α_ij x_j W_V W_O‖ of the first encoder layer, from its matrices in NumPy."""
    model = make("transformer")
    name = "encoder.layers.0.self_attention"
    attention, inputs = model.get_submodule(name), []
    hook = attention.register_forward_pre_hook(lambda _module, given: inputs.append(given[0][0]))
    seen = look_inside(model, SRC, TGT)
    hook.remove()
    x = inputs[0].detach().numpy()
    w, b = (
        part.detach().numpy() for part in (attention.query_key_value.weight, attention.query_key_value.bias)
    )
    out = attention.out.weight.detach().numpy()
    found = weighted_norms(model, SRC, TGT).named(name).weights
    for head in range(4):
        rows = slice(32 + 4 * head, 36 + 4 * head)  # after 16 of queries and 16 of keys
        written = (x @ w[rows].T + b[rows]) @ out[:, 4 * head : 4 * head + 4].T
        alpha = seen.named(name).weights[head].numpy()
        by_hand = [[np.linalg.norm(alpha[i, j] * written[j]) for j in range(6)] for i in range(6)]
        assert found[head].numpy() == pytest.approx(np.array(by_hand), abs=1e-12)


def test_norms_of_scored_attention_and_of_shaws_values() -> None:
    lstm = make("lstm-bahdanau")
    seen, norms = look_inside(lstm, SRC, TGT), weighted_norms(lstm, SRC, TGT)
    batch = collate([(SRC, TGT)])
    with torch.no_grad():
        hidden = lstm.encode(batch.src_ids, batch.src_mask).hidden[0]
    expected = seen.attentions[0].weights * hidden.norm(dim=-1)
    torch.testing.assert_close(norms.attentions[0].weights, expected)
    shaw = weighted_norms(make("transformer-shaw"), SRC, TGT)
    assert [each.weights.shape for each in shaw.of("encoder")] == [(4, 6, 6), (4, 6, 6)]
    assert weighted_norms(make("markov-skips"), SRC, TGT).attentions == ()
