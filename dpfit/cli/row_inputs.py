"""From what is said about an input of rows to a reader and declared facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpfit.cli.reading import read_options
from dpfit.data.reader import Reader
from dpfit.data.schema import Schema
from dpfit.errors import UsageError
from dpfit.privacy.declared_facts import DeclaredFacts, Layout
from dpfit.privacy.summary import Label

if TYPE_CHECKING:
    from dpfit.cli.row_options import RowOptions


@dataclass(frozen=True)
class RowInputs:
    """An input of rows with targets, not read yet.

    Attributes
    ----------
    reader : Reader
        Opened when iterated.
    schema : Schema
        The file's, or an empty one.
    declared : DeclaredFacts
        By options and schema.
    positive_label : label or None
        Asked for.
    exposed : bool
        Whether records have an offset or exposure.
    """

    reader: Reader
    schema: Schema
    declared: DeclaredFacts
    positive_label: Label | None
    exposed: bool

    @classmethod
    def from_options(cls, options: RowOptions, paths: list[str]) -> RowInputs:
        """Resolve options and schema; reads no data.

        Raises
        ------
        UsageError, StorageError
            Something is missing, contradicts itself or does not exist.
        """
        schema = Schema.from_file(options.schema) if options.schema else Schema()
        declared = _declared(options, schema)
        reading = read_options(options, schema, declared)
        attributes = reading.attribute_columns.keys()
        exposed = bool({"offset", "exposure"} & attributes)
        if declared.max_weight is not None and "weight" not in attributes:
            raise UsageError("--max-weight needs a --weight column")
        if declared.max_exposure is not None and not exposed:
            raise UsageError("--max-exposure needs an --exposure or --offset column")
        return cls(
            reader=Reader(paths, reading),
            schema=schema,
            declared=declared,
            positive_label=_positive_label(options.positive_label, declared.labels),
            exposed=exposed,
        )

    def layout(self) -> Layout:
        """What the format fixes about the columns, once all was read."""
        columns, options = self.reader.feature_map, self.reader.options
        n_features = columns.n_features if columns is not None else None
        if columns is None and options.hash_bits is not None:
            n_features = 1 << options.hash_bits
        headless = self.reader.format in ("csv", "tsv") and not options.header
        return Layout(n_features, self.reader.index_base, outside_records=not headless)


def _declared(options: RowOptions, schema: Schema) -> DeclaredFacts:
    labels = _labels(options.labels) if options.labels is not None else schema.labels
    if labels is not None and (len(labels) < 2 or len(set(labels)) != len(labels)):
        raise UsageError("the label set must be two or more different labels")
    target_range = options.target_range or schema.target_range
    return DeclaredFacts(
        n_rows=options.n_rows if options.n_rows is not None else schema.rows,
        n_features=options.n_features if options.n_features is not None else schema.features,
        index_base=_index_base(options.index_base, schema.index_base),
        labels=labels,
        target_range=target_range,
        max_weight=options.max_weight,
        max_exposure=options.max_exposure,
        n_owners=options.n_units,
    )


def _labels(text: str) -> tuple[Label, ...]:
    """``-1,1`` as numbers when every part is one, else as texts."""
    parts = [part.strip() for part in text.split(",")]
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        return tuple(parts)


def _positive_label(text: str | None, labels: tuple[Label, ...] | None) -> Label | None:
    if text is None or (labels is not None and isinstance(labels[0], str)):
        return text
    return _labels(text)[0]


def _index_base(option: str, schema: int | None) -> int | None:
    if option == "auto":
        return schema
    if option not in ("0", "1"):
        raise UsageError("--index-base must be 0, 1 or auto")
    return int(option)
