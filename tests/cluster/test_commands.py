"""What commands write with `--cluster` is what they write without it. The cluster is this process: what goes
there and comes back is pickled, as Ray does (`test_on_ray.py` has Ray itself)."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

from dragoman.cli import clustered, texts
from dragoman.cli.main import app
from dragoman.cli.translators import Opened
from dragoman.cluster import on_ray
from dragoman.cluster.workers import Work
from dragoman.data import filter as data_filter
from dragoman.decode.confidence import FEATURES, Calibration
from dragoman.runs import corpus_job

T = TypeVar("T")


def sent(thing: T) -> T:
    return pickle.loads(pickle.dumps(thing))


class Nearby:
    """Stands for `Cluster`."""

    def __init__(self) -> None:
        self.parts = 0
        self.devices: list[str] = []

    def device(self, device: str) -> str:
        self.devices.append(device)
        return "cpu"

    def map(self, work: Work, chunks: Iterable[list[Any]], _device: str, _begun: int = 0) -> Iterator[Any]:
        do = sent(work).open()
        for chunk in chunks:
            self.parts += 1
            yield sent(do(sent(chunk)))

    @contextmanager
    def pool(self, work: Work) -> Iterator["NearbyPool"]:
        yield NearbyPool(self, sent(work).open())


class NearbyPool:
    count = 2

    def __init__(self, cluster: Nearby, do: Callable[[Sequence[Any]], Any]) -> None:
        self._cluster, self._do = cluster, do

    def ask(self, items: Sequence[Any]) -> Any:
        self._cluster.parts += 1
        return sent(self._do(sent(items)))


@pytest.fixture
def nearby(monkeypatch: pytest.MonkeyPatch) -> Nearby:
    cluster = Nearby()

    @contextmanager
    def open_cluster(address: str, _tell: Callable[[str], None]) -> Iterator[Nearby]:
        assert address == "here"
        yield cluster

    monkeypatch.setattr(on_ray, "open_cluster", open_cluster)
    chunks = ((texts, "CHUNK"), (corpus_job, "LINES_AT_ONCE"), (clustered, "_PIECE"), (data_filter, "_CHUNK"))
    monkeypatch.setattr(clustered, "_CELLS", 60)
    for module, name in chunks:
        monkeypatch.setattr(module, name, 7)
    return cluster


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """some.en and some.de, a glossary, and prefixes."""
    place = tmp_path_factory.mktemp("files")
    words = ("red cat", "old dog", "blue fish", "new hill")
    lines = [f"the {a} and a {b.split()[1]}" for a in words for b in words]
    for name, written in (
        ("some.en", lines),
        ("some.de", [line.upper() for line in lines]),
        ("terms.tsv", ["cat\tFISH", "dog\tDOG|HILL"]),
        ("prefixes", [line.split()[0].upper() if n % 2 else "" for n, line in enumerate(lines)]),
    ):
        (place / name).write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
    return place


def told(command: Sequence[object], run: Path, files: Path, out: Path) -> tuple[str, dict[str, bytes]]:
    """What a command prints on standard output, and the files that it writes below OUT, but for the prepared
    store, whose seal is also of where it is."""
    out.mkdir()
    given = [str(word).replace("RUN", str(run)).replace("OUT", str(out)) for word in command]
    given = [word.replace("FILES", str(files)) for word in given]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    written = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    found = {str(path.relative_to(out)): data.replace(bytes(out), b"OUT") for path, data in written.items()}
    found = {name: data for name, data in found.items() if not name.startswith(".prepared")}
    return result.stdout.replace(str(out), "OUT"), found


INPUT = "translate RUN --device cpu --input FILES/some.en"


@pytest.mark.parametrize(
    "command",
    [
        f"{INPUT} --out OUT/out",
        f"{INPUT} --json --align --glossary FILES/terms.tsv",
        f"{INPUT} --json --glossary FILES/terms.tsv --terms placeholder",
        f"{INPUT} --n-best 3 --forbid CAT --newlines escape --out OUT/out",
        f"{INPUT} --prefix @FILES/prefixes",
        f"{INPUT} --confidence --flag-below 0.9",
        "score RUN --device cpu FILES/some.en FILES/some.de",
        "score RUN --device cpu FILES/some.en FILES/some.de --json --out OUT/out",
        "filter --device cpu FILES/some.en FILES/some.de --run RUN --keep 0.5 --out OUT/out",
        "back-translate RUN --device cpu FILES/some.en --out OUT/out",
        "back-translate RUN --device cpu FILES/some.en --out OUT/out --sample --tag <BT>",
        "corpus FILES/some.en FILES/some.de",
        "align-corpus FILES/some.en FILES/some.de --output OUT/links",
        "distill RUN --device cpu --out OUT/student --no-train -q",
    ],
)
def test_the_same_as_without(
    command: str,
    nearby: Nearby,
    small_run: Path,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flat = (1.0,) * len(FEATURES)
    own = Calibration(40.0, 1.0, flat, flat, flat, 40)
    monkeypatch.setattr(Opened, "calibration", lambda _opened, _checkpoint: own)
    alone = told(command.split(), small_run, files, tmp_path / "alone")
    assert nearby.parts == 0
    together = told([*command.split(), "--cluster", "here"], small_run, files, tmp_path / "together")
    assert together == alone
    assert nearby.parts >= (1 if command.startswith("corpus") else 3)


def test_a_store_in_shards(nearby: Nearby, small_run: Path, files: Path, tmp_path: Path) -> None:
    """What training reads is the same, byte for byte, whoever cut the texts into tokens."""
    stores = []
    for name, further in (("alone", []), ("together", ["--cluster", "here"])):
        place = tmp_path / name
        command = "train FILES/some.en FILES/some.de --out OUT/run --dry-run -q tokenizer.vocab_size=300"
        shards = f"data.shards={{pairs: 5, directories: [{place / 'a'}, {place / 'b'}]}}"
        _, found = told([*command.split(), shards, *further], small_run, files, place)
        shards_of = {(name[0], Path(name).name): data for name, data in found.items() if "/shards-" in name}
        stores.append(shards_of)
    assert stores[0] == stores[1] and {name for _, name in stores[0]} >= {
        f"train-0000{number}.{side}.ids" for number in range(3) for side in ("src", "tgt")
    }
    assert nearby.parts


def test_an_export_runs_on_cores_where_the_cluster_has_gpus(
    nearby: Nearby, small_run: Path, files: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    export = tmp_path / "export"
    assert CliRunner().invoke(app, ["export", str(small_run), "--out", str(export)]).exit_code == 0
    for number, model in enumerate((small_run, export)):
        told(
            ["translate", model, "-i", "FILES/some.en", "--cluster", "here"],
            model,
            files,
            tmp_path / str(number),
        )
    assert nearby.devices == ["auto", "cpu"]


def test_evaluate(nearby: Nearby, small_run: Path, files: Path, tmp_path: Path) -> None:
    kept = small_run / "evaluation" / "some"
    command = [
        "evaluate",
        "RUN",
        "--device",
        "cpu",
        "FILES/some.en",
        "FILES/some.de",
        "--name",
        "some",
        "--bootstrap",
        "0",
    ]
    found = []
    for number, further in enumerate(([], ["--cluster", "here"])):
        told([*command, *further], small_run, files, tmp_path / str(number))
        found.append([(kept / name).read_bytes() for name in ("hypotheses.txt", "report.json")])
    assert found[0] == found[1] and nearby.parts == 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("translate RUN word --stream", "--stream only on one machine so far"),
        ("translate RUN --input FILES/some.en --memory FILES/some.en", "--memory only on one machine"),
        ("translate RUN FILES/page.md --out FILES/page.de.md", "documents only on one machine"),
        ("train FILES/some.en FILES/some.de", "give --dry-run"),
    ],
)
def test_what_goes_on_one_machine_alone(
    command: str, message: str, nearby: Nearby, small_run: Path, files: Path
) -> None:
    (files / "page.md").write_text("the red cat\n", encoding="utf-8")
    given = [w.replace("RUN", str(small_run)).replace("FILES", str(files)) for w in command.split()]
    result = CliRunner().invoke(app, [*given, "--cluster", "here"])
    assert result.exit_code == 1 and message in str(result.exception)
    assert nearby.parts == 0
