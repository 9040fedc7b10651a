"""The drawings and the design of every page: studio, `explain --html`, and the page of the service.

    design.css           type, colour, spacing, light and dark, and the parts that pages have in common
    dom, scale           elements, measured text; colours
    heatmap, cells, grid, bipartite, tree, chart, pieces, patches      drawings, each an SVG
    weights              attention weights as drawings show them
    controls, export     what views are operated with; drawings as files

The modules are plain ES modules without a build step. A page that is one file gets them by `bundled`.
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|let) (\w+)", re.MULTILINE)


@cache
def assets() -> dict[str, str]:
    """The text of every file, by its name."""
    return {
        path.name: path.read_text("utf-8")
        for path in files("dragoman.drawing").iterdir()
        if path.name.endswith((".js", ".css"))
    }


def bundled(*names: str) -> str:
    """These modules and all that they import, as one script. It defines `drawing_NAME` for each of them, an
    object with what the module exports."""
    done: dict[str, str] = {}
    for name in names:
        _add(name, done)
    return "\n".join(done.values())


def _add(name: str, done: dict[str, str]) -> None:
    if name in done:
        return
    text = assets()[f"{name}.js"]
    for _, other in _IMPORT.findall(text):
        _add(other, done)
    exports = [found[1] for found in _EXPORT.findall(text)]
    inner = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_destructured, text))
    if re.search(r"^\s*(import|export)\b", inner, re.MULTILINE):
        raise ValueError(f"{name}.js: an import or export is written in a way that cannot be bundled")
    done[name] = f"const drawing_{name} = (() => {{\n{inner}return {{ {', '.join(exports)} }};\n}})();"


def _destructured(found: re.Match[str]) -> str:
    return f"const {{{found[1].replace(' as ', ': ')}}} = drawing_{found[2]};"
