"""Every network has an order from its embeddings to its head, in which each parameter stands once."""

import pytest
from torch import nn

from battery.models import BY_COUNTING, CASES
from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import BertConfig
from dragoman.training.transfer import EMBEDDINGS, HEAD, stages

BERT = ("bert", BertConfig(2, 16, 4, 24, max_positions=8), Vocab(23, 23, shared=True))


@pytest.mark.parametrize("name", [*(name for name in CASES if name not in BY_COUNTING), "bert"])
def test_every_parameter_has_its_stage(name: str) -> None:
    model = build_network(*(BERT if name == "bert" else CASES[name]))
    found = stages(model)
    order = list(found)
    assert sorted(n for names in found.values() for n in names) == sorted(
        n for n, _ in model.named_parameters()
    )
    assert all(found.values())
    assert order[0] == EMBEDDINGS
    assert HEAD not in order[:-1]
    layers = [stage for stage in order if stage not in (EMBEDDINGS, HEAD)]
    lists = {stage.rpartition(".")[0] for stage in layers}
    assert layers == [
        f"{each}.{n}" for each in sorted(lists, reverse=True) for n in range(_count(model, each))
    ]
    assert any(n.endswith("embedding.weight") for n in found[EMBEDDINGS])


def _count(model: nn.Module, name: str) -> int:
    return len(model.get_submodule(name))  # type: ignore[arg-type]


def test_stages_by_hand() -> None:
    found = stages(build_network(*BERT))
    assert list(found) == [EMBEDDINGS, "layers.0", "layers.1", HEAD]
    assert found[EMBEDDINGS] == [
        "segments",
        "embedding.weight",
        "positions.weight",
        "embedding_norm.weight",
        "embedding_norm.bias",
    ]
    heads = {name.partition(".")[0] for name in found[HEAD]}
    assert heads == {"pooler", "transform", "transform_norm", "projection", "next_sentence"}
    gpt = stages(build_network(*CASES["gpt-2"]))
    assert list(gpt) == [EMBEDDINGS, "decoder.layers.0", "decoder.layers.1", HEAD]
    assert "decoder.final_norm.weight" in gpt[HEAD]
    both = stages(build_network(*CASES["transformer-pre"]))
    layers = [f"{side}.layers.{n}" for side in ("encoder", "decoder") for n in range(2)]
    assert list(both) == [EMBEDDINGS, *layers, HEAD]
    assert "encoder.final_norm.weight" in both["encoder.layers.1"]
