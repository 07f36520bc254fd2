"""A process without pandas: nothing here uses it, and pyarrow imports it wherever it is installed.

That costs a start half a second, and memory of which ``--memory`` knows nothing.
"""

from __future__ import annotations

import sys


class _NoPandas:
    """Finds modules before all others, and of pandas that it is not installed.

    A None among ``sys.modules`` would not do: compiled modules take that for pandas itself.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_pandas_alone() -> None:
    """From now on to import pandas fails, as where it is not installed."""
    sys.meta_path.insert(0, _NoPandas)
