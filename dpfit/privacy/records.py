"""From blocks of rows to private records: the one place where public facts are read off the data.

What it reads off is listed as *assumed*; what the user declared is enforced instead. Nothing else
about the data leaves this module, except inside a :class:`PrivateRecords` that only the Curator
opens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.data.rows import RowBlock
from dpfit.design.grid import Grid
from dpfit.design.local import DesignBuilder, LocalDesign
from dpfit.errors import DataError, PrivacyError, UsageError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.minimiser_error import reaches
from dpfit.privacy.minimiser_release import MinimiserRelease
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import SelectionRelease

Floats: TypeAlias = NDArray[np.float64]
Label: TypeAlias = float | str
Target: TypeAlias = NDArray[np.float64] | NDArray[np.object_]

_TWO: Final = 2
_LARGEST_EXPONENT: Final = 700.0  # e to it, and to its negative, is finite and not zero
_ARRAYS: Final = 4  # at once in a step, at the least: model, sums, noise and gradient
_OVER_ALL_COLUMNS: Final = (
    Quantity.GRADIENT,
    Quantity.BATCH_GRADIENT,
    Quantity.MINIMISER,
    Quantity.SELECTION,
)
_MOST_CLASSES: Final = 1000  # more assumed labels are most likely a column of values


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
    """

    n_rows: int | None = None
    n_features: int | None = None
    index_base: int | None = None
    labels: tuple[Label, ...] | None = None
    target_range: tuple[float, float] | None = None
    max_weight: float | None = None
    max_exposure: float | None = None


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


@dataclass(frozen=True)
class PrivateRecords:
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
    """

    design: LocalDesign
    target: Floats
    offset: Floats | None = None
    shares: Floats | None = None

    def check_selections(self, releases: Iterable[object], source: str) -> None:
        """Refuse, before the charge, so many records that the scores of a selection could wrap.

        Sums wrap around harmlessly where noise is added; where they are compared they must not.
        Under replace-one the number of records is the declared one, and grids leave room for it.
        """
        for release in releases:
            if not isinstance(release, SelectionRelease | PeelingRelease):
                continue
            largest = self.design.n_rows * release.sensitivity.add_remove * release.unit
            if largest >= 2**62:
                raise _too_many(source)

    def check_minimisers(self, releases: Iterable[object], grid: Grid, source: str) -> None:
        """Refuse, before the charge, so many records that none is found as near as was charged."""
        for release in releases:
            if not isinstance(release, MinimiserRelease):
                continue
            objective, n_rows = release.objective, self.design.n_rows
            if not reaches(objective, grid, n_rows, release.bits, release.radius):
                raise _too_many(source)

    def check_memory(self, quantities: Iterable[Quantity], n_scores: int) -> None:
        """Run out of memory now rather than after the charge, where a step's arrays tell.

        Nothing is touched, so asking takes no time. Steps on screened columns are not foreseen.
        """
        np.empty((_ARRAYS, self.design.n_rows, n_scores))
        if any(quantity in _OVER_ALL_COLUMNS for quantity in quantities):
            np.empty((_ARRAYS, self.design.n_features + 1, n_scores))


def _too_many(source: str) -> DataError:
    return DataError(
        "holds far more records than declared",
        path=source,
        hint="this algorithm needs --n-rows, or rows of the schema, to be about right",
    )


class RecordCollector:
    """Takes blocks as they are read and ends with private records and public facts.

    Parameters
    ----------
    grid : Grid
        The record map at its finest; coarsened when the number of records asks for it.
    declared : DeclaredFacts
        What the user said.
    facts : PublicFacts
        Grows by what was declared or assumed here; refuses assumptions in a strict run.
    source : str
        What to call the input in messages.

    Attributes
    ----------
    index_base : int
        Number of the first column, once the shape is settled.
    max_exposure : float
        The exposure that offsets of counts are relative to.
    """

    def __init__(
        self, grid: Grid, declared: DeclaredFacts, facts: PublicFacts, source: str
    ) -> None:
        self._builder = DesignBuilder(grid)
        self._declared = declared
        self._facts = facts
        self._source = source
        self._targets: list[Target] = []
        self._offsets: list[Floats] = []
        self.max_exposure = 1.0
        self._weights: list[Floats] = []

    def collect(self, blocks: Iterable[RowBlock]) -> None:
        """Quantise every block; its floats are not kept."""
        for block in blocks:
            self._builder.add(block)
            if block.target is None:
                raise DataError("holds no target", path=self._source)
            self._targets.append(block.target)
            if block.offset is not None:
                self._offsets.append(block.offset)
            if block.weight is not None:
                self._weights.append(block.weight)

    def settle_shape(self, adjacency: Adjacency, layout: Layout) -> None:
        """Fix the public shape and the numbering of the columns.

        Parameters
        ----------
        adjacency : Adjacency
            Under replace-one the number of rows is public and must be what was declared.
        layout : Layout
            What the format fixes.
        """
        self._settle_rows(adjacency)
        lowest, highest = self._builder.column_range()
        base, origin = layout.index_base, Origin.DEFAULT
        said = self._declared.index_base
        if said is not None:
            if base not in (None, said):
                raise UsageError(f"--index-base {said}: columns of this input count from {base}")
            base, origin = said, Origin.DECLARED
        elif base is None:
            base, origin = (0 if lowest == 0 and highest >= 0 else 1), Origin.ASSUMED
        if lowest < base and highest >= 0:
            raise DataError(f"has a column before number {base}, the first", path=self._source)
        self.index_base = base
        self._add("index_base", base, origin, "--index-base")
        self._settle_features(highest + 1 - base, layout)

    def _settle_rows(self, adjacency: Adjacency) -> None:
        found, said = self._builder.n_rows, self._declared.n_rows
        if said is not None and said != found and adjacency is Adjacency.REPLACE_ONE:
            raise DataError(
                "does not hold the declared number of records",
                path=self._source,
                hint="correct --n-rows or the schema, or use --adjacency add-remove, where the "
                "number is only a divisor",
            )
        self._declare_or_assume("rows", said, found, "--n-rows")

    def _settle_features(self, found: int, layout: Layout) -> None:
        named = layout.n_features
        if named is not None:
            # Names, levels and hash width stand outside the records: neighbours share them.
            if self._declared.n_features not in (None, named):
                raise DataError(
                    f"its columns and levels make {named} features, not the declared number",
                    path=self._source,
                )
            origin = Origin.DEFAULT if layout.outside_records else Origin.ASSUMED
            if self._declared.n_features is not None:
                origin = Origin.DECLARED
            self._add("features", named, origin, "--n-features")
            return
        said = self._declared.n_features
        if said is None and found < 1:
            raise DataError("has no column with an entry", path=self._source)
        if said is not None and found > said:
            raise DataError(
                "has a column beyond the declared --n-features",
                path=self._source,
                hint="correct --n-features or the schema, or see --index-base",
            )
        self._declare_or_assume("features", said, found, "--n-features")

    def _declare_or_assume(self, name: str, said: int | None, found: int, option: str) -> None:
        if said is None:
            self._add(name, found, Origin.ASSUMED, option)
        else:
            self._add(name, said, Origin.DECLARED, option)

    def infer_loss(self) -> str:
        """By the labels or the range declared, or else by the values of the target.

        Two values are classes, more than two texts as well; more than two numbers are values.
        """
        declared = self._declared
        if declared.labels is not None:
            return "logistic" if len(declared.labels) == _TWO else "multinomial"
        if declared.target_range is not None:
            return "squared"
        found = self._distinct_labels(_TWO + 1)
        if len(found) <= _TWO:
            return "logistic"
        return "multinomial" if isinstance(found[0], str) else "squared"

    def settle_labels(self, loss: str, positive: Label | None) -> tuple[Label, ...]:
        """The labels, declared or assumed; of two the negative one first.

        Parameters
        ----------
        loss : str
            ``logistic``, for two labels, or ``multinomial``.
        positive : label or None
            The positive class of two, where the user named it; the larger label otherwise.
        """
        if self._declared.labels is not None:
            labels, origin = list(self._declared.labels), Origin.DECLARED
        else:
            labels, origin = self._distinct_labels(_MOST_CLASSES + 1), Origin.ASSUMED
        self._check_number(len(labels), loss)
        if positive is not None:
            if positive not in labels or len(labels) != _TWO:
                raise UsageError("--positive-label is not one of two labels")
            labels = [label for label in labels if label != positive] + [positive]
        self._facts.add(PublicFact("labels", list(labels), origin, "--labels"))
        return tuple(labels)

    def _check_number(self, n_labels: int, loss: str) -> None:
        if loss == "logistic" and n_labels != _TWO:
            raise DataError(
                "its target does not have exactly two values",
                path=self._source,
                hint="choose --loss multinomial for more classes, --loss squared for a real target",
            )
        if not _TWO <= n_labels <= _MOST_CLASSES:
            raise DataError(
                f"its target does not have 2 to {_MOST_CLASSES} values",
                path=self._source,
                hint="declare the classes with --labels",
            )

    def class_target(self, classes: tuple[Label, ...]) -> Floats:
        """Targets as the numbers of their classes, from 0."""
        return np.concatenate([self._codes(target, classes) for target in self._targets])

    def _codes(self, target: Target, classes: tuple[Label, ...]) -> Floats:
        codes = np.full(len(target), -1.0)
        for code, label in enumerate(classes):
            codes[np.asarray(target == label)] = code
        if np.any(codes < 0.0):
            raise DataError(  # readers check declared labels and tell the line: a backstop
                "has a label that is not among the declared ones",
                path=self._source,
                hint="correct --labels or the schema (case and blanks matter)",
            )
        return codes

    def settle_range(self, loss: str) -> tuple[float, float]:
        """Bounds of a real target, declared or assumed; counts begin at zero."""
        if any(target.dtype == object for target in self._targets):
            raise DataError(
                "its target is text, not a number",
                path=self._source,
                hint="choose --loss logistic or multinomial for textual labels",
            )
        bounds, origin = self._declared.target_range, Origin.DECLARED
        if bounds is None:
            low = min(float(target.min()) for target in self._targets)
            high = max(float(target.max()) for target in self._targets)
            if low == high:
                raise PrivacyError(
                    "the range of the target cannot be assumed: all targets are equal",
                    hint="declare it with --target-range LOW HIGH",
                )
            if not math.isfinite(high - low):
                raise PrivacyError(
                    "the range of the target cannot be assumed: it is wider than numbers go",
                    hint="declare it with --target-range LOW HIGH",
                )
            if loss == "poisson" and low < 0.0:
                raise DataError("has a negative count", path=self._source)
            bounds = (0.0, high) if loss == "poisson" else (low, high)
            origin = Origin.ASSUMED
        self._facts.add(PublicFact("target_range", list(bounds), origin, "--target-range"))
        return bounds

    def real_target(self, bounds: tuple[float, float]) -> Floats:
        """Targets clipped to their public range and mapped to [0, 1], each by itself."""
        low, high = bounds
        y = np.concatenate(self._targets).astype(np.float64)
        with np.errstate(over="ignore"):  # a target of 1e308 is clipped like any other
            mapped = (y - low) / (high - low)
        return np.fmin(np.fmax(mapped, 0.0), 1.0)

    def _distinct_labels(self, enough: int) -> list[Label]:
        found: set[Label] = set()
        for target in self._targets:
            found.update(np.unique(target).tolist())
            if len(found) >= enough:
                break
        if any(isinstance(label, str) for label in found):
            return sorted(map(str, found))
        return sorted(found)

    def build(self, target: Floats, grid: Grid, threads: int) -> PrivateRecords:
        """The records on ``grid``, which is as fine as the collector's or coarser."""
        offset, shares = self._settle_offset(), self._settle_shares()
        design = self._builder.build(
            self._facts.integer("features"),
            grid=grid,
            index_base=self.index_base,
            threads=threads,
        )
        return PrivateRecords(design, target, offset, shares)

    def _settle_offset(self) -> Floats | None:
        """Offsets; those of counts below the largest exposure's, which cuts them."""
        if not self._offsets:
            return None
        offset = np.concatenate(self._offsets)
        if self._facts["loss"].value != "poisson":
            return offset
        largest, origin = self._declared.max_exposure, Origin.DECLARED
        if largest is None:
            within = np.clip(offset.max(), -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
            largest = math.exp(float(within))
            origin = Origin.ASSUMED
        self.max_exposure = largest
        self._facts.add(PublicFact("max_exposure", self.max_exposure, origin, "--max-exposure"))
        return np.fmin(offset - math.log(self.max_exposure), 0.0)

    def _settle_shares(self) -> Floats | None:
        """Weights over their public maximum, which cuts them."""
        if not self._weights:
            return None
        weights = np.concatenate(self._weights)
        largest, origin = self._declared.max_weight, Origin.DECLARED
        if largest is None:
            largest, origin = float(weights.max()), Origin.ASSUMED
            if largest == 0.0:
                raise DataError("gives every record the weight zero", path=self._source)
        self._facts.add(PublicFact("max_weight", largest, origin, "--max-weight"))
        return np.fmin(weights, largest) / largest

    def _add(self, name: str, value: int, origin: Origin, option: str) -> None:
        self._facts.add(PublicFact(name, value, origin, option))
