"""What would let a file run code is nowhere in the package (QUALITY: models from strangers)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman

SOURCE = Path(dragoman.__file__).parent
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "code",
    "codeop",
}
CALLS = {
    "eval", "exec", "compile", "__import__",
    "torch.load", "torch.save", "torch.hub.load", "torch.jit.load",
    "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load",
    "yaml.Loader", "yaml.UnsafeLoader", "yaml.FullLoader",
    "numpy.load", "np.load", "joblib.load", "pandas.read_pickle",
    "os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "commands.getoutput",
    "xml.etree.ElementTree.parse", "ET.parse",
}  # fmt: skip


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def unsafe(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.partition(".")[0] in MODULES:
                    yield node.lineno, f"import {name.name}"
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] in MODULES:
                yield node.lineno, f"from {module} import"
            for name in node.names:
                if f"{module}.{name.name}" in CALLS:
                    yield node.lineno, f"from {module} import {name.name}"
        elif isinstance(node, ast.Attribute | ast.Name) and dotted(node) in CALLS:
            yield node.lineno, dotted(node)
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                literal = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in ("shell", "allow_pickle", "trust_remote_code") and literal is not False:
                    yield node.lineno, f"{keyword.arg}="
                if keyword.arg == "weights_only":
                    yield node.lineno, "weights_only="
            called = dotted(node.func)
            if called.endswith("import_module") and not isinstance(node.args[0], ast.Constant):
                yield node.lineno, "import_module of a name that is computed"


def test_nothing_unsafe_in_the_package() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 10
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {what}"
        for path in files
        for line, what in unsafe(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load('x')",
        "from torch import load",
        "eval('1')",
        "exec(text)",
        "yaml.load(text)",
        "from yaml import load",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=wanted)",
        "np.load(path)",
        "np.memmap(path); numpy.load(path, allow_pickle=True)",
        "__import__(config.name)",
        "importlib.import_module(config.name)",
        "os.system('ls')",
        "handler = torch.load",
        "import marshal",
    ],
)
def test_the_check_finds_it(text: str) -> None:
    assert list(unsafe(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["model.eval()", "yaml.safe_load(x)", "re.compile('a')", "load_file(x)", "torch.compile(model)"]
)
def test_the_check_lets_harmless_code_be(text: str) -> None:
    assert not list(unsafe(ast.parse(text)))
