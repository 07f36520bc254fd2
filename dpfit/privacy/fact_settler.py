"""The one place where public facts are read off the data.

What it reads off is listed as *assumed*; what the user declared is enforced instead.
"""

from __future__ import annotations

import math
from typing import Final

from dpfit.errors import DataError, PrivacyError, UsageError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.owner_release import OwnerRule
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.summary import MOST_CLASSES, Label, Summary

_TWO: Final = 2
_LARGEST_EXPONENT: Final = 700.0  # e to it, and to its negative, is finite and not zero


def rows_fact(
    found: int, said: int | None, adjacency: Adjacency, source: str, *, exact: bool = True
) -> PublicFact:
    """The public number of rows, declared or assumed.

    Parameters
    ----------
    found : int
        Read off the data.
    said : int or None
        Declared.
    adjacency : Adjacency
        Under replace-one what was declared must be so.
    source : str
        What to call the input in messages.
    exact : bool
        Whether it is the number that replace-one leaves as it is.

    Raises
    ------
    DataError
        The declared number is another.
    """
    if said is None:
        return PublicFact("rows", found, Origin.ASSUMED, "--n-rows")
    if exact and said != found and adjacency is Adjacency.REPLACE_ONE:
        raise DataError(
            "does not hold the declared number of records",
            path=source,
            hint="correct --n-rows or the schema, or use --adjacency add-remove, where the "
            "number is only a divisor",
        )
    return PublicFact("rows", said, Origin.DECLARED, "--n-rows")


class FactSettler:
    """Fixes the public facts about collected records: as declared, or else assumed.

    Parameters
    ----------
    summary : Summary
        What was read off the records.
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
    """

    def __init__(
        self, summary: Summary, declared: DeclaredFacts, facts: PublicFacts, source: str
    ) -> None:
        self._summary = summary
        self._declared = declared
        self._facts = facts
        self._source = source

    def settle_owners(self, adjacency: Adjacency, rule: OwnerRule) -> None:
        """The number of privacy units, declared or assumed.

        Parameters
        ----------
        adjacency : Adjacency
            Under replace-one that number is public and must be what was declared.
        rule : OwnerRule
            Its numbers are public as well.
        """
        found, said = self._summary.n_owners, self._declared.n_owners
        assert found is not None
        if said is not None and said != found and adjacency is Adjacency.REPLACE_ONE:
            raise DataError(
                "does not hold the declared number of units",
                path=self._source,
                hint="correct --n-units, or use --adjacency add-remove",
            )
        self._declare_or_assume("units", said, found, "--n-units")
        self._add("max_rows_per_unit", rule.max_rows, Origin.DECLARED, "--max-rows-per-unit")

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
        lowest, highest = self._summary.columns
        base, origin = layout.index_base, Origin.DEFAULT
        said = self._declared.index_base
        if said is not None:
            if base not in (None, said):
                raise UsageError(f"--index-base {said}: columns of this input count from {base}")
            base, origin = said, Origin.DECLARED
        elif base is None:
            base, origin = (0 if lowest == 0 and highest >= 0 else 1), Origin.ASSUMED
        if lowest < base and highest >= 0:
            raise DataError(
                f"has a column before number {base}, the first",
                path=self._source,
                hint="columns that count from 0 need --index-base 0",
            )
        self.index_base = base
        self._add("index_base", base, origin, "--index-base")
        self._settle_features(highest + 1 - base, layout)

    def _settle_rows(self, adjacency: Adjacency) -> None:
        found, said = self._summary.n_rows, self._declared.n_rows
        whole = self._summary.n_owners is None  # of units the number is public, not of their rows
        self._facts.add(rows_fact(found, said, adjacency, self._source, exact=whole))

    def _settle_features(self, found: int, layout: Layout) -> None:
        named = layout.n_features
        if named is not None:
            # Names, levels and hash width stand outside the records: neighbours share them.
            if self._declared.n_features not in (None, named):
                raise DataError(
                    f"its columns and levels make {named} features, not the declared number",
                    path=self._source,
                    hint="correct --n-features or the schema, or leave it out",
                )
            origin = Origin.DEFAULT if layout.outside_records else Origin.ASSUMED
            if self._declared.n_features is not None:
                origin = Origin.DECLARED
            self._add("features", named, origin, "--n-features")
            return
        said = self._declared.n_features
        if said is None and found < 1:
            raise DataError(
                "has no column with an entry",
                path=self._source,
                hint="is it the right file? --n-features declares columns that may be empty",
            )
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

    def infer_loss(self, *, of_classes: bool = False) -> str:
        """By the labels or the range declared, or else by the values of the target.

        Two values are classes, more than two texts as well; more than two numbers are values,
        unless ``of_classes`` says that they are classes too.
        """
        declared = self._declared
        if declared.labels is not None:
            return "logistic" if len(declared.labels) == _TWO else "multinomial"
        if declared.target_range is not None:
            return "squared"
        if len(self._summary.labels) <= _TWO:
            return "logistic"
        return "multinomial" if of_classes or self._summary.textual else "squared"

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
            labels, origin = list(self._summary.labels), Origin.ASSUMED
        self._check_number(len(labels), loss)
        if positive is not None:
            if positive not in labels or len(labels) != _TWO:
                raise UsageError(
                    "--positive-label is not one of two labels",
                    hint="it names one of the --labels, spelt as there; more than two have none",
                )
            labels = [label for label in labels if label != positive] + [positive]
        self._facts.add(PublicFact("labels", list(labels), origin, "--labels"))
        return tuple(labels)

    def _check_number(self, n_labels: int, loss: str) -> None:
        if n_labels == 1 and loss in ("logistic", "multinomial"):
            raise DataError(
                "its target is the same in every record",
                path=self._source,
                hint="is it the right column? --labels declares classes that may be absent",
            )
        if loss == "logistic" and n_labels != _TWO:
            raise DataError(
                "its target does not have exactly two values",
                path=self._source,
                hint="choose --loss multinomial or squared, or declare --labels to find the line",
            )
        if not _TWO <= n_labels <= MOST_CLASSES:
            raise DataError(
                f"its target does not have 2 to {MOST_CLASSES} values",
                path=self._source,
                hint="declare the classes with --labels",
            )

    def settle_range(self, loss: str) -> tuple[float, float]:
        """Bounds of a real target, declared or assumed; counts begin at zero."""
        if self._summary.target_range is None:
            raise DataError(
                "its target is text, not a number",
                path=self._source,
                hint="choose --loss logistic or multinomial for textual labels",
            )
        bounds, origin = self._declared.target_range, Origin.DECLARED
        if bounds is None:
            low, high = self._summary.target_range
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
                raise DataError(
                    "has a negative count",
                    path=self._source,
                    hint="is it the right column? --loss squared takes numbers below zero",
                )
            bounds = (0.0, high) if loss == "poisson" else (low, high)
            origin = Origin.ASSUMED
        self._facts.add(PublicFact("target_range", list(bounds), origin, "--target-range"))
        return bounds

    def _add(self, name: str, value: int, origin: Origin, option: str) -> None:
        self._facts.add(PublicFact(name, value, origin, option))

    def settle_exposure(self, loss: str) -> float | None:
        """The largest exposure, which the scores of counts are for; None without offsets."""
        offset = self._summary.offset
        if offset is None or loss != "poisson":
            return None
        largest, origin = self._declared.max_exposure, Origin.DECLARED
        if largest is None:
            largest = math.exp(min(max(offset, -_LARGEST_EXPONENT), _LARGEST_EXPONENT))
            origin = Origin.ASSUMED
        self._facts.add(PublicFact("max_exposure", largest, origin, "--max-exposure"))
        return largest

    def settle_weight(self) -> float | None:
        """The largest weight; None without weights."""
        found = self._summary.weight
        if found is None:
            return None
        largest, origin = self._declared.max_weight, Origin.DECLARED
        if largest is None:
            largest, origin = found, Origin.ASSUMED
            if largest == 0.0:
                raise DataError(
                    "gives every record the weight zero",
                    path=self._source,
                    hint="is it the right column? see --weight",
                )
        self._facts.add(PublicFact("max_weight", largest, origin, "--max-weight"))
        return largest
