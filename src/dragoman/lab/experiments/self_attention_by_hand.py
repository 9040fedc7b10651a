"""Six steps of self-attention on given vectors, by hand and by the models' attention."""

import numpy as np
import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.attention import attend
from dragoman.probe.attention_steps import six_steps

WORDS = {"Thinking": (1.0, 0.0, 1.0, 0.0), "Machines": (0.0, 2.0, 0.0, 2.0)}
QUERY = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
KEY = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
VALUE = np.array([[1.0, 2.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])


def measure(_bench: Bench) -> Numbers:
    x = np.array(list(WORDS.values()))
    queries, keys, values = x @ QUERY, x @ KEY, x @ VALUE
    q, k, v = (torch.from_numpy(part)[None, None] for part in (queries, keys, values))
    module = attend(torch.nn.Identity(), q, k, v)[0, 0]
    rows: dict[str, dict[str, float]] = {}
    for place, word in enumerate(WORDS):
        steps = six_steps(queries[place], keys, values)
        named = {
            "1 q, k, v": [*queries[place], *keys[place], *values[place]],
            "2 q · k": steps.scores,
            "3 / √2": steps.scaled,
            "4 softmax": steps.weights,
            "5 weight × v": steps.weighted.ravel(),
            "6 sum": steps.summed,
            "attention of the models": module[place].numpy(),
        }
        rows |= {
            f"{word}: {n}": {str(i + 1): float(v) for i, v in enumerate(row)} for n, row in named.items()
        }
    return exact(rows)


def rule(numbers: Numbers) -> Verdict:
    """Holds if step 6 equals what the attention of the models returns, to nine digits, for both words, and
    each word's weights sum to 1."""
    found = averages(numbers)
    for word in WORDS:
        ours, theirs = (list(found[f"{word}: {n}"].values()) for n in ("6 sum", "attention of the models"))
        if max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) > 1e-9:
            return fails(f"«{word}»: {ours} by hand, {theirs} by the models")
        if abs(sum(found[f"{word}: 4 softmax"].values()) - 1) > 1e-9:
            return fails(f"the weights of «{word}» do not sum to 1")
    weights = list(found["Thinking: 4 softmax"].values())
    return holds(f"«Thinking» looks at itself with {weights[0]:.4f} and at «Machines» with {weights[1]:.4f}")


def figure(numbers: Numbers) -> Pictures:
    return matrices(
        {w: {n.split(": ")[1]: c for n, c in numbers.items() if n.startswith(w)} for w in WORDS}, columns=2
    )


EXPERIMENT = Experiment(
    name="self-attention-by-hand",
    lecture=1,
    also=(4, 5),
    claim="Self-attention is six steps: q, k, v; scores; division by √d; softmax; weighting the values; "
    "their sum.",
    how="Two words with given vectors and given matrices of queries, keys and values, step by step.",
    literature="Vaswani et al. 2017, equation 1; Alammar 2018, The Illustrated Transformer.",
    measure=measure,
    rule=rule,
    figure=figure,
)
