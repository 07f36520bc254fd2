"""Private records on the integer grid, in this process: what the Curator's questions go to."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.grid import Grid
from dpfit.design.local import LocalDesign
from dpfit.design.owner_rows import OwnerRows
from dpfit.design.rows_view import GridView, RowsView
from dpfit.errors import DataError
from dpfit.memory import SECOND_BLAS, require_memory
from dpfit.privacy.centring import Centring
from dpfit.privacy.minimiser_error import reaches
from dpfit.privacy.minimiser_release import MinimiserRelease
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import SelectionRelease
from dpfit.privacy.stays_here import StaysHere

if TYPE_CHECKING:
    from dpfit.privacy.charged_releases import Release
    from dpfit.privacy.questions import Question

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_ARRAYS: Final = 8  # at once in a step, of records and of columns, as measured
_SCREEN_ARRAYS: Final = 5  # of columns, whatever the classes, as measured
_CLASSES_OF_ARRAY: Final = 4  # noise alone keeps one column in forty, in the arrays of a step
_COPIES: Final = 2  # of the rows as floats, held another way
_OVER_ALL_COLUMNS: Final = (
    Quantity.GRADIENT,
    Quantity.BATCH_GRADIENT,
    Quantity.OWNER_GRADIENT,
    Quantity.MINIMISER,
    Quantity.SELECTION,
)
_SCREENS: Final = (Quantity.COLUMN_SUMS, Quantity.VOTES)
_OVER_ALL_ROWS: Final = (Quantity.MINIMISER, Quantity.VOTES)


@dataclass(frozen=True)
class PrivateRecords(StaysHere):
    """Records on the integer grid; for the Curator alone.

    Attributes
    ----------
    design : LocalDesign
        The rows.
    target : float64 array, shape (n,)
        In [0, 1], or the number of the class.
    offset : float64 array, shape (n,), or None
        Added to each record's margin.
    shares : float64 array, shape (n,), or None
        Weight of each record over the largest one, in [0, 1].
    first : int
        Position of the first of them among all records.
    view : RowsView or None
        The rows as gradients are taken over them.
    owners : OwnerRows or None
        The rows by privacy unit; None where each is one of its own.
    """

    design: LocalDesign
    target: Floats
    offset: Floats | None = None
    shares: Floats | None = None
    first: int = 0
    view: RowsView | None = None
    owners: OwnerRows | None = None

    @property
    def n_features(self) -> int:
        """The public number of columns."""
        return self.design.n_features

    @property
    def has_offset(self) -> bool:
        """Whether scores have an offset column."""
        return self.offset is not None

    @property
    def rows(self) -> RowsView:
        """The view; there is one as soon as a Curator has the records."""
        assert self.view is not None
        return self.view

    def on_grid(self, grid: Grid) -> PrivateRecords:
        """These records, their rows as the record map left them."""
        return replace(self, view=GridView(self.design, grid))

    def centred(self, centring: Centring, grid: Grid) -> PrivateRecords:
        """These records, their rows centred and of length one."""
        return replace(self, view=centring.view(self.design, grid))

    def total(self, question: Question) -> Integers:
        """The answer over all records."""
        return question(self)

    def here(self) -> PrivateRecords:
        """All of them, in this process."""
        return self

    def check(self, releases: Sequence[Release], n_scores: int, grid: Grid, source: str) -> None:
        """Refuse, before the charge, what would fail after it.

        Parameters
        ----------
        releases : sequence of releases
            As planned.
        n_scores : int
            k of the loss.
        grid : Grid
            The record map.
        source : str
            What to call the input in messages.

        Raises
        ------
        DataError, UsageError
            There are too many records, or the bound on memory is too low.
        """
        for release in releases:
            check_number(release, self.design.n_rows, grid, source)
        asked = {release.quantity for release in releases}
        self._check_memory(asked, n_scores)
        if asked.intersection(_OVER_ALL_ROWS):
            require_memory(SECOND_BLAS)
            importlib.import_module("scipy.sparse.linalg")  # other fits start faster without it

    def _check_memory(self, asked: set[Quantity], n_scores: int) -> None:
        """Run out of memory now rather than after the charge, where a step's arrays tell.

        Nothing is touched, so asking takes no time. Columns that a screen keeps for the data are
        not foreseen.
        """
        rows, columns = 8 * _ARRAYS * self.design.n_rows * n_scores, 0
        if asked.intersection(_OVER_ALL_COLUMNS):
            columns = 8 * _ARRAYS * (self.design.n_features + 1) * n_scores
        elif asked.intersection(_SCREENS):
            arrays = _SCREEN_ARRAYS + n_scores // _CLASSES_OF_ARRAY
            columns = 8 * arrays * (self.design.n_features + 1)
        if asked.intersection(_OVER_ALL_ROWS):
            rows += _COPIES * self.design.n_bytes
        self.design.check_memory(rows, columns)
        np.empty(rows + columns, np.uint8)


def check_number(release: Release, n_rows: int, grid: Grid, source: str) -> None:
    """Refuse so many records that a release would not be what was charged.

    The scores of a selection must not wrap: sums wrap around harmlessly where noise is added; where
    they are compared they must not. Under replace-one the number of records is the declared one,
    and grids leave room for it. A minimiser must be found as near as was charged.

    Raises
    ------
    DataError
        There are too many.
    """
    sound = True
    if isinstance(release, SelectionRelease | PeelingRelease):
        sound = n_rows * release.sensitivity.add_remove * release.unit < 2**62
    elif isinstance(release, MinimiserRelease):
        sound = reaches(release.objective, grid, n_rows, release.bits, release.radius)
    if not sound:
        raise DataError(
            "holds far more records than declared",
            path=source,
            hint="this algorithm needs --n-rows, or rows of the schema, to be about right",
        )
