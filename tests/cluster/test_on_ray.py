"""Ray itself, with several raylets on this machine: what a cluster does is what one machine does."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli import texts
from dragoman.cli.main import app
from dragoman.data.workers import EncodeWork
from dragoman.errors import UserError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'dragoman[cluster]'")

from dragoman.cluster.on_ray import QUIET, open_cluster  # noqa: E402


@pytest.fixture(scope="module")
def raylets() -> Iterator[Any]:
    """A head that does no work, and two machines of one core."""
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster

    options = {"object_store_memory": 100 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    yield cluster
    cluster.shutdown()


@dataclass(frozen=True)
class Shouting:
    """Ends its raylet once, and breaks at every poisonous line."""

    marker: Path

    def open(self) -> Callable[[Sequence[str | None]], list[str | None]]:
        def shout(items: Sequence[str | None]) -> list[str | None]:
            if "last" in items and not self.marker.exists():
                self.marker.touch()
                os.kill(os.getppid(), signal.SIGKILL)
            if "poison" in items:
                raise LookupError("a line that nobody has thought of")
            return [None if item is None else item.upper() for item in items]

        return shout


def test_a_command_and_the_loss_of_a_machine(
    raylets: Any, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, sentences = small_run, tmp_path / "some.en"
    words = ("red cat", "old dog", "blue fish", "new hill")
    lines = [f"the {a} and a {b.split()[1]}" for a in words for b in words] * 3
    sentences.write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(texts, "CHUNK", 7)
    command = ["translate", str(run), "--input", str(sentences), "--n-best", "2", "--device", "cpu"]
    for name, further in (("alone", []), ("together", ["--cluster", raylets.address])):
        result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / name), *further])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "together").read_bytes() == (tmp_path / "alone").read_bytes()
    assert not list(tmp_path.glob("together.*"))

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    told: list[str] = []
    with open_cluster(raylets.address, told.append) as cluster:
        chunks = [["a", "b"], ["c", "poison", "d"], *([str(number)] for number in range(20)), ["last"]]
        found = list(cluster.map(Shouting(tmp_path / "marker"), chunks, "cpu"))
        tokenizer = small_run / "tokenizer.json"
        work = EncodeWork((tokenizer.read_bytes(),))
        asked = [("s", lines), ("t", ["", "the cat"])]
        with cluster.helpers(work) as helpers:
            encoded = helpers.ask(asked)
        for (ids, lengths), (own_ids, own_lengths) in zip(encoded, work.open()(asked), strict=True):
            assert ids.tolist() == own_ids.tolist() and lengths.tolist() == own_lengths.tolist()
    assert (tmp_path / "marker").exists(), "a raylet has been killed"
    assert found == [["A", "B"], ["C", None, "D"], *([str(number)] for number in range(20)), ["LAST"]]
    assert len(told) == 1 and told[0].startswith("line 4 is left out: ")


def test_nobody_is_there() -> None:
    with (
        pytest.raises(UserError, match=r"--cluster 127\.0\.0\.1:1: no cluster there"),
        open_cluster("127.0.0.1:1", print),
    ):
        pass
