"""Attention of a model over an image: for a label, the patches behind the class token; for a caption, the
patches that each of its pieces attends to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dragoman.data.batch import collate
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.vectors.arrays import is_array, read_array
from dragoman.data.vectors.config import ImageInput
from dragoman.data.vectors.examples import LabelledVectors
from dragoman.data.vectors.images import read_images
from dragoman.decode.predict_vectors import Captioner, labelled
from dragoman.errors import UserError
from dragoman.models.base import source_attentions
from dragoman.probe.record import record
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_captioner, open_vector_predictor

_ENTRY = re.compile(r"(.+\.npy(?:\.gz)?)\[(\d+)\]")


@dataclass(frozen=True)
class ImageLook:
    image: np.ndarray
    """H W C, from 0 to 255."""
    said: tuple[str, ...]
    """The label, or the pieces of the caption."""
    probabilities: tuple[float, ...]
    maps: np.ndarray
    """N Y X: for each label or piece, the weight of each patch. A map sums to 1."""
    labels: Mapping[str, float] = field(default_factory=dict)
    """The probability of each label."""
    layers: int = 1
    heads: int = 1


class PatchReader:
    """A run on images, opened once."""

    def __init__(self, run: Run, checkpoint: str = "best", device: str = "auto") -> None:
        task = run.config.task
        if task is None or task.image is None:
            raise UserError(f"{run.directory}: only runs on images are explained by pictures of patches")
        self.task, self.image = task, task.image
        captions = task.kind == "caption"
        self._opened = open_captioner(run, checkpoint, device) if captions else None
        self._predictor = None if captions else open_vector_predictor(run, checkpoint, device)

    @property
    def model(self) -> nn.Module:
        opened = self._opened or self._predictor
        assert opened is not None, "one of them was opened"
        return opened.model

    def look(self, example: VectorExample, layer: int | None = None, head: int | None = None) -> ImageLook:
        """Attention over an image. `layer` and `head` count from 1. Without a layer, captions use the mean of
        all layers, and labels the product through all layers (rollout, Abnar & Zuidema 2020)."""
        images = LabelledVectors(example.values[None], [example], self.task)
        labels: dict[str, float] = {}
        if self._opened is not None:
            said, probabilities, attentions = _captioned(self._opened, images)
            weights = _chosen(attentions, layer, head).mean(axis=0)
        else:
            assert self._predictor is not None, "it has labels"
            predictor = self._predictor
            with torch.inference_mode(), record(predictor.model) as seen:
                scores = predictor.model(images.unchanged(np.arange(1)).to(predictor.device))
            (found,) = labelled(scores, self.task)
            said, probabilities, labels = (str(found.value),), (found.confidence or 0.0,), found.probabilities
            attentions = [weights for (weights,) in seen.values()]
            weights = _behind_class_token(attentions, layer, head)[None, 1:]
        maps = weights / weights.sum(axis=1, keepdims=True)
        rows = self.image.height // self.image.patch
        return ImageLook(
            example.values,
            said,
            probabilities,
            maps.reshape(len(maps), rows, -1),
            labels,
            len(attentions),
            attentions[0].size(1),
        )


def look_at(
    run: Run,
    path: str,
    checkpoint: str = "best",
    device: str = "auto",
    layer: int | None = None,
    head: int | None = None,
) -> ImageLook:
    """Attention over the image of a file; see `PatchReader.look`."""
    reader = PatchReader(run, checkpoint, device)
    return reader.look(_read(path, reader.task), layer, head)


def _captioned(
    captioner: Captioner, images: LabelledVectors
) -> tuple[tuple[str, ...], tuple[float, ...], list[torch.Tensor]]:
    """The pieces of the caption, their probabilities, and the cross-attention of every layer."""
    (best,) = captioner.captions(images, np.arange(1))
    vectors = images.unchanged(np.arange(1)).vectors
    text = collate([((), best.tokens)])
    model, own = captioner.model, captioner.translator.device
    mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=own)
    with torch.inference_mode(), record(model) as seen:
        model(vectors.to(own), mask, text.tgt_in.to(own))
    asked = [torch.cat(seen[name], dim=2) for name in source_attentions(model) if name in seen]
    probabilities = tuple(np.exp(best.token_scores).tolist())
    return (*best.pieces, "</s>"), probabilities, asked


def _chosen(attentions: Sequence[torch.Tensor], layer: int | None, head: int | None) -> np.ndarray:
    """L Q M: attention of one head or the mean over heads, of one layer or of all."""
    if not attentions:
        raise UserError("explain: this model has no attention to the patches of its image")
    if layer is not None and layer > len(attentions):
        raise UserError(f"--layer {layer}: this model has {len(attentions)}, numbered from 1")
    own = list(attentions) if layer is None else [attentions[layer - 1]]
    if head is not None and head > own[0].size(1):
        raise UserError(f"--head {head}: this attention has {own[0].size(1)}, numbered from 1")
    each = [a[0].mean(dim=0) if head is None else a[0, head - 1] for a in own]
    return torch.stack(each).float().cpu().numpy()


def _behind_class_token(
    attentions: Sequence[torch.Tensor], layer: int | None, head: int | None
) -> np.ndarray:
    layers = _chosen(attentions, layer, head)
    if layer is not None:
        return layers[0, 0]
    whole = np.eye(layers.shape[1])
    for weights in layers:
        whole = (weights + np.eye(len(weights))) / 2 @ whole
    return whole[0]


def _read(path: str, task: TaskConfig) -> VectorExample:
    """Read a picture, an array of one image, or one entry of an array: `a.images.npy[3]`."""
    image = task.image or ImageInput()
    entry = _ENTRY.fullmatch(path)
    file = path if entry is None else entry[1]
    if not Path(file).is_file():
        raise UserError(f"{path}: there is no such image; give a PNG, a JPEG, or  FILE.npy[NUMBER]")
    if entry is None and is_array(path) and read_array(path, (2, 3, 4)).ndim > image.channels // 3 + 2:
        raise UserError(f"{path}: an array of several images; say which one, as in  {path}[0]")
    examples = list(read_images(file, task, labelled=False))
    number = 0 if entry is None else int(entry[2])
    if number >= len(examples):
        raise UserError(f"{path}: {file} has {len(examples):,} images, numbered from 0")
    return examples[number]
