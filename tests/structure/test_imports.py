"""What imports what: commands answer at once, and text works without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman

SOURCE = Path(dragoman.__file__).parent
HEAVY = [
    "torch",
    "jaxtyping",
    "numpy",
    "tokenizers",
    "safetensors",
    "sacrebleu",
    "babel",
    "matplotlib",
    "pyarrow",
    "ctranslate2",
    "rich",
    "yaml",
    "fastapi",
    "uvicorn",
    "ray",
    "fsspec",
]


def modules(*names: str) -> list[str]:
    """The modules below the given packages, by the files that are there."""
    found = []
    for name in names:
        path = SOURCE.joinpath(*name.split("."))
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            parts = file.relative_to(SOURCE).with_suffix("").parts
            found.append(".".join(("dragoman", *(part for part in parts if part != "__init__"))))
    return found


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)


WITHOUT_TORCH = modules(
    "config",
    "errors",
    "text",
    "data.formats",
    "data.documents",
    "data.config",
    "data.demo_dates",
    "decode.translator.hypothesis",
    "decode.search.job",
    "decode.search.loop_guard",
    "decode.translator.base",
    "engines.manifest",
    "decode.search.shortlist",
    "engines.runtime",
    "engines.search",
    "engines.engine",
    "engines.ctranslate2",
    "serve",
    "files",
    "cli",
    "__init__",
)


def test_works_without_torch() -> None:
    program = (
        "import sys, importlib\n"
        "sys.modules['torch'] = sys.modules['jaxtyping'] = None\n"
        "for name in sys.argv[1:]: importlib.import_module(name)"
    )
    done = run_python(program, *WITHOUT_TORCH)
    assert done.returncode == 0, done.stderr
    assert len(WITHOUT_TORCH) > 15


def test_importing_the_package_is_light() -> None:
    program = (
        "import sys, json, dragoman; dragoman.__version__\n"
        "print(json.dumps([n for n in sys.argv[1:] if n in sys.modules]))"
    )
    assert json.loads(run_python(program, *HEAVY).stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *([name, "--help"] for name in ("train", "demo", "compare", "export", "search-report")),
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys, json\n"
        "heavy, sys.argv[1:] = json.loads(sys.argv[1]), sys.argv[2:]\n"
        "from dragoman.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print('loaded', json.dumps([n for n in heavy if n in sys.modules]))"
    )
    done = run_python(program, json.dumps(HEAVY), *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_a_model_is_opened_without_the_trainer() -> None:
    """What opens a run for `translate`, `serve` and the studio needs neither training nor metrics."""
    program = (
        "import sys\n"
        "import dragoman.cli.main, dragoman.cli.translate, dragoman.cli.translators, dragoman.runs.opening\n"
        "rooms = ('training', 'learning', 'evaluate', 'probe', 'serve', 'studio')\n"
        "names = tuple(f'dragoman.{room}' for room in rooms)\n"
        "loaded = [name for name in sys.modules if name.startswith(names)]\n"
        "assert not loaded, loaded\n"
        "assert not {'sacrebleu', 'ray', 'fsspec'} & {*sys.modules}\n"
    )
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_the_python_names() -> None:
    """`dragoman.train` is a function, whatever has been imported before."""
    program = (
        "import dragoman\n"
        "assert callable(dragoman.train) and callable(dragoman.load) and callable(dragoman.resume)\n"
        "import dragoman.training.api\n"
        "assert callable(dragoman.train) and dragoman.training.api\n"
        "assert {'train', 'load', 'resume', '__version__'} <= set(dir(dragoman))\n"
        "try: dragoman.nothing\n"
        "except AttributeError as error: assert 'nothing' in str(error)\n"
        "else: raise SystemExit('no AttributeError')"
    )
    done = run_python(program)
    assert done.returncode == 0, done.stderr
