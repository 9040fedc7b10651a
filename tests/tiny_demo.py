"""`dragoman demo` with a model too small to learn: a few updates of training, everything else as it is.

python tests/tiny_demo.py --out RUN
"""

from typing import Any

from dragoman.cli import demo as command
from dragoman.data import demo_dates

_whole_recipe, _whole_task = command.recipe, demo_dates.draw_dates


def recipe(files: Any, seed: int, quick: bool) -> dict[str, Any]:
    plain = _whole_recipe(files, seed, quick)
    plain["model"] |= {"model_dim": 16, "num_heads": 2, "ff_dim": 16, "num_layers": 1}
    plain["train"] |= {"max_updates": 4, "validate_every": 2, "save_every": 2, "validate_sentences": 4}
    plain["schedule"] = {"name": "constant", "warmup": 0}
    return plain


def generate(seed: int, **_sizes: int) -> demo_dates.DateTask:
    return _whole_task(seed, train_size=400, valid_size=20, test_size=30)


if __name__ == "__main__":
    import sys

    from dragoman.cli.main import main

    command.recipe, demo_dates.draw_dates = recipe, generate
    sys.argv[1:1] = ["demo"]
    main()
