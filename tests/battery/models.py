"""Every model, small and random, once per option that changes its wiring. A new model costs a line here."""

import torch

from dragoman.data.batch import collate
from dragoman.models import MODELS, build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.copying import CopyingEncoderDecoder
from dragoman.models.gpt import GptConfig
from dragoman.models.markov import Markov, MarkovConfig
from dragoman.models.mixed import MixedConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.ulmfit import UlmfitConfig
from dragoman.models.unilm import UnilmConfig
from dragoman.nn.attention_kernels import open_tap

VOCAB = Vocab(src_size=23, tgt_size=23, shared=True)
SEPARATE = Vocab(src_size=19, tgt_size=23, shared=False)
_SMALL = {"num_layers": 2, "model_dim": 16, "num_heads": 4, "ff_dim": 24}
_RNN = {"model_dim": 16}
_CONV = {"num_layers": 3, "model_dim": 16}  # three layers: every position sees the battery's six

CASES: dict[str, tuple[str, object, Vocab]] = {
    "transformer": ("transformer", TransformerConfig(**_SMALL), VOCAB),
    "transformer-pre": ("transformer", TransformerConfig(**_SMALL, norm="pre", activation="gelu"), VOCAB),
    "transformer-separate": (
        "transformer",
        TransformerConfig(**_SMALL, tie_embeddings=False, output_bias=True, scale_embeddings=False),
        SEPARATE,
    ),
    "transformer-dk-dv": (
        "transformer",
        TransformerConfig(**_SMALL, head_dim=3, value_dim=5, num_decoder_layers=1, position_layout="halves"),
        SEPARATE,
    ),
    # 6 places and distances of 4 are fewer than the battery's sentences have
    "transformer-learned": (
        "transformer",
        TransformerConfig(
            **_SMALL, positions="learned", max_positions=6, norm_embeddings=True, silent_bos=True
        ),
        VOCAB,
    ),
    "transformer-t5": (
        "transformer",
        TransformerConfig(
            **_SMALL,
            positions="t5",
            relative_buckets=8,
            relative_max_distance=10,
            norm="pre",
            norm_kind="rms",
            activation="gelu_tanh",
            gated=True,
            bias=False,
            scale_attention=False,
            tie_embeddings="inputs",
            scale_output=True,
        ),
        VOCAB,
    ),
    "transformer-shaw": (
        "transformer",
        TransformerConfig(**_SMALL, positions="shaw", relative_window=4, head_dim=3, value_dim=5),
        SEPARATE,
    ),
    "transformer-rotary": (
        "transformer",
        TransformerConfig(**_SMALL, positions="rotary", activation="silu", gated=True, value_dim=5),
        VOCAB,
    ),
    "transformer-rotary-halves": (
        "transformer",
        TransformerConfig(**_SMALL, positions="rotary", position_layout="halves", position_base=100.0),
        SEPARATE,
    ),
    "transformer-none": ("transformer", TransformerConfig(**_SMALL, positions="none", norm="pre"), VOCAB),
    "transformer-no-norm": ("transformer", TransformerConfig(**_SMALL, norm_kind="none"), VOCAB),
    "transformer-average": ("transformer", TransformerConfig(**_SMALL, decoder_self="average"), VOCAB),
    "lstm-bahdanau": ("rnn", RnnConfig(**_RNN, num_layers=2), VOCAB),
    "gru-luong-feeding": (
        "rnn",
        RnnConfig(**_RNN, cell="gru", attention="dot", wiring="luong", input_feeding=True),
        VOCAB,
    ),
    "gru-once": ("rnn", RnnConfig(**_RNN, cell="gru", attention="none", context="once"), VOCAB),
    "rnn-none": (
        "rnn",
        RnnConfig(**_RNN, cell="rnn", bidirectional=False, attention="none", tie_embeddings=False),
        SEPARATE,
    ),
    "lstm-luong-general": (
        "rnn",
        RnnConfig(**_RNN, num_layers=2, num_decoder_layers=3, attention="general", wiring="luong"),
        SEPARATE,
    ),
    "gru-held-dropout": (
        "rnn",
        RnnConfig(
            **_RNN,
            cell="gru",
            num_layers=2,
            variational_dropout=True,
            embedding_dropout=0.1,
            recurrent_dropout=0.2,
            weight_dropout=0.2,
        ),
        VOCAB,
    ),
    "lstm-none": ("rnn", RnnConfig(**_RNN, num_layers=2, attention="none"), VOCAB),
    "basic": ("rnn", RnnConfig(**_RNN, cell="gru", attention="basic", output_bias=True), SEPARATE),
    "scaled-dot": ("rnn", RnnConfig(**_RNN, cell="rnn", attention="scaled_dot", wiring="luong"), VOCAB),
    "concat": ("rnn", RnnConfig(**_RNN, cell="gru", attention="concat", attention_dim=5), VOCAB),
    "cosine": ("rnn", RnnConfig(**_RNN, attention="cosine", bidirectional=False), VOCAB),
    "transformer+lstm": (
        "mixed",
        MixedConfig(
            {"kind": "transformer", **_SMALL}, {"kind": "rnn", "model_dim": 12, "attention": "general"}
        ),
        VOCAB,
    ),
    "gru+transformer": (
        "mixed",
        MixedConfig(
            {"kind": "rnn", **_RNN, "cell": "gru"}, {"kind": "transformer", **_SMALL, "output_bias": True}
        ),
        VOCAB,
    ),
    "transformer+rnn-none": (
        "mixed",
        MixedConfig({"kind": "transformer", **_SMALL}, {"kind": "rnn", "model_dim": 24, "attention": "none"}),
        SEPARATE,
    ),
    "convs2s+gru": (
        "mixed",
        MixedConfig({"kind": "convs2s", **_CONV}, {"kind": "rnn", "cell": "gru", "model_dim": 24}),
        SEPARATE,
    ),
    "lstm+convs2s": (
        "mixed",
        MixedConfig({"kind": "rnn", **_RNN}, {"kind": "convs2s", **_CONV, "attention": "general"}),
        VOCAB,
    ),
    "transformer+convs2s": (
        "mixed",
        MixedConfig({"kind": "transformer", **_SMALL}, {"kind": "convs2s", **_CONV | {"model_dim": 12}}),
        VOCAB,
    ),
    "convs2s+transformer": (
        "mixed",
        MixedConfig({"kind": "convs2s", **_CONV}, {"kind": "transformer", **_SMALL, "norm": "pre"}),
        VOCAB,
    ),
    # 4 places are fewer than the battery's sentences have
    "location": ("rnn", RnnConfig(**_RNN, attention="location", wiring="luong", max_positions=4), VOCAB),
    "convs2s": ("convs2s", ConvS2SConfig(**_CONV), VOCAB),
    "convs2s-dilated": (
        "convs2s",
        ConvS2SConfig(**_CONV, decoder_kernel_width=2, dilation_base=2, attention="additive"),
        VOCAB,
    ),
    "convs2s-weight-norm": ("convs2s", ConvS2SConfig(**_CONV, weight_norm=True), VOCAB),
    "convs2s-conv-dim": (
        "convs2s",
        ConvS2SConfig(**_CONV, conv_dim=20, tie_embeddings=False, attention="general", max_positions=4),
        SEPARATE,
    ),
    "convs2s-deep-decoder": (
        "convs2s",
        ConvS2SConfig(
            num_layers=1,
            num_decoder_layers=5,
            model_dim=16,
            kernel_width=5,
            decoder_kernel_width=4,
            dilation_base=3,
            dilation_cycle=2,
            attention="cosine",
            scale_embeddings=True,
            output_bias=False,
        ),
        SEPARATE,
    ),
    # untied: their output goes through the projection, and padding gets an embedding that is not a number
    "transformer-copy": ("transformer", TransformerConfig(**_SMALL, tie_embeddings=False, copy=True), VOCAB),
    "transformer-rotary-copy": (
        "transformer",
        TransformerConfig(**_SMALL, positions="rotary", tie_embeddings=False, copy=True),
        SEPARATE,
    ),
    "lstm-copy": ("rnn", RnnConfig(**_RNN, tie_embeddings=False, copy=True), VOCAB),
    "gru-luong-copy": (
        "rnn",
        RnnConfig(
            **_RNN,
            cell="gru",
            attention="dot",
            wiring="luong",
            input_feeding=True,
            tie_embeddings=False,
            copy=True,
        ),
        SEPARATE,
    ),
    "convs2s-copy": ("convs2s", ConvS2SConfig(**_CONV, tie_embeddings=False, copy=True), VOCAB),
    "transformer+lstm-copy": (
        "mixed",
        MixedConfig(
            {"kind": "transformer", **_SMALL},
            {"kind": "rnn", "model_dim": 12, "tie_embeddings": False, "copy": True},
        ),
        SEPARATE,
    ),
    "gpt": ("gpt", GptConfig(**_SMALL, norm="post", max_positions=32, silent_pad=True), VOCAB),
    # 6 places are fewer than source and target have together
    "gpt-2": ("gpt", GptConfig(**_SMALL, max_positions=6, tie_embeddings=False, output_bias=True), SEPARATE),
    "ulmfit": ("ulmfit", UlmfitConfig(num_layers=2, model_dim=24, hidden_dim=32), VOCAB),
    "unilm": ("unilm", UnilmConfig(**_SMALL, max_positions=10), SEPARATE),
    "markov": ("markov", MarkovConfig(order=3), VOCAB),
    "markov-skips": ("markov", MarkovConfig(order=1, skips=True), VOCAB),
    "markov-selective": (
        "markov",
        MarkovConfig(skips=True, mask="selective", mask_threshold=0.3, smoothing=0.1),
        SEPARATE,
    ),
}
BY_COUNTING = {"markov", "markov-skips", "markov-selective"}
"""Without parameters and embeddings: causality is shown by other inputs, learning by counting."""
WITHOUT_ATTENTION = {
    "gru-once",
    "rnn-none",
    "lstm-none",
    "ulmfit",
    "markov",
}  # a Transformer encoder attends all the same
assert {kind for kind, _, _ in CASES.values()} == set(MODELS)


def make(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> EncoderDecoder:
    """A model ready to be asked: random weights (biases and gains too) or random counts, no dropout."""
    torch.manual_seed(seed)
    model = build_model(*CASES[name]).to(dtype).eval()
    if isinstance(model, Markov):
        src, mask, tgt = random_batch(model.vocab, [1 + i % 8 for i in range(200)], 12, seed)
        rows = zip(src, mask, tgt, strict=True)
        model.count([collate([(ids[kept].tolist(), out.tolist()) for ids, kept, out in rows])])
    if isinstance(model, CopyingEncoderDecoder):
        # a source piece is the next target piece, or with a space its other form; every third is in none
        src = [None if piece % 3 == 0 else str(piece) for piece in range(model.vocab.src_size)]
        names = [str(piece) if piece % 4 else f"▁{piece}" for piece in range(2, model.vocab.tgt_size - 1)]
        tgt = [None, None, None, *names]
        model.match_pieces(src, tgt)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def random_batch(
    vocab: Vocab, src_lengths: list[int], tgt_length: int, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source ids padded to the longest, their mask, and target ids that all have the same length."""
    generator = torch.Generator().manual_seed(seed)
    count, width = len(src_lengths), max(src_lengths)
    mask = torch.arange(width)[None] < torch.tensor(src_lengths)[:, None]
    src = torch.randint(3, vocab.src_size, (count, width), generator=generator).masked_fill(
        ~mask, vocab.pad_id
    )
    tgt = torch.randint(3, vocab.tgt_size, (count, tgt_length), generator=generator)
    return src, mask, tgt


def weights_of_three_beams(model: EncoderDecoder) -> list[torch.Size]:
    """The shapes of all weights in a step of three beams for each of two sentences, of 7 and of 4 pieces."""
    src, mask, _ = random_batch(model.vocab, [7, 4], 1)
    seen: list[torch.Size] = []
    with torch.no_grad():
        state = model.start(model.encode(src, mask)).expand(3)
        with open_tap(lambda _module, weights: seen.append(weights.shape)):
            model.step(torch.full((6,), 4), state)
    return seen
