"""ViT against Hugging Face's with the same random weights, from pixels to the scores of labels."""

import pytest
import torch
from transformers import ViTConfig as TheirConfig
from transformers import ViTForImageClassification

from dragoman.models.vit import Vit, VitConfig, patches, vit

LAYERS, LABELS = 2, 5
_NAMES = {
    "vit.embeddings.patch_embeddings.projection.": "inputs.",
    "vit.layers.": "layers.",
    "attention.o_proj.": "self_attention.out.",
    "layernorm_before.": "self_residual.norm.",
    "layernorm_after.": "ff_residual.norm.",
    "mlp.fc1.": "feedforward.widen.",
    "mlp.fc2.": "feedforward.narrow.",
    "vit.layernorm.": "final_norm.",
    "classifier.": "labels.",
}


@pytest.fixture(scope="module")
def both() -> tuple[ViTForImageClassification, Vit]:
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_labels": LABELS}
    theirs = ViTForImageClassification(
        TheirConfig(**sizes, intermediate_size=24, image_size=12, patch_size=4, num_channels=3)
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    ours = vit(VitConfig(LAYERS, 16, 4, 24, num_labels=LABELS, input_dim=3 * 4 * 4, max_positions=9))
    weights = {renamed(name): tensor.detach() for name, tensor in theirs.named_parameters()}
    weights["class_token"] = weights.pop("vit.embeddings.cls_token")[0, 0]
    weights["positions.weight"] = weights.pop("vit.embeddings.position_embeddings")[0]
    weights["inputs.weight"] = weights["inputs.weight"].flatten(1)  # a convolution that never overlaps
    for kind in ("weight", "bias"):
        for layer in range(LAYERS):
            parts = [weights.pop(f"layers.{layer}.attention.{part}_proj.{kind}") for part in "qkv"]
            weights[f"layers.{layer}.self_attention.query_key_value.{kind}"] = torch.cat(parts)
    ours.load_state_dict(weights)
    return theirs, ours.eval()


def renamed(name: str) -> str:
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_every_layer_and_the_scores_are_the_same(both, dtype: torch.dtype, tolerance: float) -> None:
    theirs, ours = (model.to(dtype) for model in both)
    images = torch.randn(3, 3, 12, 12, dtype=dtype, generator=torch.Generator().manual_seed(2))
    vectors = patches(images, 4)
    mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        expected = theirs(images, output_hidden_states=True)
        hidden = theirs.vit(images).last_hidden_state
        found = ours.read_layers(vectors, mask)
        scores = ours(vectors, mask)
    close = {"atol": tolerance, "rtol": 0}
    for layer, theirs_layer in zip(found[:-1], expected.hidden_states, strict=False):
        torch.testing.assert_close(layer, theirs_layer, **close)
    torch.testing.assert_close(found[-1], hidden, **close)
    torch.testing.assert_close(scores, expected.logits, **close)
