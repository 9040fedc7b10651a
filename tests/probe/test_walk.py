"""A pair on its way through a model: held against what the model computes."""

import numpy as np
import pytest
import torch

from battery.models import make
from dragoman.nn.scores import SCORES
from dragoman.probe.attention_steps import FORMULAS, score_steps
from dragoman.probe.forward_pass import ModelStage, walk
from dragoman.probe.inside import look_inside
from dragoman.probe.vectors import vectors_of

SRC, TGT = [5, 9, 4, 11, 7], [8, 3, 12, 6]
SCORED = [
    "lstm-bahdanau",
    "lstm-luong-general",
    "gru-luong-feeding",
    "basic",
    "scaled-dot",
    "concat",
    "cosine",
]
SCORED += ["location"]


def named(stages: tuple[ModelStage, ...], module: str) -> ModelStage:
    return next(stage for stage in stages if stage.module == module)


def test_a_transformer_from_the_embedding_to_the_logits() -> None:
    model = make("transformer").eval()
    found = walk(model, SRC, TGT)
    names = [stage.module for stage in found.stages]
    assert (
        names.index("encoder.embedding") < names.index("encoder.positions") < names.index("encoder.layers.0")
    )
    assert (
        names.index("encoder") < names.index("decoder.layers.0.cross_attention") < names.index("decoder.out")
    )
    assert len(named(found.stages, "encoder.embedding").given) == len(SRC) + 1
    assert len(named(found.stages, "decoder.embedding").given) == len(TGT) + 1
    seen = look_inside(model, SRC, TGT)
    scores = found.logits.log_softmax(dim=-1)[range(len(seen.tgt_ids)), list(seen.tgt_ids)]
    assert scores.tolist() == pytest.approx(seen.token_scores, abs=1e-5)
    attention = named(found.stages, "encoder.layers.1.self_attention")
    vectors = vectors_of(model, SRC, TGT)[attention.module]
    heads = torch.einsum(
        "hqm,hqmw->qhw", vectors.scores().softmax(dim=-1), vectors.value.expand(-1, 6, -1, -1)
    )
    assert attention.before is not None
    torch.testing.assert_close(attention.before, heads.flatten(1).float(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        attention.given, vectors.out(heads.flatten(1)).detach().float(), atol=1e-5, rtol=1e-4
    )


def test_the_norm_has_the_residual_sum_before_it() -> None:
    model = make("transformer").eval()  # post-norm
    stages = walk(model, SRC, TGT).stages
    placed = named(stages, "encoder.positions").given
    norm, attention = (
        named(stages, f"encoder.layers.0.{name}") for name in ("self_residual.norm", "self_attention")
    )
    assert norm.before is not None
    torch.testing.assert_close(norm.before, placed + attention.given, atol=1e-5, rtol=1e-4)
    assert norm.given.shape == norm.before.shape


@pytest.mark.parametrize("name", ["lstm-bahdanau", "rnn-none", "convs2s", "gpt"])
def test_other_models_walk_too(name: str) -> None:
    model = make(name).eval()
    found = walk(model, SRC, TGT)
    kinds = {stage.kind for stage in found.stages}
    assert "embedding" in kinds and found.stages[-1].kind == "out"
    if name == "rnn-none":
        vector = next(stage for stage in found.stages if stage.kind == "one_vector")
        assert len(vector.given) == 1
    seen = look_inside(model, SRC, TGT)
    scores = found.logits.log_softmax(dim=-1)[range(len(seen.tgt_ids)), list(seen.tgt_ids)]
    assert scores.tolist() == pytest.approx(seen.token_scores, abs=1e-4)


@pytest.mark.parametrize("name", SCORED)
def test_the_steps_of_a_score_end_in_its_weights(name: str) -> None:
    model = make(name).eval()
    seen = look_inside(model, SRC, TGT)
    own = next(each for each in seen.attentions if each.kind == "cross")
    steps = score_steps(model, SRC, TGT, own.module, 2)
    powers = np.exp(steps.scores - steps.scores.max())
    assert (powers / powers.sum()).tolist() == pytest.approx(own.weights[0, 2].tolist(), abs=1e-5)
    assert (steps.inner is not None) == (name in ("lstm-bahdanau", "concat"))


def test_every_score_has_a_formula() -> None:
    assert set(FORMULAS) == set(SCORES.values())
