"""A one-hot row times a matrix pulls out a row: the embedding of a word."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.linear import TokenEmbedding

WORDS: tuple[str, ...] = ("files", "find", "my")
SENTENCE = ("find", "my", "files")


def measure(_bench: Bench) -> Numbers:
    torch.manual_seed(1)
    module = TokenEmbedding(len(WORDS), 4, pad_id=-1, scale=False)
    ids = torch.tensor([WORDS.index(word) for word in SENTENCE])
    hot = torch.eye(len(WORDS))[ids]
    with torch.no_grad():
        rows, looked_up = hot @ module.weight, module(ids[None])[0]
    found = {
        f"one-hot: {w}": dict(zip(WORDS, map(float, hot[i]), strict=True)) for i, w in enumerate(SENTENCE)
    }
    for name, values in (("matrix", module.weight.detach()), ("product", rows), ("embedding", looked_up)):
        words = WORDS if name == "matrix" else SENTENCE
        for i, word in enumerate(words):
            found[f"{name}: {word}"] = {f"dim {c}": float(v) for c, v in enumerate(values[i])}
    return exact(found)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for every word of the sentence product, embedding and row of the matrix are the same
    numbers."""
    found = averages(numbers)
    for word in SENTENCE:
        if not found[f"product: {word}"] == found[f"embedding: {word}"] == found[f"matrix: {word}"]:
            return fails(f"the row of «{word}» is another")
    return holds("all three words")


def figure(numbers: Numbers) -> Pictures:
    names = ("one-hot", "matrix", "product")
    panels = {n: {r.split(": ")[1]: c for r, c in numbers.items() if r.startswith(n)} for n in names}
    return matrices(panels, columns=3)


EXPERIMENT = Experiment(
    name="one-hot",
    lecture=3,
    claim="A one-hot vector times a matrix pulls out one row of it: that is what an embedding does.",
    how="Three one-hot words times the matrix of an embedding, beside what the embedding itself returns.",
    literature="Rohrer 2021, Transformers from Scratch.",
    measure=measure,
    rule=rule,
    figure=figure,
)
