"""A plan in words: about ten lines that everybody understands, and the details below them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from dragoman.autopilot.profile import SampledPair
from dragoman.data.corpus import Prepared
from dragoman.data.formats import describe_columns
from dragoman.evaluate.metrics import NAMES
from dragoman.learning import learning_of
from dragoman.models import describe, outline
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Corpus
from dragoman.runs.opening import pick_device
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.display import duration
from dragoman.training.estimate import Estimate

Rows = list[tuple[str, str]]
_UNITS = {"pairs": "pairs", "text": "lines", "labels": "examples"}
_TOKENIZERS = {"bpe": "BPE", "word": "words and letters", "char": "characters", "byte": "bytes"}
_OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}


class Planned(Protocol):
    """The parts of a plan that are described."""

    @property
    def config(self) -> RunConfig: ...
    @property
    def out(self) -> Path: ...
    @property
    def prepared(self) -> Corpus: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def processes(self) -> int: ...
    @property
    def reasons(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def shown(self) -> tuple[SampledPair, ...]: ...
    @property
    def expected(self) -> tuple[int, float] | None: ...


def summary(plan: Planned) -> Rows:
    """The summary: what is trained, on what, and for how long."""
    config = plan.config
    of_pairs = learning_of(config).learns_from == "pairs"
    rows: list[tuple[str, str | None]] = [
        *learning_of(config).plan_rows(config),
        ("data", _data(plan)),
        *(("columns", told) for told in _columns(config)),
        ("cleaning", _cleaning(plan.prepared, plan.config)),
        ("tokenizer", None if _reads_vectors(config) else _tokenizer(plan.prepared, of_pairs)),
        ("model", _model(plan)),
        ("training", _training(plan)),
        ("processes", _processes(plan)),
        ("learning rate", _rate(config)),
        ("metric", _metric(config)),
        ("time", _time(plan)),
        ("output", str(plan.out)),
    ]
    return [(name, told) for name, told in rows if told is not None]


def _processes(plan: Planned) -> str | None:
    train = plan.config.train
    if plan.processes == 1:
        return None
    share = f"{train.accumulate // plan.processes} of the {train.accumulate} batches of an update each"
    return f"{plan.processes}, {share}{', the model in shards' if train.shard else ''}"


def details(plan: Planned) -> Rows:
    """Settings that the summary leaves out."""
    config = plan.config
    kind, model = config.model_config
    rows = [("model", describe(kind, model))]
    if not config.counted:
        rows.append(("optimizer", _optimizer(config)))
        if config.train.max_minutes is not None or config.train.patience:
            rows.append(("ends after", _ends(config)))
        rows.append(("validation", _validation(config)))
    if plan.estimate is not None and plan.estimate.tokens_per_second is not None:
        unit = "targets" if learning_of(config).learns_from == "labels" else "target tokens"
        rows.append(("speed", f"{plan.estimate.tokens_per_second:,.0f} {unit} a second"))
    return rows


def reasons(plan: Planned) -> Rows:
    """The choices of the autopilot and their reasons."""
    kept = [("kept, for example", f"{pair.src} → {pair.tgt}") for pair in plan.shown]
    return [*plan.reasons, *kept]


def _data(plan: Planned) -> str:
    unit = _UNITS[learning_of(plan.config).learns_from]
    train, valid = len(plan.prepared.train), len(plan.prepared.valid)
    invented = plan.config.objective.invented
    more = f" and {invented * train:,} invented ones" if invented else ""
    return f"{train:,} {unit}{more} for training, {valid:,} others for validation"


def _columns(config: RunConfig) -> list[str]:
    """For tables with more than two columns: the columns that are read."""
    data = config.data
    if learning_of(config).learns_from != "pairs":
        return []
    told = (describe_columns(source, *data.languages_of(source)) for source in data.train)
    return [each for each in dict.fromkeys(told) if each is not None]


def _cleaning(prepared: Corpus, config: RunConfig) -> str | None:
    if not isinstance(prepared, Prepared):
        return None
    dropped: Mapping[str, int] = prepared.dropped
    told = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in dropped.items() if count)
    cut = config.data.clean.cut_source
    also = "" if cut is None else f"; sources are cut at {cut:,} pieces"
    return (f"left out: {told}" if told else "nothing is left out") + also


def _tokenizer(prepared: Corpus, of_pairs: bool) -> str:
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    name = _TOKENIZERS.get(src.kind, src.kind)
    if src.config.joint:
        return f"{name}, {_pieces(src)}{' for both sides' if of_pairs else ''}"
    return f"{name}, {_pieces(src)} for the source and {tgt.size:,} for the target"


def _reads_vectors(config: RunConfig) -> bool:
    abilities = config.model_config[1].abilities
    return abilities.vectors is not None and not abilities.writes


def _pieces(tokenizer: Tokenizer) -> str:
    return f"{tokenizer.size:,} pieces"


def _model(plan: Planned) -> str:
    told = outline(*plan.config.model_config)
    if plan.estimate is None:
        return told
    return f"{told}, {_millions(plan.estimate.parameters)} parameters"


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} million" if number >= 50_000 else f"{number:,}"


def _training(plan: Planned) -> str:
    config, train = plan.config, plan.config.train
    where = f"on {_device(config)}"
    if config.counted:
        return f"one pass over the data, by counting, {where}"
    times = f"{train.accumulate} × " if train.accumulate > 1 else ""
    batch = f"of {times}{train.batch_tokens:,} tokens each"
    if plan.expected is not None:
        updates, epochs = plan.expected
        about = "about " if train.max_updates is None else ""
        often = f"{epochs:,.0f} epochs" if epochs >= 10 else f"{epochs:.1f} epochs"
        return f"{about}{updates:,} updates {batch} ({often}), {where}"
    ends = {"updates": train.max_updates, "epochs": train.max_epochs}
    known = " or ".join(f"{value:,} {name}" for name, value in ends.items() if value is not None)
    if train.max_updates:
        return f"{known} {batch}, {where}"
    return f"{known}, updates {batch}, {where}" if known else f"updates {batch}, {where}"


def _device(config: RunConfig) -> str:
    device = pick_device(config.train.device)
    return "the CPU" if device.type == "cpu" else f"the GPU ({device})"


def _rate(config: RunConfig) -> str | None:
    if config.counted or config.optim.rate is None:
        return None
    schedule = config.schedule
    rises = f"rises to {config.optim.rate:.3g} in {schedule.warmup:,} updates" if schedule.warmup else None
    begin = rises or f"{config.optim.rate:.3g}"
    end = {"constant": "stays there", "plateau": "is cut where nothing gets better"}
    falls = "falls to 0 at the end" if schedule.needs_total or config.budgeted else "falls slowly"
    return f"{begin}, then {end.get(schedule.name, falls)}"


def _metric(config: RunConfig) -> str | None:
    if config.counted:
        return None
    metric = config.train.metric
    name = "exact matches" if metric == "exact" else NAMES.get(metric, metric.replace("_", " "))
    return f"{name} on the validation set, to choose the best checkpoint"


def _time(plan: Planned) -> str | None:
    if plan.estimate is None:
        return None
    seconds = plan.estimate.seconds
    if seconds is None:
        return "not known"
    if plan.config.budgeted:
        return f"{duration(seconds)} in total"
    return f"about {duration(seconds)}{' if it runs to its end' if plan.config.train.patience else ''}"


def _optimizer(config: RunConfig) -> str:
    smoothing = config.objective.label_smoothing
    parts = [
        _OPTIMIZERS[config.optim.name] + (" with relative steps" if config.optim.relative else ""),
        f"schedule {config.schedule.name}",
        *([f"label smoothing {smoothing:g}"] if smoothing else []),
        *([f"R-Drop {config.objective.r_drop:g}"] if config.objective.r_drop else []),
        *([f"moving average {config.train.ema:g}"] if config.train.ema else []),
    ]
    return ", ".join(parts)


def _ends(config: RunConfig) -> str:
    train = config.train
    limits = [_minutes(train.max_minutes)] if train.max_minutes is not None else []
    if train.patience:
        limits.append(f"{train.patience} validations without a better result")
    return " or ".join(limits)


def _minutes(minutes: float) -> str:
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


def _validation(config: RunConfig) -> str:
    train = config.train
    often = f"{train.validations} times" if train.validations else f"every {train.validate_every:,} updates"
    return f"{often}, up to {train.validate_sentences:,} outputs"
