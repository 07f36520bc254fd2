"""What the caller declares about an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpfit.data.attributes import ATTRIBUTES
from dpfit.data.features import FeatureMap
from dpfit.data.indices import MAX_HASH_BITS, MAX_INDEX, IndexRules
from dpfit.data.schema import SINGLE_ROLES, ColumnRole, one_line
from dpfit.data.transcode import is_utf8
from dpfit.errors import UsageError


@dataclass(frozen=True)
class ReadOptions:
    """Declared facts and choices for reading; checked when made.

    Attributes
    ----------
    format : str
        ``auto`` (by extension), ``libsvm``, ``csv``, ``tsv`` or ``parquet``.
    label : str, optional
        Label column by name, or by number from 1 when there is no header.
    weight, offset, exposure : str, optional
        Columns of the record's attributes, named like ``label``; each is then required. When
        ``predicting`` the weight column may be absent and is not read.
    unit : str, optional
        Column of the privacy unit that a record belongs to, named like ``label``; in LIBSVM
        ``qid``.
    delimiter : str, optional
        Field separator of CSV; ``tab`` is understood.
    header : bool
        Whether the first record names the columns; else they are ``c1``, ``c2``, ...
    encoding : str
        Of CSV and TSV.
    index_base : int, optional
        0 or 1 for sparse formats; None if not declared: raw indices come back.
    n_features : int, optional
        Declared width of sparse formats.
    duplicates : str
        Repeated index in a row: ``error``, ``sum`` or ``last``.
    missing : str
        Empty or NaN cell of a table: ``error`` or ``zero``.
    hash_bits : int, optional
        Fold sparse indices, or hash text columns, into ``2**hash_bits`` features.
    columns : mapping of str to ColumnRole
        Roles of table columns; numeric if not named.
    na : tuple of str
        Texts of table cells that count as empty; a feature map brings its own.
    feature_map : FeatureMap, optional
        That of the model, at prediction: columns are matched by name.
    predicting : bool
        Whether a model rules the columns: ``feature_map``, or numbered ones if that is None.
    target_required : bool
        False lets an input have no labels at all; the label column of a table is then not read.
    ignore_new_features : bool
        Drop what is beyond ``n_features`` or not in ``feature_map``.
    labels : tuple, optional
        The labels that may occur, all text or all numbers; None allows all.
    textual_labels : bool, optional
        Whether labels of a table are text; None if ``labels`` tells, or nobody.
    threads : int
        The rows do not depend on it.
    """

    format: str = "auto"
    label: str | None = None
    weight: str | None = None
    offset: str | None = None
    exposure: str | None = None
    unit: str | None = None
    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"
    index_base: int | None = None
    n_features: int | None = None
    duplicates: str = "error"
    missing: str = "error"
    hash_bits: int | None = None
    columns: Mapping[str, ColumnRole] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    feature_map: FeatureMap | None = None
    predicting: bool = False
    target_required: bool = True
    ignore_new_features: bool = False
    labels: tuple[float, ...] | tuple[str, ...] | None = None
    textual_labels: bool | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        check_choice("--duplicates", self.duplicates, ("error", "sum", "last"))
        check_choice("--missing", self.missing, ("error", "zero"))
        check_within("--index-base", self.index_base, 0, 1)
        check_within("the number of features", self.n_features, 1, MAX_INDEX)
        check_within("--hash-bits", self.hash_bits, 1, MAX_HASH_BITS)
        check_within("--threads", self.threads, 1, 4096)
        is_utf8(self.encoding)
        self._check_apart()

    def _check_apart(self) -> None:
        role_of: dict[str, str] = {}
        for role in SINGLE_ROLES:
            name = self.column_of(role)
            if name in role_of:
                raise UsageError(
                    f"column '{one_line(name)}' cannot be both the {role_of[name]} and the {role}"
                )
            if name is not None:
                role_of[name] = role

    @property
    def textual(self) -> bool | None:
        """Whether labels are text, by declaration; None if nothing is declared."""
        if self.textual_labels is None and self.labels:
            return isinstance(self.labels[0], str)
        return self.textual_labels

    def column_of(self, role: str) -> str | None:
        """Name of the column of a single role, from the option of that name or by its role."""
        named: str | None = getattr(self, role)
        if named is None:
            by_role = [name for name, column in self.columns.items() if column.role == role]
            return by_role[0] if by_role else None
        return named if self.header else numbered_name(named)

    @property
    def label_column(self) -> str | None:
        """Name of the label column, from ``label`` or a column with that role."""
        return self.column_of("label")

    @property
    def unit_column(self) -> str | None:
        """Name of the column of privacy units, which is read when fitting alone."""
        return self.column_of("unit")

    @property
    def attribute_columns(self) -> dict[str, str]:
        """Names of the attribute columns by role: what is no feature."""
        found = {role: self.column_of(role) for role in ATTRIBUTES}
        return {role: name for role, name in found.items() if name is not None}

    @property
    def required_attributes(self) -> dict[str, str]:
        """`attribute_columns` without those that prediction does not read."""
        unread = "weight" if self.predicting else None
        return {role: name for role, name in self.attribute_columns.items() if role != unread}

    def required_label(self) -> str | None:
        """`label_column`; a table needs one if labels are required."""
        label = self.label_column
        if label is None and self.target_required:
            raise UsageError("the label column is not named", hint="name it with --label")
        return label

    @property
    def index_rules(self) -> IndexRules:
        """The rules for sparse formats."""
        return IndexRules(
            base=self.index_base,
            n_features=self.n_features,
            duplicates=self.duplicates,
            hash_bits=self.hash_bits,
            ignore_new=self.ignore_new_features,
            predicting=self.predicting,
        )


def numbered_name(named: str) -> str:
    """Name of a column of a file without a header that the user gave by its number, from 1."""
    return f"c{int(named[:9])}" if named.isascii() and named.isdigit() else named


def check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not among those allowed."""
    if value not in allowed:
        raise UsageError(f"{option} is one of {', '.join(allowed)}")


def check_within(option: str, value: int | None, low: int, high: int) -> None:
    """Refuse a number out of range; None is not given."""
    if value is not None and not low <= value <= high:
        raise UsageError(f"{option} must be between {low} and {high}")
