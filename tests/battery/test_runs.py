"""Every model in a run: the same loop trains it, it is killed, resumed, loaded, searched and scored."""

from pathlib import Path

import pytest
import torch

from battery.models import BY_COUNTING, CASES
from dragoman.checkpoint.model import load_model
from dragoman.config import to_dict
from dragoman.data.corpus import Prepared, prepare
from dragoman.decode.search.config import SearchConfig
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from killing import assert_same_checkpoint, train_until_killed
from toy import toy_config, toy_pairs, write_pairs

UPDATES, KILLED_IN = 4, 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_pairs(tmp_path_factory.mktemp("corpus"), toy_pairs(160))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


def run_of(name: str, directory: Path, corpus: tuple[str, str], cache: Path) -> Run:
    """The case as a run, with the vocabularies joint or apart as the case has them."""
    kind, config, vocab = CASES[name]
    plain = toy_config(corpus)
    plain["model"] = {"kind": kind, **to_dict(config)}
    plain["tokenizer"] |= {"joint": vocab.shared}
    plain["train"] |= {"max_updates": UPDATES, "save_every": 2, "validate_every": 2, "log_every": 1}
    plain["train"] |= {"validate_sentences": 1}
    plain["search"] = {"beam": 1, "max_ratio": 1.0, "max_extra": 1}
    resolved = resolve_config(plain)
    return Run.create(directory, resolved, _prepared(resolved, cache))


def _prepared(config: RunConfig, cache: Path) -> Prepared:
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)


@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_COUNTING])
def test_killed_and_resumed_it_is_bit_identical_and_it_loads_and_translates(
    name: str, tmp_path: Path, corpus: tuple[str, str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_of(name, tmp_path / "whole", corpus, cache)
    train_run(whole, NoDisplay())
    killed = run_of(name, tmp_path / "killed", corpus, cache)
    train_until_killed(killed, KILLED_IN, monkeypatch)
    assert killed.last == "0000002"
    train_run(Run.open(killed.directory), NoDisplay())
    assert_same_checkpoint(whole, killed, "0000004")
    _loads_and_translates(whole)


@pytest.mark.parametrize("name", sorted(BY_COUNTING))
def test_counted_twice_it_is_bit_identical_and_it_loads_and_translates(
    name: str, tmp_path: Path, corpus: tuple[str, str], cache: Path
) -> None:
    """Counting has nothing to resume: a run that was killed counts again."""
    runs = [run_of(name, tmp_path / part, corpus, cache) for part in ("whole", "again")]
    for run in runs:
        train_run(run, NoDisplay())
    left, right = (run.checkpoints / str(run.last) / "model.safetensors" for run in runs)
    assert left.read_bytes() == right.read_bytes()
    _loads_and_translates(runs[0])


def _loads_and_translates(run: Run) -> None:
    """The same weights twice from the disk, and what a beam prints is what scoring finds."""
    first, second = (load_model(run.directory, torch.device("cpu"), "last").model for _ in range(2))
    assert first.state_dict().keys() == second.state_dict().keys()
    for ours, theirs in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    translator = run.translator("last", "cpu")
    texts = ["ab cd", "e", "dda b c ab"]
    found = translator.hypotheses(texts, search=SearchConfig(beam=4, n_best=4, loop_guard=False))
    for source, hypotheses in zip(texts, found, strict=True):
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        assert len({h.tokens for h in hypotheses}) == 4
        ids = translator.src_tokenizer.encode(source)
        again = translator.score_ids([(ids, h.tokens) for h in hypotheses], search=SearchConfig())
        for printed, rescored in zip(hypotheses, again, strict=True):
            assert printed.log_prob == pytest.approx(rescored.log_prob, abs=1e-5 * len(printed.token_scores))
