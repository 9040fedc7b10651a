"""The Transformer's options against Hugging Face models with the same random weights.

T5          relative bias, RMS norm, gates, no biases, unscaled attention
Llama       rotary in halves, SwiGLU
RoFormer    rotary of neighbours
BART        learned positions
Wav2Vec2-BERT   Shaw's keys (values are held in tests/nn/test_relative.py)
"""

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.models.t5.modeling_t5 import T5Attention, T5LayerNorm
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention import SelfAttention
from dragoman.nn.mask import CAUSAL, padding
from dragoman.nn.positions import ClippedDistances, DistanceVectors, distance_buckets
from peers import published_like

SIZE, DIM, HEADS, FF, LAYERS = 61, 32, 4, 48, 2
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
LENGTHS = [40, 17, 1, 26]
SHAPE = {"num_layers": LAYERS, "model_dim": DIM, "num_heads": HEADS, "ff_dim": FF}


@pytest.fixture(params=[torch.float32, torch.float64], ids=["fp32", "fp64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


def make(config: TransformerConfig, dtype: torch.dtype) -> EncoderDecoder:
    torch.manual_seed(0)
    model = build_model("transformer", config, Vocab(SIZE, SIZE, shared=True)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model.to(dtype)


def sentences() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    src = torch.randint(3, SIZE, mask.shape, generator=generator).masked_fill(~mask, 0)
    return src, mask, torch.randint(3, SIZE, (len(LENGTHS), 35), generator=generator)


def load(theirs: nn.Module, weights: dict[str, Tensor]) -> None:
    """Every parameter of theirs is given one of ours; none is left at random."""
    names = dict(theirs.named_parameters())
    assert sorted(weights) == sorted(names)
    with torch.no_grad():
        for name, parameter in names.items():
            parameter.copy_(weights[name])


def step_by_step(model: EncoderDecoder, src: Tensor, mask: Tensor, tgt: Tensor) -> Tensor:
    state, hidden = model.start(model.encode(src, mask)), []
    for t in range(tgt.size(1)):
        out, state = model.step(tgt[:, t], state)
        hidden.append(out)
    return torch.stack(hidden, 1)


# T5 ---------------------------------------------------------------------------------------------------------


def exact_norms(model: nn.Module) -> nn.Module:
    """Theirs computes the mean square in float32 always; torch's norm computes it in what it is given."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, T5LayerNorm):
                norm = nn.RMSNorm(DIM, eps=child.variance_epsilon)
                norm.weight = child.weight
                setattr(module, name, norm)
    return model


@pytest.mark.parametrize("gated", [False, True], ids=["relu", "gated-gelu"])
@pytest.mark.parametrize("scaled", [False, True], ids=["v1.1", "v1"])
@pytest.mark.parametrize("buckets", [(32, 128), (8, 12)])
def test_t5(gated: bool, scaled: bool, buckets: tuple[int, int], dtype: torch.dtype) -> None:
    config = TransformerConfig(
        **SHAPE,
        head_dim=10,  # as in T5's own largest models, heads × width is not the model's width
        norm="pre",
        norm_kind="rms",
        norm_eps=1e-6,
        bias=False,
        gated=gated,
        activation="gelu_tanh" if gated else "relu",
        positions="t5",
        relative_buckets=buckets[0],
        relative_max_distance=buckets[1],
        scale_attention=False,
        scale_embeddings=False,
        scale_output=scaled,
    )
    ours = make(config, dtype)
    theirs = published_like(ours, config).to(dtype).eval()
    if dtype == torch.float64:
        theirs = exact_norms(theirs)
    src, mask, tgt = sentences()
    with torch.no_grad():
        expected = theirs(input_ids=src, attention_mask=mask.long(), decoder_input_ids=tgt, use_cache=False)
        memory = ours.encode(src, mask)
        tolerance = TOLERANCE[dtype]
        theirs_seen = expected.encoder_last_hidden_state[mask]
        torch.testing.assert_close(memory.hidden[mask], theirs_seen, atol=tolerance, rtol=tolerance)
        logits = ours.project(ours.decode(tgt, memory))
        torch.testing.assert_close(logits, expected.logits, atol=tolerance, rtol=tolerance)
        stepped = ours.project(step_by_step(ours, src, mask, tgt))
        torch.testing.assert_close(stepped, expected.logits, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("num_buckets", "farthest"), [(32, 128), (8, 12), (4, 3), (64, 1000), (6, 40)])
def test_t5_buckets(num_buckets: int, farthest: int, causal: bool) -> None:
    distances = torch.arange(-3000, 3001)
    theirs = T5Attention._relative_position_bucket(distances, not causal, num_buckets, farthest)
    ours = distance_buckets(num_buckets, farthest, causal)[distances.clamp(-farthest, farthest) + farthest]
    assert torch.equal(ours, theirs)


# Rotary -----------------------------------------------------------------------------------------------------


def test_llama() -> None:
    """Our encoder's layers under a causal mask are a decoder without memory."""
    config = TransformerConfig(
        **SHAPE,
        norm="pre",
        norm_kind="rms",
        bias=False,
        gated=True,
        activation="silu",
        positions="rotary",
        position_layout="halves",
        position_base=500.0,
    )
    ours = make(config, torch.float32).encoder
    theirs = transformers.LlamaModel(
        transformers.LlamaConfig(
            vocab_size=SIZE,
            hidden_size=DIM,
            intermediate_size=FF,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS,
            rms_norm_eps=config.norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0},
            pad_token_id=0,
        )
    ).eval()
    weights = {"embed_tokens.weight": ours.embedding.weight, "norm.weight": ours.final_norm.weight}
    for number, layer in enumerate(ours.layers):
        packed = layer.self_attention.query_key_value.weight.chunk(3)
        wide = layer.feedforward.widen.weight.chunk(2)
        parts = {f"self_attn.{name}_proj": part for name, part in zip("qkv", packed, strict=True)}
        parts |= {"self_attn.o_proj": layer.self_attention.out.weight}
        parts |= {"mlp.gate_proj": wide[0], "mlp.up_proj": wide[1]}
        parts |= {"mlp.down_proj": layer.feedforward.narrow.weight}
        parts |= {"input_layernorm": layer.self_residual.norm.weight}
        parts |= {"post_attention_layernorm": layer.ff_residual.norm.weight}
        weights |= {f"layers.{number}.{name}.weight": part for name, part in parts.items()}
    load(theirs, weights)
    ids = sentences()[2]
    with torch.no_grad():
        x = ours.embedding(ids)
        expected = theirs(inputs_embeds=x, use_cache=False).last_hidden_state
        relation = ours.relations(x.size(1), x.size(1), like=x)
        for layer in ours.layers:
            x = layer(x, CAUSAL, relation)
        torch.testing.assert_close(ours.final_norm(x), expected, atol=1e-5, rtol=1e-5)


def test_roformer() -> None:
    config = TransformerConfig(**SHAPE, positions="rotary", activation="gelu")
    ours = make(config, torch.float32).encoder
    theirs = transformers.RoFormerModel(
        transformers.RoFormerConfig(
            vocab_size=SIZE,
            hidden_size=DIM,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=FF,
            layer_norm_eps=config.norm_eps,
        )
    ).encoder.eval()
    weights: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):
        for number, layer in enumerate(ours.layers):
            packed = getattr(layer.self_attention.query_key_value, kind).chunk(3)
            named = zip(("query", "key", "value"), packed, strict=True)
            parts = {f"attention.self.{name}": part for name, part in named}
            modules = {
                "attention.output.dense": layer.self_attention.out,
                "attention.output.LayerNorm": layer.self_residual.norm,
                "intermediate.dense": layer.feedforward.widen,
                "output.dense": layer.feedforward.narrow,
                "output.LayerNorm": layer.ff_residual.norm,
            }
            parts |= {name: getattr(module, kind) for name, module in modules.items()}
            weights |= {f"layer.{number}.{name}.{kind}": part for name, part in parts.items()}
    table = dict(theirs.named_parameters()).get("embed_positions.weight")
    load(theirs, weights | ({} if table is None else {"embed_positions.weight": table}))
    src, mask, _ = sentences()
    with torch.no_grad():
        hidden = ours(src, mask).hidden
        hide = torch.zeros(mask.shape).masked_fill(~mask, -1e30)[:, None, None]
        expected = theirs(ours.embedding(src), attention_mask=hide)[0]
    torch.testing.assert_close(hidden[mask], expected[mask], atol=1e-5, rtol=1e-5)


# Learned positions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaled", [False, True])
def test_bart(dtype: torch.dtype, scaled: bool) -> None:
    config = TransformerConfig(
        **SHAPE,
        positions="learned",
        max_positions=50,
        activation="gelu",
        output_bias=True,
        norm_embeddings=True,
        scale_embeddings=scaled,
    )
    ours = make(config, dtype)
    theirs = published_like(ours, config).to(dtype).eval()
    src, mask, tgt = sentences()
    with torch.no_grad():
        expected = theirs(
            input_ids=src, attention_mask=mask.long(), decoder_input_ids=tgt, use_cache=False
        ).logits
        tolerance = TOLERANCE[dtype]
        logits = ours.project(ours(src, mask, tgt))
        torch.testing.assert_close(logits, expected, atol=tolerance, rtol=tolerance)
        stepped = ours.project(step_by_step(ours, src, mask, tgt))
        torch.testing.assert_close(stepped, expected, atol=tolerance, rtol=tolerance)


# Shaw -------------------------------------------------------------------------------------------------------


def test_shaws_keys(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    window, width = 5, DIM // HEADS
    vectors = DistanceVectors(window, width, width, causal=False)
    ours = SelfAttention(DIM, HEADS, width, width, distances=vectors).to(dtype).eval()
    theirs = Wav2Vec2BertSelfAttention(
        transformers.Wav2Vec2BertConfig(
            hidden_size=DIM,
            num_attention_heads=HEADS,
            position_embeddings_type="relative_key",
            left_max_position_embeddings=window,
            right_max_position_embeddings=window,
            attn_implementation="eager",
        )
    )
    theirs = theirs.to(dtype).eval()
    with torch.no_grad():
        vectors.value.zero_()
    weights = {"distance_embedding.weight": vectors.key}
    for kind in ("weight", "bias"):
        packed = getattr(ours.query_key_value, kind).chunk(3)
        weights |= {f"linear_{name}.{kind}": part for name, part in zip("qkv", packed, strict=True)}
        weights[f"linear_out.{kind}"] = getattr(ours.out, kind)
    load(theirs, weights)
    _, mask, _ = sentences()
    x = torch.randn(*mask.shape, DIM, generator=torch.Generator().manual_seed(3), dtype=dtype)
    hide = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -1e30)[:, None, None]
    with torch.no_grad():
        relation = ClippedDistances(window, causal=False)(x.size(1), x.size(1), x)
        expected = theirs(x, attention_mask=hide)[0]
        tolerance = TOLERANCE[dtype]
        torch.testing.assert_close(ours(x, padding(mask), relation), expected, atol=tolerance, rtol=tolerance)
