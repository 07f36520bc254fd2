"""The compiled loops of scipy.sparse, without the package around them.

Importing scipy.sparse brings in dense algebra and much else, and takes as long as reading 20 MB of
text. The loops are in a module that needs nothing but numpy; they let other threads run, add to
arrays that exist, and check nothing: indices out of range would write past an array.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType


def _loaded() -> ModuleType:
    package = importlib.util.find_spec("scipy")  # looks for it only
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
    folder = Path(package.origin).parent / "sparse"
    name = "scipy.sparse._sparsetools"
    spec = PathFinder.find_spec(name, [str(folder)])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_module = _loaded()
csr_tocsc = _module.csr_tocsc
csr_row_index = _module.csr_row_index
csr_matvec, csr_matvecs = _module.csr_matvec, _module.csr_matvecs
csc_matvec, csc_matvecs = _module.csc_matvec, _module.csc_matvecs
