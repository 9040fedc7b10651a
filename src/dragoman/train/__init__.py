"""Training: one open loop, and the run directory it fills.

`dragoman.train` is this package, and it can be called: `dragoman.train("a.en", "a.de")` is
`dragoman.train.api.train("a.en", "a.de")`. A function of the same name in `dragoman` would be replaced by the
package as soon as anything imports a module from it; so the package itself is the function.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.train.plan import Overrides, Source
    from dragoman.train.run import Run


class _CallablePackage(ModuleType):
    def __call__(
        self,
        *sources: "Source",
        out: str | Path | None = None,
        overrides: "Overrides" = (),
        valid: Sequence[str] = (),
        quiet: bool = False,
    ) -> "Run":
        from dragoman.train.api import train

        return train(*sources, out=out, overrides=overrides, valid=valid, quiet=quiet)


sys.modules[__name__].__class__ = _CallablePackage
