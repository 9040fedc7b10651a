"""Our own search under the guard of `loops.py`."""

from collections.abc import Sequence

import torch

from dragoman.data.batch import unpadded
from dragoman.decode.config import SearchConfig
from dragoman.decode.constraints import Constraints
from dragoman.decode.ended import Ended
from dragoman.decode.loops import without_loops
from dragoman.decode.scorer import Scorer
from dragoman.decode.search import search
from dragoman.decode.wanted import Wanted, some_of
from dragoman.shapes import Bool, Int, Tensor
from dragoman.text.spelling import Spelling


def search_guarded(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] | None = None,
    spelling: Spelling | None = None,
    wanted: Sequence[Wanted] | None = None,
) -> list[list[Ended]]:
    """`search`, and what goes in circles made anew."""

    def again(numbers: list[int], calm: SearchConfig) -> list[list[Ended]]:
        rows = torch.tensor(numbers, device=src_ids.device)
        own = None if constraints is None else [constraints[row] for row in numbers]
        return search(scorer, src_ids[rows], src_mask[rows], calm, own, spelling, some_of(wanted, numbers))

    found = search(scorer, src_ids, src_mask, config, constraints, spelling, wanted)
    return without_loops(found, unpadded(src_ids, src_mask), config, again)
