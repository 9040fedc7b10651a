"""From what a person typed to a resolved configuration: what is missing is chosen from the corpus."""

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoman.autopilot.choice import positive, said
from dragoman.autopilot.choose import Chosen, choose
from dragoman.autopilot.contenders import Contender, contenders
from dragoman.autopilot.machine import this_machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.profiler import Profiler
from dragoman.config import apply_overrides, from_dict, load_yaml, to_dict
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.corpus import scanned_once
from dragoman.data.formats import group_files
from dragoman.data.formats.columns import parse_columns
from dragoman.data.formats.detect import language_suffix, stem_of
from dragoman.data.languages import corpora_by_direction, corpora_in, languages_of
from dragoman.data.scan import Scan
from dragoman.errors import UserError, no_such_file
from dragoman.learning import named
from dragoman.learning.resolve import check_settings, resolve_config
from dragoman.learning.task_plan import completed_task
from dragoman.learning.vector_plan import refuse_other_images
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import Display

Overrides = Sequence[str] | Mapping[str, Any]
Source = str | Path | Mapping[str, Any]

CHOSEN = ("tokenizer", "model", "objective", "optim", "schedule", "train")
"""Sections that are chosen from the data and the machine unless they are given."""
_FOLLOWING = ("search",)
"""Sections that are chosen together with the tokenizer: they count in its pieces. So is `data.clean`."""
_LABELLED = "labelled"
_TEMPERATURE = 5.0
"""Sampling temperature of a mixture of several languages (Arivazhagan et al. 2019)."""
_FINE_TUNING_RATE = 5e-5
"""Default learning rate of a run that starts from the weights of another."""


@dataclass(frozen=True)
class Draft:
    """A configuration before its data are prepared."""

    config: RunConfig
    chosen: Chosen | None = None
    """The choices of the autopilot. None if everything was given."""
    scanned: Scan | None = None
    """The scan of the corpora, if they were read to choose settings."""
    at_speed: Callable[..., tuple[RunConfig, Chosen]] | None = None
    """Repeat the choices for a machine with a measured relative speed, with further overrides."""
    contenders: Callable[[Chosen], list[Contender]] | None = None
    """The alternatives that a contest would try."""


def make_draft(
    sources: Sequence[Source],
    stack: ExitStack,
    cache: Path,
    *,
    overrides: Overrides,
    valid: Sequence[str],
    display: Display,
    minutes: float | None = None,
) -> Draft:
    """The resolved configuration of files, of a YAML recipe, or of a mapping like one, with what was chosen
    and found out on the way; `minutes` is a budget that takes the place of other ends. Files of a scan are in
    `cache` until the stack is closed."""
    assignments = as_assignments(overrides)
    format = _LABELLED if _is_task(assignments) else "text" if _learns_from_text(assignments) else "auto"
    plain = apply_overrides(plain_config(sources, valid, format), assignments)
    if not isinstance(plain.get("data"), Mapping):
        raise UserError("data: this section is required")
    data = from_dict(DataConfig, plain["data"], "data")
    given = plain_config(sources, valid, format)
    if plain.get("start") is not None:
        given = _as_begun(Run.open(str(plain["start"])), given)
    missing = [section for section in CHOSEN if section not in given]
    if plain.get("task") is not None:
        task = completed_task(given, plain, data, missing, _brings_model(assignments))
        if plain.get("start") is not None:
            begun = Run.open(str(plain["start"])).config.task
            refuse_other_images(task["task"], str(plain["start"]), begun)
        return Draft(resolve_config(task, assignments, minutes))
    if not missing:
        return Draft(resolve_config(given, assignments, minutes))
    check_settings(plain)
    profiler = Profiler()
    seed = plain.get("seed", RunConfig.seed)
    seed = seed if isinstance(seed, int) else RunConfig.seed
    scanned = stack.enter_context(scanned_once(data, cache, seed, display.stage, profiler.add))
    profile = _profile(data, profiler, scanned)
    updates = positive(plain, "train.max_updates")
    if "schedule" in missing and updates is None:
        minutes = minutes or positive(plain, "train.max_minutes")
    machine = this_machine(str(said(plain, "train.device") or "auto"))
    following = [name for name in _FOLLOWING if "tokenizer" in missing and name not in given]

    def at_speed(speed: float, more: Sequence[str] = ()) -> tuple[RunConfig, Chosen]:
        all_given = [*assignments, *more]
        chosen = choose(
            profile,
            dataclasses.replace(machine, speed=speed),
            minutes=minutes or positive(plain, "train.max_minutes"),
            max_updates=int(updates) if updates is not None else None,
            learning=named(_objective_of(plain)),
            given=apply_overrides(given, all_given),
        )
        if plain.get("start") is not None:
            chosen.sections["optim"]["rate"] = _FINE_TUNING_RATE
        sections = {name: chosen.sections[name] for name in [*missing, *following] if name in chosen.sections}
        whole = {**given, **sections}
        if "tokenizer" in missing and "data" in chosen.sections:
            whole["data"] = {**given["data"], **chosen.sections["data"]}
        return resolve_config(whole, all_given, minutes), chosen

    def rivals(chosen: Chosen) -> list[Contender]:
        fields = {assignment.partition("=")[0] for assignment in assignments}
        return contenders(profile, chosen.sections, fields | (given.keys() - set(missing)))

    config, chosen = at_speed(1.0)
    from_pairs = named(_objective_of(plain)).learns_from == "pairs"
    return Draft(config, chosen, scanned, at_speed, rivals if from_pairs else None)


def _profile(data: DataConfig, profiler: Profiler, scanned: Scan) -> Profile:
    weighted = sum(source.weight * n for source, n in zip(data.train, scanned.per_corpus, strict=True))
    profile = profiler.profile(scanned.duplicates, weighted / max(1, scanned.pairs))
    if not profile.lengths:
        files = ", ".join(file for source in data.train for file in source.files)
        raise UserError(f"{files}: there is no pair to learn from")
    return profile


def _as_begun(start: Run, given: dict[str, Any]) -> dict[str, Any]:
    """With the vocabulary and the model of the run that is begun with. What is said of the model beside that
    counts, as far as the weights fit it."""
    model = given.get("model", {})
    if not isinstance(model, Mapping):
        raise UserError(f"model: expected a mapping of fields, found {model!r}")
    own = {"tokenizer": to_dict(start.config.tokenizer), "model": {**start.config.model, **model}}
    return {**given, **own}


def _brings_model(assignments: Sequence[str]) -> bool:
    return any(a.startswith(("model.preset=", "model.kind=")) for a in assignments)


def _is_task(assignments: Sequence[str]) -> bool:
    """Whether files on the command line are labelled examples."""
    return any(a.startswith("task.kind=") for a in assignments)


def _objective_of(plain: Mapping[str, Any]) -> str:
    section = plain.get("objective")
    return str(section.get("name", "translate")) if isinstance(section, Mapping) else "translate"


def _learns_from_text(assignments: Sequence[str]) -> bool:
    """Whether files on the command line are monolingual text, not pairs of files."""
    chosen = [a for a in assignments if a.startswith("objective.name=")]
    return bool(chosen) and named(_objective_of(apply_overrides({}, chosen))).learns_from == "text"


def plain_config(sources: Sequence[Source], valid: Sequence[str], format: str) -> dict[str, Any]:
    if not sources:
        raise UserError("nothing to train on: give two files, a table of pairs, or a YAML recipe")
    if len(sources) == 1 and isinstance(sources[0], Mapping):
        return dict(sources[0])
    files = [_as_file(source) for source in sources]
    if format == "auto" and (any(map(os.path.isdir, files)) or _has_several_languages(files)):
        return with_directions(files, valid, "all")
    if len(files) == 1 and files[0].endswith((".yaml", ".yml")):
        if valid:
            raise UserError("--valid: a recipe names its own validation files, under data.valid")
        return load_yaml(Path(files[0]))
    if format == _LABELLED:
        named = {"train": files, **({"valid": list(valid)} if valid else {})}
        return {"data": {side: [{"files": [file]} for file in names] for side, names in named.items()}}
    train = group_files(files, format)
    languages = languages_of(train[0]) or ("src", "tgt")
    data: dict[str, Any] = {"train": [to_dict(source) for source in train]}
    if valid:
        data["valid"] = [to_dict(source) for source in group_files(list(valid), format)]
    return {"data": {**data, "src_lang": languages[0], "tgt_lang": languages[1]}}


def _has_several_languages(files: Sequence[str]) -> bool:
    """Whether plain files of one name are in more than two languages: `a.en a.de a.fr`."""
    different = dict.fromkeys(files)
    stems = [stem_of(file) for file in different if language_suffix(file) is not None]
    return len(stems) == len(different) and any(stems.count(stem) > 2 for stem in stems)


def with_directions(files: Sequence[str], valid: Sequence[str], directions: str) -> dict[str, Any]:
    """A configuration for corpora of several languages, in files or directories, and the chosen directions:
    `en-de,de-en`, or `all`. A single direction is a run like any other."""
    if any(file.endswith((".yaml", ".yml")) for file in files):
        raise UserError("--directions: a recipe names its own, as src_lang and tgt_lang of each corpus")
    parts: dict[str, list[str]] = {"train": [], "valid": list(valid), "test": []}
    for file in files:
        own = corpora_in(Path(file)) if os.path.isdir(file) else {"train": [file]}  # noqa: PTH112
        for part, names in own.items():
            parts[part] += names if part != "valid" or not valid else []
    train = corpora_by_direction(parts["train"], directions)
    learnt = list(dict.fromkeys((source.src_lang, source.tgt_lang) for source in train))
    found = {"train": train}
    for part in ("valid", "test"):
        own = corpora_by_direction(parts[part]) if parts[part] else []
        found[part] = [source for source in own if (source.src_lang, source.tgt_lang) in learnt]
    data: dict[str, Any] = {part: [to_dict(source) for source in own] for part, own in found.items() if own}
    if len(learnt) > 1:
        return {"data": {**data, "temperature": _TEMPERATURE}}
    for source in (source for part in data.values() for source in part):
        del source["src_lang"], source["tgt_lang"]
    return {"data": {**data, "src_lang": learnt[0][0], "tgt_lang": learnt[0][1]}}


def with_columns(files: Sequence[str], valid: Sequence[str], columns: str) -> dict[str, Any]:
    """A configuration for tables whose source and target column a person has named: `en,de`."""
    src, tgt = parse_columns(columns)
    if any(file.endswith((".yaml", ".yml")) for file in files):
        raise UserError("--columns: a recipe names its own columns, as src and tgt of a corpus")
    data = plain_config(files, valid, "auto")["data"]
    if any(len(source["files"]) > 1 for source in data["train"]):
        raise UserError(f"--columns: {data['train'][0]['files'][0]} has no columns; leave it out")
    for side in ("train", "valid"):
        data[side] = [{**source, "src": src, "tgt": tgt} for source in data.get(side, [])]
    languages = languages_of(SourceConfig(tuple(data["train"][0]["files"]), src=src, tgt=tgt))
    data["src_lang"], data["tgt_lang"] = languages or ("src", "tgt")
    return {"data": data}


def _as_file(source: Source) -> str:
    if isinstance(source, Mapping):
        raise UserError("a configuration given as a mapping has to be the only source")
    if not os.path.exists(source):  # noqa: PTH110 (a text that is too long for a name is no file either)
        raise no_such_file(source)
    return str(source)


def as_assignments(overrides: Overrides) -> list[str]:
    """`{"train.max_updates": 100}` as `train.max_updates=100`."""
    if isinstance(overrides, Mapping):
        return [f"{k}={yaml.safe_dump(v, default_flow_style=True).strip()}" for k, v in overrides.items()]
    return list(overrides)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and overrides, as they come mixed on a command line."""
    named = re.compile(r"[a-z_][\w.]*=")
    is_override = [bool(named.match(a)) and not os.path.exists(a) for a in arguments]  # noqa: PTH110
    files = [a for a, override in zip(arguments, is_override, strict=True) if not override]
    return files, [a for a, override in zip(arguments, is_override, strict=True) if override]
