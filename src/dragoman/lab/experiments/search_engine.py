"""Queries, keys and values as a search engine: how well a query matches each key, and what comes back."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.attention import attend

WORDS = ("love", "story", "war", "space")
TITLES = {
    "Romeo and Juliet": (1.0, 1.0, 0.0, 0.0),
    "The Iliad": (0.0, 1.0, 1.0, 0.0),
    "Solaris": (1.0, 0.0, 0.0, 1.0),
}
QUERY = (1.0, 1.0, 0.0, 0.0)
SHARPNESS = 4.0


def measure(_bench: Bench) -> Numbers:
    keys = torch.tensor(list(TITLES.values()), dtype=torch.float64)
    query = torch.tensor(QUERY, dtype=torch.float64)
    match = keys @ query / query.sum()
    values = torch.eye(len(TITLES), dtype=torch.float64)  # each title gives back itself
    shape = (query[None, None, None] * SHARPNESS, keys[None, None], values[None, None])
    weights = attend(torch.nn.Identity(), *shape, scaled=False)[0, 0, 0]
    return exact(
        {
            title: {"match": float(match[row]), "weight": float(weights[row])}
            for row, title in enumerate(TITLES)
        }
    )


def rule(numbers: Numbers) -> Verdict:
    """Holds if the matches are 1.0, 0.5 and 0.5, the weights sum to 1, and the best match has the greatest
    weight and the equal ones equal weights."""
    found = averages(numbers)
    match, weight = ([cells[name] for cells in found.values()] for name in ("match", "weight"))
    good = match == [1.0, 0.5, 0.5] and abs(sum(weight) - 1) < 1e-6 and abs(weight[1] - weight[2]) < 1e-6
    told = ", ".join(
        f"{title} {cells['match']:.1f} → {cells['weight']:.2f}" for title, cells in found.items()
    )
    return holds(told) if good and weight[0] == max(weight) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    keys = exact({title: dict(zip(WORDS, row, strict=True)) for title, row in TITLES.items()})
    query = exact({"query: love story": dict(zip(WORDS, QUERY, strict=True))})
    return matrices({"keys": keys, "query": query, "match and weight": numbers}, columns=3)


EXPERIMENT = Experiment(
    name="search-engine",
    lecture=3,
    also=(5,),
    claim="Attention is a soft look-up: a query is compared with keys, and values come back in proportion "
    "to the match.",
    how="Three titles have keys over four words. The query «love story» asks them by the attention of the "
    "models; "
    f"scores are multiplied by {SHARPNESS:g} so that the best match stands out.",
    literature="The lecture's example: matches of 1.0 and 0.5.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="match of the query with the key, and attention weight",
)
