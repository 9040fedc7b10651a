"""The first kernel that takes a call runs, and every refusal has a reason."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from dragoman.kernels import LONGEST_SEQUENCE, WIDEST_HEAD
from dragoman.nn import kernel_choice
from dragoman.nn.attention_kernels import AttentionCall, Heads, Projected, open_tap
from dragoman.nn.kernel_choice import (
    ATTENTION,
    FEEDFORWARD,
    LINEAR,
    POST_NORM,
    choose_kernel,
    explain_choice,
    pre_norm_refusal,
)
from dragoman.nn.layer import FeedForward
from dragoman.nn.linear import Linear
from dragoman.nn.mask import CAUSAL, EVERYTHING, Packing, packed

OWNER = nn.Identity()


def heads(rows: int, queries: int, width: int = 8) -> Heads:
    return Heads(*torch.randn(3, rows, 2, queries, width).unbind())


def packed_call(lengths: list[int], width: int = 8, dropout: float = 0.0) -> AttentionCall:
    packing = Packing.of(torch.tensor(lengths))
    inputs = Projected(torch.randn(1, sum(lengths), 3 * 2 * width), None, (2, width, width))
    return AttentionCall(OWNER, inputs, packed(packing, packing), dropout)


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Triton could take any tensor."""
    monkeypatch.setattr(kernel_choice, "triton_refusal", lambda *_: None)


@pytest.mark.parametrize("kernels", [ATTENTION, LINEAR, FEEDFORWARD, POST_NORM])
def test_the_last_kernel_takes_everything_and_names_are_unique(
    kernels: tuple[kernel_choice.Kernel, ...],
) -> None:
    assert kernels[-1].refusal(None) is None
    assert len({kernel.name for kernel in kernels}) == len(kernels)


def test_a_list_that_takes_nothing_is_a_bug() -> None:
    for function in (choose_kernel, explain_choice):
        with pytest.raises(AssertionError, match="takes everything"):
            function(ATTENTION[:1], AttentionCall(OWNER, heads(1, 1)))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: AttentionCall(OWNER, heads(2, 1)), "one query"),
        (lambda: AttentionCall(OWNER, heads(2, 2)), "torch"),
        (lambda: AttentionCall(OWNER, heads(2, 1), CAUSAL), "torch"),
        (lambda: AttentionCall(OWNER, heads(2, 1), bias=torch.zeros(1, 1, 1, 1)), "torch"),
        (lambda: packed_call([3, 1]), "padded"),
    ],
)
def test_attention_on_a_cpu(make: Callable[[], AttentionCall], name: str) -> None:
    call = make()
    with torch.inference_mode():
        assert choose_kernel(ATTENTION, call).name == name
        *refused, (chosen, reason) = explain_choice(ATTENTION, call)
    assert (chosen, reason) == (name, None)
    assert all(reason for _, reason in refused)
    if name == "one query":
        assert choose_kernel(ATTENTION, call).name == "torch", "gradients are recorded now"


@pytest.mark.usefixtures("on_gpu")
def test_short_packed_sequences_take_the_triton_kernel() -> None:
    call = packed_call([3, LONGEST_SEQUENCE])
    assert choose_kernel(ATTENTION, call).name == "packed"
    with open_tap(lambda *_: None):
        assert choose_kernel(ATTENTION, call).name == "padded"
    refused = {
        "attention has dropout": replace(call, dropout=0.1),
        "relative positions add to the scores": replace(call, inputs=call.inputs.split()),
        f"sequences are longer than {LONGEST_SEQUENCE}": packed_call([LONGEST_SEQUENCE + 1]),
        f"heads are wider than {WIDEST_HEAD}": packed_call([3], WIDEST_HEAD + 1),
        "it is for packed batches, as on a GPU": replace(call, mask=EVERYTHING),
    }
    for reason, other in refused.items():
        assert ATTENTION[0].refusal(other) == reason
    wide_values = Projected(torch.randn(1, 3, 2 * (16 + WIDEST_HEAD + 1)), None, (2, 8, WIDEST_HEAD + 1))
    assert "heads are wider" in str(ATTENTION[0].refusal(replace(packed_call([3]), inputs=wide_values)))


@pytest.mark.parametrize(("widths", "taken"), [((16, 16), True), ((12, 12), False), ((16, 8), False)])
def test_what_flash_attention_knows_is_asked_before_it_is_called(
    monkeypatch: pytest.MonkeyPatch, widths: tuple[int, int], taken: bool
) -> None:
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    queries = torch.randn(1, 4, 2 * (2 * widths[0] + widths[1]), dtype=torch.bfloat16)
    call = replace(packed_call([3, 1]), inputs=Projected(queries, None, (2, *widths)))
    flash = next(kernel for kernel in ATTENTION if kernel.name == "flash")
    assert flash.refusal(call) == (None if taken else "it does not know heads of this width")


def test_packed_and_padded_give_the_same_where_a_tap_looks() -> None:
    call, seen = packed_call([3, 1, 2]), []
    expected = choose_kernel(ATTENTION, call).run(call)
    with open_tap(lambda _, weights: seen.append(weights)):
        found = choose_kernel(ATTENTION, call).run(call)
    torch.testing.assert_close(found, expected)
    assert [weights.shape for weights in seen] == [(3, 2, 3, 3)]


@pytest.mark.usefixtures("on_gpu")
def test_linear_layers_learn_in_half_precision() -> None:
    layer, x = Linear(8, 8), torch.randn(2, 8)
    half = x.bfloat16()
    assert choose_kernel(LINEAR, half, layer.weight, layer.bias, layer).name == "half"
    assert choose_kernel(LINEAR, x, layer.weight, layer.bias, layer).name == "torch"
    assert choose_kernel(FEEDFORWARD, network := FeedForward(8, 8), half).name == "half"
    for other in (
        FeedForward(8, 8, gated=True),
        FeedForward(8, 8, bias=False),
        FeedForward(8, 8, dropout=0.1),
    ):
        assert choose_kernel(FEEDFORWARD, other, half).name == "torch"
    assert choose_kernel(FEEDFORWARD, FeedForward(8, 8, dropout=0.1).eval(), half).name == "half"
    with torch.inference_mode():
        assert choose_kernel(FEEDFORWARD, network, half).name == "torch"


@pytest.mark.usefixtures("on_gpu")
def test_norms_are_fused_where_the_kernel_can() -> None:
    x, norm = torch.randn(2, 8), nn.LayerNorm(8)
    assert choose_kernel(POST_NORM, x, x, norm, 0.1).name == "fused" and pre_norm_refusal(x, norm) is None
    assert choose_kernel(POST_NORM, x, x.bfloat16(), norm, 0.1).name == "torch"
    wide = torch.randn(1, 8193)
    for other, row in ((nn.RMSNorm(8), x), (nn.LayerNorm(8193), wide)):
        assert choose_kernel(POST_NORM, row, row, other, 0.1).name == "torch"
        assert pre_norm_refusal(row, other) is not None
    sharded = nn.LayerNorm(8)
    sharded.weight.full_tensor = lambda: None  # as FSDP's parameters have it
    assert pre_norm_refusal(x, sharded) == "the norm is sharded (FSDP)"
    with torch.inference_mode():
        assert choose_kernel(POST_NORM, x, x, norm, 0.0).name == "fused"
        assert choose_kernel(POST_NORM, x, x, norm, 0.1).name == "torch"
        assert pre_norm_refusal(x, norm) == "it is for training"


def test_the_plain_norm_is_the_formula() -> None:
    x, y, norm = torch.randn(2, 3, 8), torch.randn(2, 3, 8), nn.LayerNorm(8)
    assert torch.equal(POST_NORM[-1].run(x, y, norm, 0.0), norm(x + y))
