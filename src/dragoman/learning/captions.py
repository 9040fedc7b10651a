"""Image captioning: an encoder of patches with any decoder."""

from typing import Any

import numpy as np
import torch

from dragoman.data.batch import PairBatch, collate
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.vectors.examples import LabelledVectors
from dragoman.decode.predict_vectors import Captioner
from dragoman.decode.search.config import BeamSearch
from dragoman.evaluate.metrics import bleu, exact_match
from dragoman.learning.base import TRACKS, Examples, Validator
from dragoman.learning.cross_entropy import CrossEntropy, decoder_objective
from dragoman.learning.loss import Objective
from dragoman.learning.task import task_of
from dragoman.learning.validation import Validation
from dragoman.learning.vectors import VectorTask
from dragoman.runs.config import RunConfig
from dragoman.runs.records import Sample
from dragoman.text.tokenizer import Tokenizer


class Captions(VectorTask):
    name = "captions"
    writes = True
    unit = "tok"
    has_perplexity = True

    def head(self, config: RunConfig) -> None:  # type: ignore[override]  # noqa: ARG002
        return None

    def examples(self, config: RunConfig, prepared: PreparedTask) -> Examples:
        images = LabelledVectors(
            prepared.arrays["train"], prepared.train, task_of(config), prepared.corpora, config.seed
        )
        return Captioned(images, prepared.tgt_tokenizer)

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:  # noqa: ARG002
        return decoder_objective(config.objective, model)

    def validator(
        self,
        config: RunConfig,
        prepared: PreparedTask,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> Validator:
        images = LabelledVectors(prepared.arrays["valid"], prepared.valid, task_of(config))
        return CaptionValidator(config, Captioned(images, prepared.tgt_tokenizer), device)


class Captioned:
    """Images as sources with their captions as targets."""

    def __init__(self, images: LabelledVectors, tokenizer: Tokenizer) -> None:
        self.images, self.tokenizer = images, tokenizer
        self.texts = [str(example.target) for example in images.examples]
        self.ids = [np.array(ids) for ids in tokenizer.encode_batch(self.texts)]
        self.src_lengths, self.corpora, self.origin = images.src_lengths, images.corpora, images.origin
        self.tgt_lengths = np.array([len(ids) for ids in self.ids], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        return self._paired(self.images.batch(numbers, epoch).vectors, numbers)

    def unchanged(self, numbers: np.ndarray) -> PairBatch:
        return self._paired(self.images.unchanged(numbers).vectors, numbers)

    def _paired(self, vectors: torch.Tensor, numbers: np.ndarray) -> PairBatch:
        text = collate([((), self.ids[number]) for number in numbers.tolist()])
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
        return PairBatch(vectors, mask, text.tgt_in, text.tgt_out, text.tgt_mask, text.num_tokens)


class CaptionValidator(Validator):
    """Validates a captioner: the loss of all captions, and greedy captions of the first images."""

    def __init__(self, config: RunConfig, examples: Captioned, device: torch.device) -> None:
        self.examples, self.device, self.train = examples, device, config.train
        self.objective = CrossEntropy(0.0)

    def __len__(self) -> int:
        return len(self.examples)

    @torch.inference_mode()
    def run(self, model: Any, autocast: torch.autocast) -> Validation:
        """Validate. The model is back in training mode afterwards."""
        model.eval()
        images, total, count = self.examples.images, 0.0, 0
        for numbers in images.in_order(self.train.batch_tokens):
            batch = self.examples.unchanged(numbers).to(self.device)
            with autocast:
                total += float(self.objective(model, batch).nll)
            count += batch.num_tokens
        metrics = {"loss": total / count}
        shown = min(len(images), self.train.validate_sentences)
        samples: list[Sample] = []
        if shown:
            search = BeamSearch(beam=self.train.validate_beam)
            captioner = Captioner(model, self.examples.tokenizer, images.task, search, self.device)
            with autocast:
                said = [found.text for found in captioner.captions(images, np.arange(shown))]
            texts = self.examples.texts[:shown]
            metrics |= {"exact": exact_match(said, texts), "bleu": bleu(said, texts)}
            names = (example.texts[0] for example in images.examples)
            samples = [Sample(*each) for each in zip(names, texts, said, strict=False)][: self.train.samples]
        model.train()
        return Validation(metrics, samples)
