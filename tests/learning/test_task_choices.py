"""What is chosen for a task of which nothing but its examples is known."""

import pytest

from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.learning.task import choose_for_task


@pytest.mark.parametrize(("number", "together"), [(2000, 32), (80, 10), (4, 1)])
def test_examples_of_an_update(number: int, together: int) -> None:
    """32, or an eighth of them all where they are few: an epoch has several updates."""
    examples = [Example(("x" * 120,), None, f"a.tsv:{line}") for line in range(number)]
    task = TaskConfig(kind="classify", max_length=16)
    chosen = choose_for_task(examples, task, max_updates=None, begun=True)
    assert chosen["train"]["max_updates"] == max(50, 4 * number // together)
    assert chosen["train"]["batch_tokens"] == max(16 * together, 2 * 16)
