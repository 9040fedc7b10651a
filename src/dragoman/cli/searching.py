"""How a command searches: the run's own way, with what its options say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.config import apply_overrides, from_dict, naming, to_dict
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.decode.search.config import SearchConfig


def with_changes(
    search: "SearchConfig", method: str | None, assignments: Sequence[str], **numbers: float | None
) -> "SearchConfig":
    """`assignments` are such as `search.top_p=0.9`, `numbers` the options with a name of their own. n-best
    alone widens the beam to fit, and a narrower beam alone has fewer best."""
    from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, SearchConfig

    given: dict[str, object] = {name: value for name, value in numbers.items() if value is not None}
    for assignment in assignments:
        if not assignment.startswith("search."):
            raise UserError(f"--set {assignment}: expected a field of search, such as search.top_p=0.9")
    given |= apply_overrides({"search": {}}, assignments)["search"]
    if method is not None:
        given["method"] = method
    if "method" in given:  # what the run says about another method is not meant for this one
        search = search.with_method(from_dict(SearchConfig, {"method": given["method"]}, "search").method)
    if isinstance(search, BeamSearch | ExhaustiveSearch):
        if "n_best" in given and "beam" not in given:
            given["beam"] = max(search.beam, _whole(given["n_best"]))
        if "beam" in given and "n_best" not in given:
            given["n_best"] = max(1, min(search.n_best, _whole(given["beam"])))
    changed = from_dict(SearchConfig, to_dict(search) | given, "search")
    with naming("search"):
        changed.refuse_foreign(given)
    return changed


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 1  # what is no number is refused by its field's name
