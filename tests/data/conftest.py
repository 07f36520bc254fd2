"""Shared by the reader tests: reading everything at once, writing files, comparing blocks."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpfit.data.reader import Reader, ReadOptions
from dpfit.data.rows import RowBlock


@dataclass(frozen=True)
class Rows:
    """All blocks of an input in one."""

    matrix: sparse.csr_matrix
    target: np.ndarray | None


def together(blocks: Sequence[RowBlock], n_columns: int | None = None) -> Rows:
    widths = [int(block.indices.max(initial=-1)) + 1 for block in blocks]
    width = max(widths, default=0) if n_columns is None else n_columns
    parts = [
        sparse.csr_matrix((b.values, b.indices, b.indptr), shape=(b.n_rows, max(width, 1)))
        for b in blocks
    ]
    targets = [block.target for block in blocks]
    target = None if targets[0] is None else np.concatenate(targets)
    return Rows(sparse.vstack(parts, format="csr"), target)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Rows]:
    """``read(content, name, **options)``: write one file (bytes or str) and read it back."""

    def run(content: bytes | str, name: str = "x.svm", **options: Any) -> Rows:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return together(list(Reader([str(path)], ReadOptions(**options))))

    return run


@pytest.fixture
def read_stdin() -> Callable[..., Rows]:
    """``read_stdin(content, **options)``."""

    def run(content: bytes, **options: Any) -> Rows:
        reader = Reader(["-"], ReadOptions(**options), stdin=io.BytesIO(content))
        return together(list(reader))

    return run
