"""From the column names of a table to its feature map, the same for every file of an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpfit.data.features import FeatureMap
from dpfit.data.options import ReadOptions
from dpfit.errors import DataError


@dataclass(frozen=True)
class MatchedColumns:
    """The columns of one file.

    Attributes
    ----------
    feature_map : FeatureMap
    positions : tuple of int
        Place in the file of each column of the map.
    label : int, optional
        Place of the label column.
    """

    feature_map: FeatureMap
    positions: tuple[int, ...]
    label: int | None


class TableColumns:
    """Settles the feature map by the first file and holds the others to it.

    Parameters
    ----------
    options : ReadOptions
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._label = options.required_label()
        self._labelled: bool | None = None
        self._fitted = options.feature_map is None
        self.feature_map = options.feature_map

    def label_position(self, names: Sequence[str], path: str) -> int | None:
        """Where the label column is; None if there is none and none is needed."""
        present = self._label is not None and self._label in names
        if self._options.target_required and not present:
            raise DataError(
                "the label column is not among the columns",
                path=path,
                hint=f"--label names it; the file has {len(names)} columns",
            )
        if self._labelled not in (None, present):
            raise DataError("this file and the first differ in having a label column", path=path)
        self._labelled = present
        return list(names).index(str(self._label)) if present else None

    def match(self, names: Sequence[str], path: str) -> MatchedColumns:
        """Match the columns ``names`` of the file ``path``.

        Raises
        ------
        DataError
            The columns are not those of the model or of the first file.
        """
        label = self.label_position(names, path)
        others = [name for i, name in enumerate(names) if i != label]
        if self.feature_map is None:
            roles, bits = self._options.columns, self._options.hash_bits
            self.feature_map = FeatureMap.build(names, roles, self._label, bits)
        ignore_new = self._options.ignore_new_features and not self._fitted
        self.feature_map.match(others, path=path, ignore_new=ignore_new)
        place = {name: i for i, name in enumerate(names)}
        positions = tuple(place[column.name] for column in self.feature_map.columns)
        return MatchedColumns(self.feature_map, positions, label)
