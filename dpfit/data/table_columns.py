"""From the column names of a table to its feature map, the same for every file of an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpfit.data.attributes import AttributeColumn
from dpfit.data.features import FeatureMap
from dpfit.data.options import ReadOptions
from dpfit.data.owners import OwnerColumn
from dpfit.data.schema import ColumnRole, one_line
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
        Place of the label column, if it is to be read.
    attributes : tuple of AttributeColumn
        Those to be read.
    owner : OwnerColumn, optional
        That of the privacy units.
    """

    feature_map: FeatureMap
    positions: tuple[int, ...]
    label: int | None
    attributes: tuple[AttributeColumn, ...]
    owner: OwnerColumn | None = None


class TableColumns:
    """Settles the feature map by the first file and holds the others to it.

    Parameters
    ----------
    options : ReadOptions
    delimiter : bytes, optional
        Of a text format; None for one that stores names apart from records.
    """

    def __init__(self, options: ReadOptions, delimiter: bytes | None = None) -> None:
        self._options = options
        self._delimiter = delimiter
        self._label = options.required_label()
        self._fitted = options.feature_map is None
        self.feature_map = options.feature_map

    @property
    def declared_names(self) -> set[str]:
        """Names of columns that stand outside the input: in the schema or in the model."""
        model = self._options.feature_map
        return set(self._options.columns) | (set() if model is None else model.known)

    def label_position(self, names: Sequence[str], path: str) -> int | None:
        """Where the label column is; None if there is none and none is needed."""
        present = self._label is not None and self._label in names
        if self._options.target_required and not present:
            raise DataError(
                "the label column is not among the columns",
                path=path,
                hint=self._one_name_hint(names) or self._label_hint(len(names)),
            )
        return list(names).index(str(self._label)) if present else None

    def attributes(self, names: Sequence[str], path: str) -> tuple[AttributeColumn, ...]:
        """The attribute columns to be read; one that is not there is an error that names it."""
        required = self._options.required_attributes
        for role, name in required.items():
            if name not in names:
                raise DataError(
                    f"the {role} column '{one_line(name)}' is not among the columns",
                    path=path,
                    hint=self._one_name_hint(names),
                )
        return tuple(
            AttributeColumn(role, name, list(names).index(name)) for role, name in required.items()
        )

    def owner(self, names: Sequence[str], path: str) -> OwnerColumn | None:
        """The column of privacy units; one that is not there is an error that names it."""
        name = self._options.unit_column
        if name is None:
            return None
        if name not in names:
            raise DataError(
                f"the unit column '{one_line(name)}' is not among the columns",
                path=path,
                hint=self._one_name_hint(names) or "name it with --unit, or see --no-header",
            )
        return OwnerColumn(name, list(names).index(name))

    def _label_hint(self, n_columns: int) -> str:
        if self._delimiter is None:
            way = "name it with --label"
        elif self._options.header:
            way = "name it with --label, or see --no-header"
        else:
            way = "without a header --label is its number, from 1"
        return f"{way}; the file has {n_columns} columns"

    def _one_name_hint(self, names: Sequence[str]) -> str | None:
        if self._delimiter is None or not self._options.header or len(names) != 1:
            return None
        what = {b",": "comma", b"\t": "tab"}.get(self._delimiter, "such delimiter")
        return f"the header has no {what}: see --delimiter"

    def _absent_hint(self, names: Sequence[str]) -> str | None:
        """What to do where no expected column is there."""
        if self._delimiter is None:
            return None
        if not self._options.header:
            return "the columns have names: leave --no-header out"
        return self._one_name_hint(names) or "see --no-header"

    def match(self, names: Sequence[str], path: str) -> MatchedColumns:
        """Match the columns ``names`` of the file ``path``.

        Raises
        ------
        DataError
            The columns are not those of the model or of the first file.
        """
        label = self.label_position(names, path)
        owner = self.owner(names, path)
        beside = self._options.attribute_columns
        if owner is not None:
            beside["unit"] = owner.name
        others = [
            name for i, name in enumerate(names) if i != label and name not in beside.values()
        ]
        if self.feature_map is None:
            bits, na = self._options.hash_bits, self._options.na
            roles = dict(self._options.columns)
            roles.update((name, ColumnRole(role)) for role, name in beside.items())
            self.feature_map = FeatureMap.build(names, roles, self._label, bits, na)
        self.feature_map.check_names(
            others,
            path=path,
            ignore_new=self._options.ignore_new_features and not self._fitted,
            absent_hint=self._absent_hint(names),
        )
        place = {name: i for i, name in enumerate(names)}
        positions = tuple(place[column.name] for column in self.feature_map.columns)
        read = label if self._options.target_required else None
        attributes = self.attributes(names, path)
        return MatchedColumns(self.feature_map, positions, read, attributes, owner)
