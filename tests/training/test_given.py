"""Mistakes in a configuration are told before the corpus is read."""

from pathlib import Path

import pytest

from drafted import make_config
from dragoman.errors import UserError
from dragoman.training.display import NoDisplay


class Reading(NoDisplay):
    def stage(self, *_: object) -> None:
        raise AssertionError("the corpus is read")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "model.attention=dot",
            r"model.attention: unknown field of kind transformer; it belongs to rnn, convs2s",
        ),
        ("model.num_layer=4", r"model.num_layer: unknown field; did you mean 'num_layers'\?"),
        (
            "model.preset=transformer-smal",
            r"'transformer-smal' is not known; did you mean 'transformer-small'\?",
        ),
        ("model.kind=rnnn", r"model.kind: 'rnnn' is not known here; did you mean 'rnn'\?"),
        ("model.num_layers=many", r"model.num_layers: expected a whole number, found 'many'"),
        ("train.amp=bf17", r"train.amp: .*found 'bf17'; did you mean 'bf16'\?"),
        ("train.device=gpu", r"device: 'gpu' is not known; use auto, cpu, cuda"),
        ("optimm.rate=1", r"optimm: unknown field; did you mean 'optim'\?"),
        ("schedule.nam=cosine", r"schedule.nam: unknown field; did you mean 'name'\?"),
    ],
)
def test_a_mistake_is_told_first(tmp_path: Path, assignment: str, message: str) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("a\tb\n")
    with pytest.raises(UserError, match=message):
        make_config([table], overrides=[assignment], valid=[], display=Reading())


def test_a_missing_file_has_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    with pytest.raises(UserError, match=r"pears.tsv: there is no such file; did you mean 'pairs.tsv'\?"):
        make_config([tmp_path / "pears.tsv"], overrides=[], valid=[], display=Reading())
