"""Open the model of a run as a translator, a generator or a predictor. No training data is needed."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar, Union

import torch

from dragoman.checkpoint.model import load_model, load_network
from dragoman.data.directions import Directions, Languages
from dragoman.data.labelled.config import VECTORS, TaskConfig
from dragoman.decode.alignment.attention import guided_look
from dragoman.decode.predict import Predictor
from dragoman.decode.predict_vectors import Captioner, VectorPredictor
from dragoman.decode.translator.base import BaseTranslator
from dragoman.decode.translator.generate import Generator
from dragoman.decode.translator.translator import Translator
from dragoman.engines.manifest import is_export
from dragoman.engines.opening import open_export
from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.nn.linear import quantize
from dragoman.runs.directory import Run
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.engines.ctranslate2 import CTranslate2Translator
    from dragoman.engines.onnx_model import OnnxTranslator

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
"""Number formats of the weights for translating. bfloat16 reads half as many bytes, and scores have about
three digits; with int8, everything but matrix products stays in this format (`kernels/int8.py`)."""


def open_translator(
    runs: Sequence[Run],
    which: str = "best",
    device: str = "auto",
    precision: str = "float32",
    languages: Languages | None = None,
    undirected: bool = False,
) -> Translator:
    """The models of several runs as an ensemble, with the search settings of the first run. They may be of
    different families; their tokenizers must be the same, since probabilities are averaged token by token.

    Runs of several languages translate between `languages`, unless the caller says the direction of each
    sentence itself (`undirected`)."""
    for run in runs:
        _refuse_unless_it_translates(run)
    config = runs[0].inference
    directions = config.data.directions
    if directions is not None and languages is None and not undirected:
        raise UserError(f"{runs[0].directory}: a run of several languages ({directions}); choose a direction")
    chosen = pick_device(device)
    first, *others = (load_model(run.directory, chosen, which) for run in runs)
    src, tgt = first.src_tokenizer, first.tgt_tokenizer
    for run, other in zip(runs[1:], others, strict=True):
        if (other.src_tokenizer.sha256, other.tgt_tokenizer.sha256) != (src.sha256, tgt.sha256):
            raise UserError(
                f"{run.directory}: its tokenizers are not those of {runs[0].directory}; only runs with the "
                "same ones can translate together"
            )
    counted = any(each.model.abilities.counts for each in (first, *others))
    _refuse_precision(precision, counted, chosen)
    dtype = PRECISIONS[precision]
    models = [each.model.requires_grad_(False).to(dtype) for each in (first, *others)]
    if precision == "int8":
        for model in models:
            quantize(model)
    translator = Translator(models, src, tgt, config.search, chosen)
    translator.context = config.data.context
    translator.alignment_examples = runs[0].validation_examples
    guide = config.guided_alignment
    if guide.weight and not translator.model.abilities.counts:
        translator.aligner.look = guided_look(translator.model, guide)
    translator.scorer.shortlist = runs[0].shortlist
    translator.cut_source = config.data.clean.cut_source
    return translator if languages is None else directed(translator, directions, languages)


AnyTranslator = TypeVar("AnyTranslator", bound=BaseTranslator)


def directed(translator: AnyTranslator, directions: Directions | None, languages: Languages) -> AnyTranslator:
    """The translator for one direction of a multilingual model."""
    if directions is None:
        return translator
    return translator.with_opening(translator.src_tokenizer.control_ids(directions.opening(languages)))


def open_published(directory: Path, device: str = "auto") -> Translator:
    """A Hugging Face directory, our exports among them, without making it a run first."""
    from dragoman.checkpoint.huggingface import read_model
    from dragoman.config import from_dict
    from dragoman.decode.search.config import BeamSearch

    found = read_model(directory)
    if found.objective != "translate" or not isinstance(found.model, EncoderDecoder):
        raise UserError(f"{directory}: a model of the kind {found.kind} does not translate")
    search = from_dict(BeamSearch, found.search, str(directory))
    model = found.model.requires_grad_(False)
    return Translator(model, found.src_tokenizer, found.tgt_tokenizer, search, pick_device(device))


def _refuse_unless_it_translates(run: Run) -> None:
    if run.inference.purpose == "predict":
        raise UserError(
            f"{run.directory}: this run is fine-tuned for a task and does not translate; use it with  "
            f"dragoman predict {quote(str(run.directory))}"
        )
    if run.inference.purpose != "translate":
        raise UserError(
            f"{run.directory}: this run was trained on text with the objective "
            f"«{run.config.objective.name}» and does not translate; {_use(run)}"
        )


def _use(run: Run) -> str:
    command = "generate" if run.config.purpose == "generate" else "finetune"
    return f"use it with  dragoman {command} {quote(str(run.directory))}"


def _refuse_precision(precision: str, counted: bool, device: torch.device) -> None:
    if precision not in PRECISIONS:
        raise UserError(f"precision: expected one of {', '.join(PRECISIONS)}, found '{precision}'")
    if precision != "float32" and counted:
        raise UserError(f"precision: a model fitted by counting has exact counts, not {precision}")
    if precision == "int8" and device.type != "cpu":
        raise UserError(f"precision: int8 is for the CPU; set the device to cpu, or bfloat16 on {device}")


def open_generator(run: Run, which: str = "best", device: str = "auto") -> Generator:
    """The language model of a run, for generating text from prompts."""
    if run.config.purpose != "generate":
        raise UserError(
            f"{run.directory}: this run was trained with the objective «{run.config.objective.name}» and "
            "cannot generate text; use a run trained with causal, prefix or unilm"
        )
    loaded = load_model(run.directory, chosen := pick_device(device), which)
    model = loaded.model.requires_grad_(False)
    translator = Translator(model, loaded.src_tokenizer, loaded.tgt_tokenizer, run.config.search, chosen)
    return Generator(translator, run.config.objective.block)


def open_predictor(run: Run | str | Path, which: str = "best", device: str = "auto") -> Predictor:
    """The network of a run with its tokenizer and its task. Needs no training data."""
    opened = run if isinstance(run, Run) else Run.open(run)
    task, model, tokenizer, chosen = _opened_task(opened, which, device)
    if task.kind in VECTORS:
        what = "series" if task.kind in ("series", "forecast") else "images"
        raise UserError(
            f"{opened.directory}: this run reads {what}, not text; use it with  dragoman predict "
            f"{quote(str(opened.directory))} FILES"
        )
    assert isinstance(model, TaskNetwork), "a task about text has a head"
    return Predictor(model, tokenizer, task, chosen)


def open_vector_predictor(
    run: Run | str | Path, which: str = "best", device: str = "auto"
) -> VectorPredictor:
    """Open a run for labels of images and series, or for forecasts."""
    opened = run if isinstance(run, Run) else Run.open(run)
    task, model, _, chosen = _opened_task(opened, which, device)
    if task.kind not in VECTORS:
        raise UserError(f"{opened.directory}: the task {task.kind} reads text, not images or series")
    if not isinstance(model, TaskNetwork):
        raise UserError(f"{opened.directory}: this run writes captions; open it with open_captioner")
    return VectorPredictor(model, task, chosen)


def open_captioner(run: Run | str | Path, which: str = "best", device: str = "auto") -> Captioner:
    """The model of a run that says in words what images show, with the search of its configuration."""
    opened = run if isinstance(run, Run) else Run.open(run)
    task, model, tokenizer, chosen = _opened_task(opened, which, device)
    if not isinstance(model, EncoderDecoder):
        raise UserError(f"{opened.directory}: the task {task.kind} does not write captions")
    return Captioner(model, tokenizer, task, opened.config.search, chosen)


def _opened_task(
    opened: Run, which: str, device: str
) -> tuple[TaskConfig, Network | TaskNetwork, Tokenizer, torch.device]:
    if opened.config.task is None:
        raise UserError(
            f"{opened.directory}: this run is not fine-tuned for a task; do that with  dragoman finetune "
            f"{quote(str(opened.directory))} FILES --task KIND"
        )
    loaded = load_network(opened.directory, chosen := pick_device(device), which)
    return opened.config.task, loaded.model.requires_grad_(False), loaded.tgt_tokenizer, chosen


def load(
    run: str | Path,
    *others: str | Path,
    which: str = "best",
    device: str = "auto",
    precision: str = "float32",
    to: str | None = None,
    source: str | None = None,
    zero_shot: bool = False,
) -> Union[Translator, "CTranslate2Translator", "OnnxTranslator"]:
    """Load the translator of a run or an export: its `best` checkpoint, the `last`, or one by name. Needs no
    training data.

    With `others`, the runs form an ensemble whose probabilities are averaged; their tokenizers must be the
    same. `precision` bfloat16 is for GPUs, int8 for CPUs: faster, slightly less accurate. If PyTorch is not
    installed, use `dragoman.engines.ctranslate2.CTranslate2Translator.open` for an export.

    A run of several languages needs `to`, and `source` where the model is told it; `zero_shot` allows
    directions that it was not trained in.
    """
    if is_export(Path(run)):
        if others:
            raise UserError(f"{run}: this is an export, which translates alone")
        translator = open_export(Path(run), which, device)
        manifest = translator.export
        return directed(translator, manifest.directions, manifest.chosen_languages(to, source, zero_shot))
    runs = [Run.open(directory) for directory in (run, *others)]
    languages = runs[0].inference.data.chosen_languages(to, source, zero_shot)
    return open_translator(runs, which, device, precision, languages)


def pick_device(name: str, local_rank: int | None = None) -> torch.device:
    """`auto`: the GPU if there is one; with several processes on a machine, each uses its own GPU. Apple's
    GPU (`mps`) is used only where it is asked for: nobody has tried it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and local_rank is not None:
        if local_rank >= (count := torch.cuda.device_count()) > 0:
            raise UserError(
                f"train.device: process {local_rank} of this machine has no GPU, there are {count}; start "
                f"as many processes as GPUs (--nproc-per-node {count})"
            )
        name = f"cuda:{local_rank}"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(
            f"device: '{name}' is not known; use auto, cpu, cuda, cuda:1 and so on, or mps"
        ) from None
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"device: '{name}' cannot be used here ({reason})") from None
    if device.type == "cuda":
        # cuDNN's attention plans every new shape for about 0.2 s, and sentences come in hundreds of shapes.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Use full float32: by default recurrent and convolutional layers round to TF32, with errors of 1e-3.
        torch.backends.cudnn.allow_tf32 = False
    return device
