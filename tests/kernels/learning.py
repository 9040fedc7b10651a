"""The kernels of training against the same in torch, with gradients, in Triton's interpreter or on a GPU.

TRITON_INTERPRET=1 python tests/kernels/learning.py
"""

import copy

import torch
import torch.nn.functional as F

from dragoman.data.batch import PairBatch, TextBatch, collate
from dragoman.data.packed import PackedPairs, PackedText
from dragoman.kernels.fused_norm import drop_add_norm, drop_add_then_norm
from dragoman.kernels.loss import smoothed_cross_entropy
from dragoman.learning.cross_entropy import CrossEntropy, RDrop
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.models import build_model, build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.attention_kernels import Projected, join_heads
from dragoman.nn.kernel_choice import half_refusal
from dragoman.nn.layer import Activation, FeedForward
from dragoman.nn.linear import Projection
from dragoman.nn.loss import cross_entropy, projected_cross_entropy
from dragoman.nn.mask import CAUSAL, Mask, Packing, packed, padding
from dragoman.nn.positions import Relation, Rotary
from dragoman.nn.r_drop import projected_r_drop, r_drop

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB = Vocab(23, 23, shared=True)
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE)


def check_cross_entropy() -> None:
    for size, with_bias, smoothing in ((7, False, 0.1), (5000, True, 0.0), (5000, True, 0.2)):
        logits = (random(4, size) * 3).requires_grad_()
        bias = random(size).requires_grad_() if with_bias else None
        target = torch.tensor([3, 0, size - 1, 5], device=DEVICE)  # the second counts for nothing
        whole = logits if bias is None else logits + bias
        loss, nll = cross_entropy(whole, target, 0, smoothing)
        (slope,) = torch.autograd.grad(loss, logits)
        found = F.pad(logits.detach(), (0, 3), value=9.0)  # columns that count for nothing
        for sloped in (False, True):
            sums = smoothed_cross_entropy(found, bias, target, 0, smoothing, sloped, size)
            torch.testing.assert_close(sums, (loss, nll), check_dtype=False, **CLOSE)
        torch.testing.assert_close(found, F.pad(slope, (0, 3)), **CLOSE)


def check_projection() -> None:
    """A vocabulary that is filled up, in chunks and at once, against logits in float64."""
    for rows, size in ((5, 23), (9, 70000)):
        hidden, weight = random(rows, 4).requires_grad_(), random(size, 4).requires_grad_()
        bias, target = random(size).requires_grad_(), torch.arange(rows, device=DEVICE)
        given = (hidden, weight, bias)
        wide = [tensor.detach().double().requires_grad_() for tensor in given]
        found, nll = projected_cross_entropy(*given, target, 0, 0.1)
        expected, other = cross_entropy(wide[0] @ wide[1].t() + wide[2], target, 0, 0.1)
        torch.testing.assert_close((found, nll), (expected.float(), other.float()), **CLOSE)
        gradients = torch.autograd.grad(found, given)
        others = torch.autograd.grad(expected, wide)
        torch.testing.assert_close(gradients, tuple(other.float() for other in others), **CLOSE)


def check_r_drop() -> None:
    for size, with_bias, smoothing in ((7, False, 0.1), (5000, True, 0.0)):
        first, second = random(4, 6).requires_grad_(), random(4, 6).requires_grad_()
        projection = Projection(torch.nn.Parameter(random(size, 6)), with_bias).to(DEVICE)
        weight, bias = projection.weight, projection.bias
        given = [first, second, weight, *([] if bias is None else [bias])]
        if bias is not None:
            torch.nn.init.normal_(bias)
        target = torch.tensor([3, 0, size - 1, 5], device=DEVICE)  # the second counts for nothing
        total, nll = r_drop(first, second, projection, size, target, 0, smoothing, 5.0)
        passes = torch.stack([first, second])
        sums = projected_r_drop(passes, weight, bias, target, 0, smoothing, 5.0)
        torch.testing.assert_close(sums[1], nll, **CLOSE)
        _same(sums[0], total, given)


def check_residual() -> None:
    for rows, dim in ((3, 5), (70, 64)):
        x, y = random(2, rows, dim).requires_grad_(), random(2, rows, dim).requires_grad_()
        weight, bias = random(dim).requires_grad_(), random(dim).requires_grad_()
        given, wanted = (x, y, weight, bias), random(2, rows, dim)
        found = drop_add_norm(*given, 1e-5, 0.0)
        expected = F.layer_norm(x + y, (dim,), weight, bias, 1e-5)
        torch.testing.assert_close(found, expected, **CLOSE)
        gradients = torch.autograd.grad(found, given, wanted)
        torch.testing.assert_close(gradients, torch.autograd.grad(expected, given, wanted), **CLOSE)
        for carried in (0.0, 1.0):  # the sum may end here, or go on
            expected = carried * (x + y) + F.layer_norm(x + y, (dim,), weight, bias, 1e-5)
            total, normed = drop_add_then_norm(*given, 1e-5, 0.0)
            _same(carried * total + normed if carried else normed, expected, list(given))


def check_dropout() -> None:
    """What is dropped has no gradient; what stays is divided by the rest; another seed drops others."""
    rate, dim = 0.3, 64
    x, y = random(256, dim), random(256, dim).requires_grad_()
    weight, bias, wanted = torch.ones(dim, device=DEVICE), torch.zeros(dim, device=DEVICE), random(256, dim)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found = drop_add_norm(x, y, weight, bias, 1e-5, rate)
        (slope,) = torch.autograd.grad(found, y, wanted)
        kept = slope != 0
        expected = F.layer_norm(x + y * kept / (1 - rate), (dim,), weight, bias, 1e-5)
        torch.testing.assert_close(found, expected, **CLOSE)
        torch.testing.assert_close(slope, torch.autograd.grad(expected, y, wanted)[0], **CLOSE)
        masks.append(kept.double())
    assert torch.equal(masks[0], masks[1])
    deviation = (rate * (1 - rate) / masks[0].numel()) ** 0.5
    share = float((masks[0] * masks[2]).mean())
    assert abs(float(masks[0].mean()) - (1 - rate)) < 4 * deviation
    assert abs(share - (1 - rate) ** 2) < 5 * deviation, "two seeds have nothing to do with each other"
    for step in (1, dim):  # neighbours in a row and in a column
        flat = masks[0].flatten()
        assert abs(float((flat[step:] * flat[:-step]).mean()) - (1 - rate) ** 2) < 5 * deviation


def check_attention() -> None:
    """Sequences in a row against the same with padding."""
    for key_dim, value_dim, lengths, memory_lengths in (
        (4, 4, (3, 1), (2, 5)),
        (5, 3, (17, 20), (1, 33)),
        (4, 4, (130, 2), (3, 1)),
    ):
        torch.manual_seed(key_dim)
        own = SelfAttention(12, 2, key_dim, value_dim).to(DEVICE)
        cross = CrossAttention(12, 2, key_dim, value_dim, 0.0, 8).to(DEVICE)
        here, there = _packing(lengths), _packing(memory_lengths)
        x, memory = (
            random(1, sum(lengths), 12).requires_grad_(),
            random(1, sum(memory_lengths), 8).requires_grad_(),
        )
        rows, memory_rows = here.padded(x[:, None])[:, 0], there.padded(memory[:, None])[:, 0]
        visible, seen = here.visible()[:, 0, 0], there.visible()[:, 0, 0]
        for causal in (False, True):
            found = own(x, packed(here, here, causal))
            expected = own(rows, Mask(visible[:, None, None], causal))[visible][None]
            _same(found, expected, [x, *own.parameters()])
        found = cross.read(x, memory, packed(here, there))
        expected = cross.read(rows, memory_rows, padding(seen))[visible][None]
        _same(found, expected, [x, memory, *cross.parameters()])


def check_rotary() -> None:
    """Queries and keys are turned by the place of their token, values stay; against plain torch."""
    for key_dim, value_dim, layout in ((4, 5, "interleaved"), (6, 3, "halves"), (32, 32, "interleaved")):
        torch.manual_seed(key_dim)
        rotary = Rotary(key_dim, 10000.0, layout).to(DEVICE)
        packing = _packing((17, 1, 0, 30))
        x = random(1, 48, 3 * (2 * key_dim + value_dim)).requires_grad_()
        rotation = rotary.packed(packing, x).rotation
        projected = Projected(x, None, (3, key_dim, value_dim), rotation)
        heads = projected.split()
        expected = torch.cat([join_heads(part) for part in (heads.query, heads.key, heads.value)], dim=-1)
        found = projected.rotated()
        assert "_Rotate" in type(found.grad_fn).__name__, "this would not run the kernel"
        _same(found, expected, [x])
        own = SelfAttention(12, 3, key_dim, value_dim).to(DEVICE)
        inside, mask = random(1, 48, 12).requires_grad_(), packed(packing, packing, causal=True)
        rows, visible = packing.padded(inside[:, None])[:, 0], packing.visible()[:, 0, 0]
        visible[2] = False  # of an empty sequence too
        wanted = own(rows, CAUSAL, rotary(30, 30, x))[visible][None]
        _same(own(inside, mask, Relation(rotation=rotation)), wanted, [inside, *own.parameters()])
        half = Projected(x.detach().bfloat16(), None, projected.sizes, rotation).rotated()
        assert half.dtype == torch.bfloat16
        torch.testing.assert_close(half.float(), expected.detach(), atol=0.05, rtol=0.02)


def check_linear() -> None:
    for activation in ("relu", "gelu", "gelu_tanh"):
        _check_linear(activation)


def _check_linear(activation: Activation) -> None:
    """Weights in float32 against the same in bfloat16; in float32, a relu would open elsewhere."""
    dim, wide = 8, 70
    x = random(3, 50, dim).bfloat16().requires_grad_()
    first, second = (FeedForward(dim, wide, activation=activation).to(DEVICE) for _ in range(2))
    for linear in (first.widen, first.narrow):
        torch.nn.init.normal_(linear.bias)
    second.load_state_dict(first.state_dict())
    second.bfloat16()
    for found_of, expected_of in ((first, second), (first.widen, second.widen)):
        assert half_refusal(x, first.widen.weight) is None
        found, expected = found_of(x), expected_of(x)
        torch.testing.assert_close(found, expected)
        wanted = torch.randn_like(found)
        gradients = torch.autograd.grad(found, [x, *found_of.parameters()], wanted)
        others = torch.autograd.grad(expected, [x, *expected_of.parameters()], wanted)
        for gradient, other in zip(gradients, others, strict=True):
            error = (gradient.float() - other.float()).norm() / other.float().norm()
            assert error < 0.01, error


def check_model() -> None:
    """A whole Transformer learns from a packed batch what it learns from the padded one."""
    batch = collate([([5, 6, 7], [8, 9]), ([14] * 4, [3])])
    sizes = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 16, "dropout": 0.0}
    plain, twice = CrossEntropy(0.1), RDrop(5.0, 0.1)
    cases = (
        ({"norm": "pre", "num_layers": 2}, plain, (0, 5)),
        ({"norm": "post"}, twice, (5,)),
        ({"norm": "post", "positions": "rotary"}, plain, (5,)),
        ({"norm": "pre", "positions": "t5"}, plain, (0,)),
    )
    for fields, objective, multiples in cases:
        config = TransformerConfig(**{**sizes, **fields})
        model = build_model("transformer", config, Vocab(23, 23, shared=True)).to(DEVICE).train()
        parameters = list(model.parameters())
        expected = objective(model, batch.to(DEVICE))
        for multiple in multiples:
            found = objective(model, PackedPairs.of(batch, multiple).to(DEVICE))
            torch.testing.assert_close(found.nll, expected.nll, **CLOSE)
            _same(found.total, expected.total, parameters)


def check_language_models() -> None:
    """Blocks of text and texts with pieces to be guessed: the kernels against float64, which has none."""
    sizes = {"num_layers": 2, "model_dim": 16, "num_heads": 2, "ff_dim": 16, "dropout": 0.0}
    ids = torch.tensor([[2, 1, 5, 6, 7, 2], [8, 2, 1, 9, 2, 1]])
    asked = ids[:, 2:] != 1
    mask = torch.ones(2, 1, dtype=torch.bool)
    blocks = PairBatch(ids[:, :1], mask, ids[:, 1:-1], ids[:, 2:] * asked, asked, int(asked.sum()))
    texts = torch.tensor([[1, 5, 6, 2, 7, 2], [1, 8, 2, 0, 0, 0]])
    follows, places = torch.tensor([True, False]), torch.tensor([2, 4, 7])
    text = TextBatch(texts, texts != 0, (texts == 7).long(), places, torch.tensor([9, 10, 11]), follows, 3)
    cases = [
        (
            build_model("gpt", GptConfig(attention_dropout=0.0, norm=norm, **sizes), VOCAB),
            CrossEntropy(),
            blocks,
        )
        for norm in ("pre", "post")
    ]
    bert = build_network("bert", BertConfig(attention_dropout=0.0, **sizes), VOCAB)
    cases += [(bert, MaskedLanguageModel(), batch) for batch in (text, PackedText.of(text, 8))]
    for model, objective, batch in cases:
        plain = copy.deepcopy(model).double().to(DEVICE).train()
        model = model.to(DEVICE).train()
        found, expected = (objective(each, batch.to(DEVICE)) for each in (model, plain))
        torch.testing.assert_close(found.total, expected.total.float(), **CLOSE)
        gradients = torch.autograd.grad(found.total, list(model.parameters()))
        others = torch.autograd.grad(expected.total, list(plain.parameters()))
        torch.testing.assert_close(gradients, tuple(other.float() for other in others), **CLOSE)


def check_half_on_a_gpu() -> None:
    """Texts of several lengths in bfloat16, where torch's own kernel takes them as they lie."""
    if DEVICE == "cpu":
        return
    torch.manual_seed(1)
    attention = SelfAttention(128, 2, 64, 64).to(DEVICE).bfloat16()
    for lengths in ((300, 17, 0, 5), (8, 8)):
        packing = _packing(lengths)
        x = random(1, sum(lengths), 128).bfloat16().requires_grad_()
        wide = copy.deepcopy(attention).float()
        for causal in (False, True):
            mask = packed(packing, packing, causal)
            found, expected = attention(x, mask), wide(x.float(), mask)
            wanted = torch.randn_like(found)
            gradients = (
                torch.autograd.grad(found, x, wanted),
                torch.autograd.grad(expected, x, wanted.float()),
            )
            for one, other in ((found, expected), (gradients[0][0], gradients[1][0])):
                error = (one.float() - other.float()).norm() / other.float().norm()
                assert error < 0.02, error


def _packing(lengths: tuple[int, ...]) -> Packing:
    return Packing.of(torch.tensor(lengths)).moved(lambda tensor: tensor.to(DEVICE))


def _same(found: torch.Tensor, expected: torch.Tensor, given: list[torch.Tensor]) -> None:
    torch.testing.assert_close(found, expected, **CLOSE)
    wanted = torch.randn_like(found)
    gradients = torch.autograd.grad(found, given, wanted, retain_graph=True)
    others = torch.autograd.grad(expected, given, wanted, retain_graph=True)
    torch.testing.assert_close(gradients, others, **CLOSE)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    for check in (
        check_cross_entropy,
        check_projection,
        check_r_drop,
        check_residual,
        check_dropout,
        check_attention,
        check_rotary,
        check_linear,
        check_model,
        check_language_models,
        check_half_on_a_gpu,
    ):
        check()
        print(check.__name__, "passed", flush=True)
