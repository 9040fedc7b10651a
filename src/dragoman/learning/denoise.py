"""Reconstruct a text from a corrupted copy (BART, Lewis et al. 2020)."""

from collections.abc import Sequence

import numpy as np

from dragoman.data.noise import MASK, denoising_source
from dragoman.data.seeded_random import Dice
from dragoman.learning.text import FromNoise, Noise, special_id
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import Tokenizer


class Denoise(FromNoise):
    name = "denoise"

    def specials(self, config: RunConfig) -> tuple[str, ...]:  # noqa: ARG002
        return (MASK,)

    def noise(self, config: RunConfig, tokenizer: Tokenizer) -> Noise:
        noise, mask_id = config.objective.noise, special_id(tokenizer, MASK)

        def denoise(lines: Sequence[np.ndarray], dice: Dice) -> tuple[np.ndarray, np.ndarray]:
            return denoising_source(lines, dice, noise, mask_id), np.concatenate(lines)

        return denoise
