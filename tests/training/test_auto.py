"""What is chosen for a corpus and a machine; the choice is a pure function of both."""

from pathlib import Path

import pytest

from dragoman.data.config import DataConfig, SourceConfig
from dragoman.learning.resolve import resolve
from dragoman.training.auto import CorpusStats, Machine, choose, measure

CPU = Machine(cores=2)
SMALL_GPU = Machine(cores=8, gpu_bytes=8 << 30)
LARGE_GPU = Machine(cores=16, gpu_bytes=140 << 30)
MACHINES = [CPU, SMALL_GPU, LARGE_GPU]


def stats(pairs: int) -> CorpusStats:
    return CorpusStats(pairs, characters=60 * pairs, longest=400)


@pytest.mark.parametrize(
    ("pairs", "machine", "model", "vocabulary", "dropout"),
    [
        (500, CPU, "tiny", 1000, 0.3),
        (5_000, CPU, "tiny", 4000, 0.3),
        (30_000, CPU, "tiny", 8000, 0.3),
        (30_000, LARGE_GPU, "tiny", 8000, 0.3),
        (200_000, CPU, "small", 16_000, 0.2),
        (200_000, LARGE_GPU, "small", 16_000, 0.2),
        (1_000_000, CPU, "small", 32_000, 0.1),
        (1_000_000, SMALL_GPU, "base", 32_000, 0.1),
        (1_000_000, LARGE_GPU, "base", 32_000, 0.1),
        (30_000_000, SMALL_GPU, "base", 32_000, 0.1),
        (30_000_000, LARGE_GPU, "big", 32_000, 0.1),
    ],
)
def test_sizes(pairs: int, machine: Machine, model: str, vocabulary: int, dropout: float) -> None:
    chosen = choose(stats(pairs), machine)
    assert chosen["model"] == {"preset": f"transformer-{model}", "dropout": dropout}
    assert chosen["tokenizer"] == {"vocab_size": vocabulary}
    assert choose(stats(pairs), machine) == chosen


@pytest.mark.parametrize("machine", MACHINES, ids=["cpu", "8 GiB", "140 GiB"])
@pytest.mark.parametrize("pairs", [1, 100, 5_000, 30_000, 300_000, 1_000_000, 50_000_000])
def test_every_choice_is_a_valid_configuration(pairs: int, machine: Machine) -> None:
    chosen = choose(stats(pairs), machine)
    config = resolve({"data": {"train": [{"files": ["a.en", "a.de"]}]}, **chosen})
    assert config.train.max_updates is not None
    assert config.schedule.warmup < config.train.max_updates
    assert config.train.log_every < config.train.validate_every <= config.train.max_updates
    longest_allowed = config.data.clean.max_length + 1
    assert config.train.batch_tokens >= longest_allowed


@pytest.mark.parametrize("updates", [1, 2, 40, 1000, 300_000])
def test_a_given_number_of_updates_is_followed(updates: int) -> None:
    chosen = choose(stats(30_000), CPU, updates)
    train, warmup = chosen["train"], chosen["schedule"]["warmup"]
    assert train["max_updates"] == updates
    assert warmup <= updates // 2
    assert 1 <= train["log_every"] <= train["validate_every"] <= updates
    assert resolve({"data": {"train": [{"files": ["a.en", "a.de"]}]}, **chosen})


def test_a_small_card_accumulates_to_the_same_update() -> None:
    small, large = (choose(stats(1_000_000), machine)["train"] for machine in (SMALL_GPU, LARGE_GPU))
    assert small["accumulate"] > large["accumulate"] == 1
    assert small["batch_tokens"] * small["accumulate"] == pytest.approx(large["batch_tokens"], rel=0.1)


def test_measure_counts_and_weighs(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\nthree\n")
    (tmp_path / "a.de").write_text("eins\ndrei\n")
    files = (str(tmp_path / "a.en"), str(tmp_path / "a.de"))
    once = measure(DataConfig(train=(SourceConfig(files),)))
    assert once == CorpusStats(pairs=2, characters=8, longest=5)
    assert measure(DataConfig(train=(SourceConfig(files, weight=3.0),))).pairs == 6
