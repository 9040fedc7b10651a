"""Which fields a method of searching has, and that files of earlier versions are still read."""

import pytest

from dragoman.config import from_dict, to_dict
from dragoman.decode.search.config import (
    BeamSearch,
    ExhaustiveSearch,
    MbrOfBeam,
    MbrOfSamples,
    SampleSearch,
    SearchConfig,
)
from dragoman.errors import UserError

FLAT = {
    "beam": 5,
    "n_best": 1,
    "alpha": 1.0,
    "length_penalty": "power",
    "coverage": 0.0,
    "max_ratio": 2.0,
    "max_extra": 10,
    "max_length": None,
    "min_ratio": 0.0,
    "min_length": 0,
    "no_repeat_ngram": 0,
    "repetition_penalty": 1.0,
    "loop_guard": True,
    "stop": "complete",
    "groups": 1,
    "diversity": 0.5,
    "shortlist": False,
    "record": False,
    "max_nodes": 100_000,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": 1,
    "candidates": "samples",
    "samples": 32,
    "utility": "chrf",
}
"""`search:` as version 0.1 wrote it into every run, whatever the method."""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"method": "beam", "beam": 8, "alpha": 0.6}, BeamSearch(beam=8, alpha=0.6, stop="complete")),
        ({"method": "exhaustive", "max_nodes": 7}, ExhaustiveSearch(max_nodes=7, stop="complete")),
        ({"method": "sample", "top_p": 0.9, "beam": 8, "stop": "limit"}, SampleSearch(top_p=0.9)),
        ({"method": "mbr", "samples": 8, "loop_guard": False}, MbrOfSamples(samples=8)),
        (
            {"method": "mbr", "candidates": "n_best", "groups": 5, "seed": 3},
            MbrOfBeam(groups=5, stop="complete"),
        ),
    ],
)
def test_files_of_earlier_versions_are_read(changes: dict[str, object], expected: SearchConfig) -> None:
    assert from_dict(SearchConfig, FLAT | changes, "search") == expected
    assert from_dict(SearchConfig, to_dict(expected), "search") == expected


def test_without_a_method_it_is_a_beam() -> None:
    assert from_dict(SearchConfig, {"beam": 4}) == BeamSearch(beam=4) == SearchConfig(beam=4)
    assert from_dict(SearchConfig, {}) == BeamSearch()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 0.5}, r"^search\.temperature: the method beam has no such field; it belongs to "),
        ({"method": "sample", "groups": 2}, r"^search\.groups: the method sample has no such field"),
        ({"method": "sample", "record": True}, r"^search\.record: the method sample has no such field"),
        ({"method": "mbr", "coverage": 0.1}, r"^search\.coverage: the method mbr with candidates samples "),
        ({"method": "walk"}, r"^search\.method: expected one of beam, exhaustive, sample, mbr"),
        ({"method": ["beam"]}, r"^search\.method: expected one of"),
        ({"method": "mbr", "candidates": 3}, r"^search\.candidates: expected one of samples, n_best"),
        ({"beem": 3}, r"^search\.beem: unknown field; did you mean 'beam'\?"),
    ],
)
def test_a_field_of_another_method_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(SearchConfig, fields, "search")


def test_the_class_and_its_method_agree() -> None:
    for method in ("beam", "exhaustive", "sample", "mbr"):
        assert BeamSearch().with_method(method).method == method
    assert SearchConfig(method="mbr", candidates="n_best") == MbrOfBeam()
