"""The configuration that files and overrides lead to, without a plan."""

from collections.abc import Sequence
from contextlib import ExitStack

from dragoman.files import scratch_directory
from dragoman.runs.config import RunConfig
from dragoman.training.display import Display
from dragoman.training.draft import Overrides, Source, make_draft


def make_config(
    sources: Sequence[Source], *, overrides: Overrides, valid: Sequence[str], display: Display
) -> RunConfig:
    with ExitStack() as stack, scratch_directory() as cache:
        return make_draft(sources, stack, cache, overrides=overrides, valid=valid, display=display).config
