"""ViT against Hugging Face's with the same random weights, from pixels to the scores of labels."""

import pytest
import torch
from transformers import ViTConfig as TheirConfig
from transformers import ViTForImageClassification

from dragoman.data.batch import VectorBatch
from dragoman.data.vectors.patches import image_patches
from dragoman.models.base import Vocab
from dragoman.models.task_heads import HeadConfig, TaskNetwork
from dragoman.models.vit import VitConfig, vit

LAYERS, LABELS = 2, 5
_NAMES = {
    "vit.embeddings.patch_embeddings.projection.": "network.inputs.",
    "vit.layers.": "network.layers.",
    "attention.o_proj.": "self_attention.out.",
    "layernorm_before.": "self_residual.norm.",
    "layernorm_after.": "ff_residual.norm.",
    "mlp.fc1.": "feedforward.widen.",
    "mlp.fc2.": "feedforward.narrow.",
    "vit.layernorm.": "network.final_norm.",
    "classifier.": "head.out.",
}


@pytest.fixture(scope="module")
def both() -> tuple[ViTForImageClassification, TaskNetwork]:
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_labels": LABELS}
    theirs = ViTForImageClassification(
        TheirConfig(**sizes, intermediate_size=24, image_size=12, patch_size=4, num_channels=3)
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    network = vit(VitConfig(LAYERS, 16, 4, 24, input_dim=3 * 4 * 4, max_positions=9), Vocab(259, 259, True))
    ours = TaskNetwork(network, HeadConfig("image", LABELS))
    weights = {renamed(name): tensor.detach() for name, tensor in theirs.named_parameters()}
    weights["network.class_token"] = weights.pop("vit.embeddings.cls_token")[0, 0]
    weights["network.positions.weight"] = weights.pop("vit.embeddings.position_embeddings")[0]
    # A convolution that never overlaps:
    weights["network.inputs.weight"] = weights["network.inputs.weight"].flatten(1)
    for kind in ("weight", "bias"):
        for layer in range(LAYERS):
            parts = [weights.pop(f"network.layers.{layer}.attention.{part}_proj.{kind}") for part in "qkv"]
            weights[f"network.layers.{layer}.self_attention.query_key_value.{kind}"] = torch.cat(parts)
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
    vectors = torch.from_numpy(image_patches(images.permute(0, 2, 3, 1).numpy(), 4))
    mask = torch.ones(3, 10, dtype=torch.bool)
    with torch.no_grad():
        expected = theirs(images, output_hidden_states=True)
        hidden = theirs.vit(images).last_hidden_state
        found = ours.network.read_layers(vectors, mask)
        scores = ours(VectorBatch(vectors, mask, torch.zeros(3, dtype=torch.long), 3))
    close = {"atol": tolerance, "rtol": 0}
    for layer, theirs_layer in zip(found[:-1], expected.hidden_states, strict=False):
        torch.testing.assert_close(layer, theirs_layer, **close)
    torch.testing.assert_close(found[-1], hidden, **close)
    torch.testing.assert_close(scores, expected.logits, **close)
