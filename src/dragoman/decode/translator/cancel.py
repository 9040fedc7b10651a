"""Whether anybody still waits for a translation. Plain Python: engines ask it wherever they can stop.

Before every step a search asks for each of its sentences. One that nobody wants any more leaves the batch, as
one that is done does, and has the hypotheses that it had, or none. The others go on as they are.
"""

from collections.abc import Callable, Sequence

Wanted = Callable[[], bool]
"""Asked by the thread that searches, and often, so it has to be quick. After a no there is no yes."""


def some_of(wanted: Sequence[Wanted] | None, numbers: Sequence[int]) -> list[Wanted] | None:
    """Those of the sentences with these numbers."""
    return None if wanted is None else [wanted[number] for number in numbers]


def still(wanted: Sequence[Wanted] | None, number: int) -> bool:
    return wanted is None or wanted[number]()
