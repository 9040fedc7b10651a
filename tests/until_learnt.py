"""Learning in a test: until it is learnt.

How many updates a model needs depends on how a processor rounds, so no test trains for a number of updates
and then asks how good the model is. A test says what has to be learnt, and trains until it is. The limit is
only there to end the test of a model that cannot learn it: it is many times what any seed needed under any
instruction set that was tried, and the tests say how many that were.
"""

from collections.abc import Callable

import torch

from dragoman.learning.loss import Loss


def learn_until(
    learnt: Callable[[], bool], update: Callable[[], object], at_most: int, every: int = 1
) -> int:
    """Update until it is learnt, which is asked every so many updates. Returns how many it took."""
    for done in range(at_most):
        if done % every == 0 and learnt():
            return done
        update()
    assert learnt(), f"not learnt in {at_most} updates"
    return at_most


def learn_by_heart(
    model: torch.nn.Module, loss_of: Callable[[], Loss], rate: float, at_most: int = 2000, below: float = 0.05
) -> int:
    """Adam on one batch until its negative log-likelihood a piece is below this: a piece that is known has 0,
    and one of two that are equally likely has 0.69."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = [loss_of()]

    def update() -> None:
        optimizer.zero_grad()
        (losses[0].total / losses[0].count).backward()
        optimizer.step()
        losses[0] = loss_of()

    return learn_until(lambda: (losses[0].nll / losses[0].count).item() < below, update, at_most)
