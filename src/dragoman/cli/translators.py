"""The translator of run directories, or of a directory that `dragoman export` wrote, and its search with what
the options of a command say."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.data.directions import Directions
    from dragoman.decode.confidence import Calibration
    from dragoman.decode.search.config import SearchConfig
    from dragoman.runs.directory import Run


_ARGOS = ".argosmodel"


class Opened(NamedTuple):
    translator: Any
    languages: tuple[str, str]
    run: "Run | None" = None
    """The first run; an export has none."""
    fast: bool = False
    """CTranslate2 searches, with rules of its own."""
    directions: "Directions | None" = None
    """The directions of a multilingual model."""
    zero_shot: bool = False
    """Whether the direction was trained without pairs of its own."""

    def calibration(self, checkpoint: str) -> "Calibration | None":
        """The calibration of its confidences, if there is one. `translate --confidence` computes it."""
        if self.run is None:
            export = getattr(self.translator, "export", None)
            return None if export is None else export.calibration
        from dragoman.evaluate.confidence import stored_calibration

        return stored_calibration(self.run, checkpoint)

    @property
    def context(self) -> int:
        """How many sentences before it each sentence is translated with."""
        context = self.translator.context
        return 0 if context is None else context.source

    def directed(self, languages: tuple[str, str]) -> "Opened":
        """This translator for one direction of a multilingual model."""
        if self.directions is None:
            return self
        opening = self.translator.src_tokenizer.control_ids(self.directions.opening(languages))
        return self._replace(
            translator=self.translator.with_opening(opening),
            languages=languages,
            zero_shot=languages in self.directions.zero_shot,
        )


def open_directed(
    directory: Path,
    also: Sequence[Path],
    checkpoint: str,
    device: str,
    precision: str = "float32",
    to: str | None = None,
    source: str | None = None,
    zero_shot: bool = False,
    context: bool = True,
) -> Opened:
    """An export for CTranslate2 needs no torch. Exports translate alone; runs can be asked together. `to` and
    `source` choose a direction of a model of several languages. Without `context`, sentences are translated
    alone."""
    opened = open_undirected(directory, also, checkpoint, device, precision, context)
    if opened.directions is None and to is None and source is None:
        return opened
    from dragoman.data.directions import chosen_languages

    return opened.directed(chosen_languages(opened.directions, opened.languages, to, source, zero_shot))


class Asked(NamedTuple):
    """A translator that is yet to be opened: here, or on another machine."""

    directory: Path
    also: tuple[Path, ...] = ()
    checkpoint: str = "best"
    precision: str = "float32"
    to: str | None = None
    source: str | None = None
    zero_shot: bool = False
    context: bool = True

    def open(self, device: str) -> Opened:
        arguments = self._asdict()
        return open_directed(
            arguments.pop("directory"),
            arguments.pop("also"),
            arguments.pop("checkpoint"),
            device,
            **arguments,
        )


def open_directions(directory: Path, checkpoint: str, device: str, zero_shot: bool) -> list[Opened]:
    """Translators of all directions of a run or an export, which share the model."""
    opened = open_undirected(directory, [], checkpoint, device)
    if opened.directions is None:
        return [opened]
    pairs = [*opened.directions.trained, *(opened.directions.zero_shot if zero_shot else ())]
    return [opened.directed(languages) for languages in pairs]


def open_undirected(
    directory: Path,
    also: Sequence[Path],
    checkpoint: str,
    device: str,
    precision: str = "float32",
    context: bool = True,
) -> Opened:
    """Open a translator without choosing one of its directions."""
    opened = _opened(directory, also, checkpoint, device, precision)
    if not context:
        opened.translator.context = None
    return opened


def _opened(directory: Path, also: Sequence[Path], checkpoint: str, device: str, precision: str) -> Opened:
    from dragoman.engines.manifest import is_export

    for path in (directory, *also):
        if path.suffix == _ARGOS:
            raise UserError(
                f"{path}: a package for Argos Translate holds the same model as an export for CTranslate2, "
                "which can be used here: dragoman export RUN --to ctranslate2"
            )
        if also and (is_export(path) or is_huggingface_directory(path)):
            raise UserError(f"{path}: this is an export, which translates alone; leave out --with")
    if is_export(directory):
        if precision != "float32":
            raise UserError(f"--precision: an export has its own (export --quantize); leave out {precision}")
        from dragoman.engines.manifest import CTRANSLATE2
        from dragoman.engines.opening import open_export

        translator = open_export(directory, checkpoint, device)
        fast, directions = translator.export.engine == CTRANSLATE2, translator.export.directions
        return Opened(translator, translator.languages, fast=fast, directions=directions)
    if is_huggingface_directory(directory):
        from dragoman.runs.opening import open_published

        if checkpoint != "best" or precision != "float32":
            raise UserError(
                f"{directory}: this is a Hugging Face model, which has one checkpoint and one number format"
            )
        return Opened(open_published(directory, device), ("src", "tgt"))
    from dragoman.runs.directory import Run
    from dragoman.runs.opening import open_translator

    runs = [Run.open(path) for path in (directory, *also)]
    data = runs[0].inference.data
    translator = open_translator(runs, checkpoint, device, precision, undirected=True)
    return Opened(translator, (data.src_lang, data.tgt_lang), runs[0], directions=data.directions)


def is_huggingface_directory(directory: Path) -> bool:
    """Whether it is laid out as Hugging Face's models are, and is no run."""
    names = ("manifest.json", "export.json")
    return (directory / "config.json").is_file() and not any((directory / name).exists() for name in names)


def with_changes(
    search: "SearchConfig", method: str | None, assignments: Sequence[str], **numbers: float | None
) -> "SearchConfig":
    """`assignments` are such as `search.top_p=0.9`, `numbers` the options with a name of their own. n-best
    alone widens the beam to fit, and a narrower beam alone has fewer best."""
    from dragoman.config import apply_overrides, from_dict, naming, to_dict
    from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, SearchConfig

    changes: dict[str, object] = {name: value for name, value in numbers.items() if value is not None}
    for assignment in assignments:
        if not assignment.startswith("search."):
            raise UserError(f"--set {assignment}: expected a field of search, such as search.top_p=0.9")
    changes |= apply_overrides({"search": {}}, assignments)["search"]
    if method is not None:
        changes["method"] = method
    if "method" in changes:  # what the run says about another method is not meant for this one
        search = search.with_method(from_dict(SearchConfig, {"method": changes["method"]}, "search").method)
    if isinstance(search, BeamSearch | ExhaustiveSearch):
        if "n_best" in changes and "beam" not in changes:
            changes["beam"] = max(search.beam, _whole(changes["n_best"]))
        if "beam" in changes and "n_best" not in changes:
            changes["n_best"] = max(1, min(search.n_best, _whole(changes["beam"])))
    changed = from_dict(SearchConfig, to_dict(search) | changes, "search")
    with naming("search"):
        changed.refuse_foreign(changes)
    return changed


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 1  # what is no number is refused by its field's name
