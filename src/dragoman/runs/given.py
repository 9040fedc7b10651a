"""Checks of the user's settings before the rest is chosen from the data."""

from collections.abc import Mapping
from typing import Any

from dragoman import config
from dragoman.models import config_class, config_classes
from dragoman.models.presets import check_fields
from dragoman.runs.config import RunConfig, model_section
from dragoman.runs.device import pick_device


def check_given(plain: Mapping[str, Any]) -> None:
    """Refuse unknown fields, presets, kinds and devices, and values of a wrong type, before the corpus is
    read, which can take minutes."""
    config.check_given(RunConfig, plain)
    model = plain.get("model", {})
    if "preset" in model or "kind" in model:
        model_section(model)
    else:
        check_fields("transformer", model, config_classes())
        config.check_given(config_class("transformer"), model, "model")
    pick_device(plain.get("train", {}).get("device", "auto"))
