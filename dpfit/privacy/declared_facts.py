"""What the user, and the input's format, say about the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpfit.privacy.summary import Label


@dataclass(frozen=True)
class DeclaredFacts:
    """What the user declared about the data; None means: not declared.

    Attributes
    ----------
    n_rows, n_features : int or None
        Shape of the data.
    index_base : int or None
        Number of the first column in the file, 0 or 1.
    labels : tuple of labels, or None
        The label set; of two the second is the positive class.
    target_range : (float, float) or None
        Bounds of a real target.
    max_weight : float or None
        Bound on a row's weight.
    max_exposure : float or None
        Bound on a row's exposure.
    n_owners : int or None
        Number of privacy units.
    """

    n_rows: int | None = None
    n_features: int | None = None
    index_base: int | None = None
    labels: tuple[Label, ...] | None = None
    target_range: tuple[float, float] | None = None
    max_weight: float | None = None
    max_exposure: float | None = None
    n_owners: int | None = None


@dataclass(frozen=True)
class Layout:
    """What the input's format itself fixes about the columns; None: it fixes nothing.

    Attributes
    ----------
    n_features : int or None
        Number of columns, when the input names them or they are hashed.
    index_base : int or None
        Number of the first column in the blocks.
    outside_records : bool
        Whether that number stands outside the records, as a header does; otherwise it was read
        off the first of them.
    """

    n_features: int | None = None
    index_base: int | None = None
    outside_records: bool = True
