"""`deploy/ray_torchrun.py` starts torchrun on every machine. Here threads stand for the machines of Ray."""

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "ray_torchrun.py"
LEFT_BEHIND = "from pathlib import Path; import os, sys; Path(sys.argv[1], os.environ['RANK']).touch()"


class Machines:
    """Stands for the module `ray`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(4)
        self.room: dict[str, Any] = {}
        self.util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def init(self) -> None: ...

    def remote(self, **room: Any) -> Callable[[Callable[..., int]], Any]:
        self.room = room
        return lambda do: SimpleNamespace(remote=lambda command: self._threads.submit(do, command))

    def wait(self, waiting: Sequence[Future[int]]) -> tuple[list[Future[int]], list[Future[int]]]:
        done, others = wait(waiting, return_when=FIRST_COMPLETED)
        first, *more = done
        return [first], [*more, *others]

    def get(self, ended: Future[int]) -> int:
        return ended.result()


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    machines = Machines()
    monkeypatch.setitem(sys.modules, "ray", machines)  # type: ignore[arg-type]
    return machines


def main(*arguments: str) -> Callable[[], None]:
    """The function of the script, with nothing restarted."""
    sys.argv[1:] = arguments
    found = runpy.run_path(str(SCRIPT))["main"]
    found.__globals__["RESTARTS"] = 0
    return found


def test_torchrun_on_two_machines(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "dragoman"  # takes the place of dragoman, which would train
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(LEFT_BEHIND, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [""])
    with pytest.raises(SystemExit, match="0"):
        main("--machines", "2", "--cpus", "3", "--", str(tmp_path))()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.isdigit()) == ["0", "1"]
    assert machines.room["num_cpus"] == 3 and machines.room["max_retries"] == -1


@pytest.mark.usefixtures("machines")
def test_how_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first machine, if the training has ended; others may still wait for a place."""
    monkeypatch.setattr(sys, "argv", [""])
    for given, wanted in (([0], 0), ([1, 1, 1], 1)):
        script, forever = main("--machines", "1:3", "--gpus", "8", "--", "train"), Event()
        statuses = iter(given)

        def call(_: list[str], statuses: Iterator[int] = statuses, forever: Event = forever) -> int:
            status = next(statuses, None)
            return status if status is not None else forever.wait()

        script.__globals__["subprocess"] = SimpleNamespace(call=call)
        with pytest.raises(SystemExit, match=str(wanted)):
            script()
        forever.set()
