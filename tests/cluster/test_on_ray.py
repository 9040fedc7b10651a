"""Ray itself, with one core of this machine: what a cluster writes is what one machine writes. The loss of
machines is for `benchmarks/cluster.py`, and for `test_schedule.py`, which needs no Ray."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli import texts
from dragoman.cli.main import app
from dragoman.data.workers import EncodeWork
from dragoman.errors import UserError
from dragoman.system import usable_cores

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'dragoman[cluster]'")

from dragoman.cluster.on_ray import QUIET, open_cluster  # noqa: E402


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of one core. Ray gives its parts 30 seconds to start; a busy machine gets them twice."""
    os.environ.update(QUIET, RAY_gcs_server_port_wait_time_s="120")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    try:
        cluster = Cluster(initialize_head=True, head_node_args=head)
    except Exception:
        cluster = Cluster(initialize_head=True, head_node_args=head)
    yield str(cluster.address)
    cluster.shutdown()


@dataclass(frozen=True)
class Shouting:
    """Breaks at every poisonous line, and ends its process once."""

    marker: Path

    def open(self) -> Callable[[Sequence[str | None]], list[str | None]]:
        def shout(items: Sequence[str | None]) -> list[str | None]:
            if "last" in items and not self.marker.exists():
                self.marker.touch()
                os._exit(1)
            if "poison" in items:
                raise LookupError("a line that nobody has thought of")
            return [None if item is None else item.upper() for item in items]

        return shout


@dataclass(frozen=True)
class Settings:
    def open(self) -> Callable[[Sequence[str]], list[object]]:
        return lambda _: [usable_cores(), os.environ["GOMP_SPINCOUNT"]]


def test_a_command(address: str, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = tmp_path / "some.en"
    sentences.write_text("the red cat and a dog\nthe old fish\na new hill\n" * 6, encoding="utf-8")
    monkeypatch.setattr(texts, "CHUNK", 7)
    command = ["translate", str(small_run), "--input", str(sentences), "--n-best", "2", "--device", "cpu"]
    for name, further in (("alone", []), ("together", ["--cluster", address])):
        result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / name), *further])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "together").read_bytes() == (tmp_path / "alone").read_bytes()
    assert not list(tmp_path.glob("together.*"))


def test_processes_that_end_and_lines_that_break(
    address: str,
    small_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    told: list[str] = []
    with open_cluster(address, told.append) as cluster:
        message = {"lines": ["a worker died"], "pid": "raylet", "is_err": False}
        capsys.readouterr()
        ray._private.worker.print_to_stdstream(message, ignore_prefix=False)
        assert not capsys.readouterr().out, "standard output is for translations"
        chunks = [["a", "b"], ["c", "poison", "d"], *([str(number)] for number in range(20)), ["last"]]
        found = list(cluster.map(Shouting(tmp_path / "marker"), chunks, "cpu"))
        work = EncodeWork(((small_run / "tokenizer.json").read_bytes(),))
        asked = [("s", ["the red cat", "", "a dog"]), ("t", ["", "the cat"])]
        monkeypatch.setenv("GOMP_SPINCOUNT", "1234")
        own = list(cluster.map(Settings(), [["?"]], "cpu"))
        assert own == [[1, "1234"]], "its own core, of all that are here; what this process has"
        with cluster.pool(work) as pool:
            encoded = pool.ask(asked)
        for (ids, lengths), (own_ids, own_lengths) in zip(encoded, work.open()(asked), strict=True):
            assert ids.tolist() == own_ids.tolist() and lengths.tolist() == own_lengths.tolist()
    assert (tmp_path / "marker").exists(), "a process has ended"
    assert found == [["A", "B"], ["C", None, "D"], *([str(number)] for number in range(20)), ["LAST"]]
    assert len(told) == 1 and told[0].startswith("line 4 is left out: ")


def test_nobody_is_there() -> None:
    with (
        pytest.raises(UserError, match=r"--cluster 127\.0\.0\.1:1: no cluster there"),
        open_cluster("127.0.0.1:1", print),
    ):
        pass
