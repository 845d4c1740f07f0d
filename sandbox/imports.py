"""Which top-level modules a run can import: the standard library, the packages of a run, what a suite writes itself.

Everything else that is installed answers as if it were not: reading it is refused by the confinement anyway, but with
an error that names a path of this machine, and tests ask for missing modules by ImportError.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from autotest_env.sandbox.confine import READABLE_PACKAGES

_OWN = __name__.partition(".")[0]


def restrict() -> None:
    """Put the finder in front, and take this package out of sight; what is running of it goes on."""
    sys.meta_path.insert(0, OnlyWhatRunsMayImport())
    for name in [name for name in sys.modules if name.partition(".")[0] == _OWN]:
        del sys.modules[name]
    sys.modules["__main__"] = ModuleType("__main__")


class OnlyWhatRunsMayImport:
    """A finder in front of all others; folders that a suite puts on `sys.path` later are searched."""

    def __init__(self) -> None:
        self._known = frozenset(sys.stdlib_module_names) | frozenset(READABLE_PACKAGES)
        self._paths = frozenset(sys.path)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Leave known names and submodules to the other finders; find the rest in new folders or not at all."""
        if path is not None or name in self._known:
            return None
        spec = PathFinder.find_spec(name, [folder for folder in sys.path if folder not in self._paths], target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec
