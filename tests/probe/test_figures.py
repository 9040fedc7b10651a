"""Figures say in text what they show, hide what is hidden, and come out as the same bytes again."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from battery.models import make
from dragoman.decode.search.trace import Candidate, Trace
from dragoman.errors import UserError
from dragoman.probe.figures.beam import best_path, draw_beam
from dragoman.probe.figures.curves import draw_curves
from dragoman.probe.figures.patches import draw_patches
from dragoman.probe.figures.positions import draw_positions
from dragoman.probe.figures.weights import draw_heads, draw_heatmap
from dragoman.probe.positions import positions_of
from dragoman.probe.words import View

TRACE = Trace(
    [
        [Candidate(-1, 5, "▁a", -0.5, -0.5, "kept"), Candidate(-1, 6, "$b$", -1.5, -1.5, "kept")],
        [
            Candidate(0, 2, "</s>", -0.7, -1.2, "ended"),
            Candidate(1, 5, "▁a", -0.1, -1.6, "kept"),
            Candidate(0, 7, "c", -2.0, -2.5, "pruned"),
        ],
        [Candidate(1, 2, "</s>", -0.1, -1.7, "ended"), Candidate(1, 7, "c", -3.0, -4.6, "stopped")],
    ]
)


def svg_texts(data: bytes) -> list[str]:
    nodes = ElementTree.fromstring(data).iter()
    return ["".join(node.itertext()) for node in nodes if node.tag.endswith("}text")]


def example(hidden: bool = False) -> View:
    weights = np.array([[0.75, 0.25], [0.001, 0.999]])
    blind = np.array([[False, hidden], [False, False]])
    return View(weights, ("▁un $x$", "_b"), ("▁a", "<b>"), blind, "cross attention, layer 1, head 0")


def test_a_heatmap_with_its_words_and_numbers() -> None:
    drawn = draw_heatmap(example(hidden=True), ("svg", "png"), "target", "source", note="a note")
    texts = svg_texts(drawn["svg"])
    for text in ("␣un $x$", "_b", "␣a", "<b>", ".75", "1.00", "target", "source", "a note"):
        assert text in texts, texts
    large = View(np.array([[10.17, -0.5]]), ("a",), ("b", "c"), np.zeros((1, 2), dtype=bool), "")
    assert {"10.17", "−.50"} <= set(svg_texts(draw_heatmap(large, ("svg",), signed=True)["svg"]))
    assert ".25" not in texts and ".00" not in texts  # hidden, and too small to be told
    assert drawn["png"].startswith(b"\x89PNG")
    again = [draw_heatmap(example(hidden=True), ("pdf",))["pdf"] for _ in range(2)]
    assert again[0] == again[1] and again[0].startswith(b"%PDF")


def test_all_heads_side_by_side() -> None:
    texts = svg_texts(draw_heads([[example(), example()], [example()]], ("svg",))["svg"])
    assert texts.count("layer 1, head 2") == texts.count("layer 2, head 1") == 1
    assert "layer 2, head 2" not in texts and "cross attention, all heads" in texts
    assert texts.count("␣un $x$") == 2 and texts.count("<b>") == 2  # only at the outer maps


def test_positions() -> None:
    found = positions_of(make("transformer-t5"), 30)
    texts = svg_texts(draw_positions(found, ("svg",))["svg"])
    assert f"positions: {found.kind}" in texts and found.square_name in texts and "distance j − i" in texts


def test_patches_have_their_word_and_its_probability() -> None:
    image, maps = np.full((4, 4, 3), 128, dtype=np.uint8), np.full((2, 2, 2), 0.25)
    texts = svg_texts(draw_patches(image, ["▁a", "</s>"], [0.99, 0.5], maps, ("svg",))["svg"])
    assert texts == ["image", "␣a  99%", "</s>  50%"]


def test_curves_of_what_was_written_down() -> None:
    train = [{"kind": "train", "update": n, "nll": 9.0 / n, "rate": 0.1} for n in (1, 2)]
    valid = {"kind": "valid", "update": 2, "loss": 4.0, "bleu": 12.0, "chrf": None}
    texts = svg_texts(draw_curves([*train, valid], ("svg",), "a $run$")["svg"])
    assert {"loss", "quality on the validation set", "learning rate", "a $run$"} <= set(texts)
    assert "training" in texts and "validation" in texts and "chrF" not in texts
    with pytest.raises(UserError, match="no numbers yet"):
        draw_curves([])


def test_the_tree_of_a_search() -> None:
    assert best_path(TRACE, (5, 2)) == [0, 0]
    assert best_path(TRACE, (6, 5, 2)) == [1, 1, 0]
    assert best_path(TRACE, (6, 6, 2)) == []
    texts = svg_texts(draw_beam(TRACE, (6, 5, 2), ("svg",), "a → b")["svg"])
    for text in ("␣a", "$b$", "−1.70", "the translation", "pruned", "live when the search was done", "a → b"):
        assert text in texts, texts
    assert texts.count("</s>") == 2
    with pytest.raises(UserError, match="nothing was searched"):
        draw_beam(Trace(), ())
