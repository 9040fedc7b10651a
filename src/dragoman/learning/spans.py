"""Predict the spans that were removed from a text (T5, Raffel et al. 2020)."""

import numpy as np

from dragoman.data.noise import corrupt_spans
from dragoman.learning.text import FromNoise, Noise, special_id
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import Tokenizer


class Spans(FromNoise):
    name = "spans"

    def specials(self, config: RunConfig) -> tuple[str, ...]:
        return config.objective.noise.sentinels(config.objective.block)

    def noise(self, config: RunConfig, tokenizer: Tokenizer) -> Noise:
        noise = config.objective.noise
        sentinels = [special_id(tokenizer, piece) for piece in self.specials(config)]
        return lambda lines, dice: corrupt_spans(np.concatenate(lines), dice, noise, sentinels)
