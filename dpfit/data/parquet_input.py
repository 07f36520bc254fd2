"""Parquet inputs: finds the file's layout, spools what cannot seek."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import IO, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from dpfit.data.features import FeatureMap
from dpfit.data.options import ReadOptions
from dpfit.data.parquet import ParquetPlan, read_parquet
from dpfit.data.parquet_columns import (
    check_attribute,
    check_owner,
    check_types,
    is_number,
    is_text,
    nested_fault,
    sparse_layout,
)
from dpfit.data.parquet_file import fields_of, open_parquet, seekable
from dpfit.data.rows import RowBlock
from dpfit.data.schema import SINGLE_ROLES
from dpfit.data.table_columns import TableColumns
from dpfit.errors import DataError


class ParquetInput:
    """Parquet files.

    Parameters
    ----------
    options : ReadOptions
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._columns = TableColumns(options)
        self._textual = options.textual
        self._sparse: bool | None = None

    @property
    def feature_map(self) -> FeatureMap | None:
        return self._columns.feature_map

    def open(self, path: str, stdin: BinaryIO | None) -> Iterator[RowBlock]:
        source = seekable(path, stdin)
        try:
            file = open_parquet(source, path)
            plan = self._plan(file, path)
        except BaseException:
            source.close()
            raise
        return self._rows(source, file, path, plan)

    def _rows(
        self, source: IO[bytes], file: pq.ParquetFile, path: str, plan: ParquetPlan
    ) -> Iterator[RowBlock]:
        with closing(source):
            yield from read_parquet(file, source, path, plan, self._options.threads)

    def _plan(self, file: pq.ParquetFile, path: str) -> ParquetPlan:
        fields = fields_of(file, path)
        names = [field.name for field in fields]
        label = self._columns.label_position(names, path)
        attributes = self._columns.attributes(names, path)
        owner = self._columns.owner(names, path)
        others = [field for i, field in enumerate(fields) if i != label and self._is_used(field)]
        if self._numbered and self._options.ignore_new_features:
            others = [field for field in others if pa.types.is_nested(field.type)]
        # A model of a table matches columns by name, whatever their types look like.
        layout = None if self._options.feature_map is not None else sparse_layout(others)
        if layout is None:
            self._refuse_columns(others, path)
        if self._sparse not in (None, layout is not None):
            raise DataError("this file and the first differ in their layout", path=path)
        for column in attributes:
            check_attribute(fields[column.position], column.role, path)
        if owner is not None:
            check_owner(fields[owner.position], path)
        self._sparse = layout is not None
        rules = self._options.index_rules
        if rules.base is None:
            rules = replace(rules, base=0)
        if not self._options.target_required:
            label = None
        return ParquetPlan(
            features=layout or self._wide(fields, names, path),
            rules=rules,
            label=None if label is None else names[label],
            textual=label is not None and self._is_textual(fields[label], path),
            missing=self._options.missing,
            labels=self._options.labels,
            predicting=self._options.predicting,
            attributes=attributes,
            owner=owner,
        )

    @property
    def _numbered(self) -> bool:
        """Whether a model of numbered columns rules: only sparse rows have those."""
        return self._options.predicting and self._options.feature_map is None

    def _refuse_columns(self, others: list[pa.Field], path: str) -> None:
        if self._options.feature_map is not None:
            return
        fault = nested_fault(others, path, predicting=self._options.predicting)
        if fault is not None:
            raise fault
        if self._numbered:
            raise DataError(
                "its columns have names, the model was fitted to numbered columns",
                path=path,
                hint="give a LIBSVM file, or Parquet with lists of indices and values",
            )

    def _is_used(self, field: pa.Field) -> bool:
        options = self._options
        if field.name in (*options.attribute_columns.values(), options.unit_column):
            return False
        role = self._options.columns.get(field.name)
        return role is None or role.role not in ("ignore", *SINGLE_ROLES)

    def _wide(self, fields: list[pa.Field], names: list[str], path: str) -> FeatureMap:
        matched = self._columns.match(names, path)
        found = zip(matched.feature_map.columns, matched.positions, strict=True)
        roles = [(fields[position], column.role) for column, position in found]
        check_types(roles, path, predicting=self._options.predicting)
        return matched.feature_map

    def _is_textual(self, field: pa.Field, path: str) -> bool:
        if not (is_text(field.type) or is_number(field.type)):
            raise DataError(
                "the label column is neither text nor numeric",
                path=path,
                hint="is it the right column? see --label; else write it as text or numbers",
            )
        textual = is_text(field.type)
        if self._textual not in (None, textual):
            found, expected = ("text", "numbers") if textual else ("numeric", "text")
            message = f"the labels are {found} where {expected} are expected"
            raise DataError(message, path=path, hint=self._label_hint(field))
        self._textual = textual
        return textual

    def _label_hint(self, field: pa.Field) -> str:
        """What to do where labels are of another kind than was declared, fitted or read before."""
        options = self._options
        if options.predicting:
            return "compare the classes in the model file, and write the column as those are"
        if options.labels is None and options.textual is None:
            return "write the label column of all files alike"
        if is_text(field.type):
            return "declare the column's texts as the labels: --labels or the schema"
        if pat.is_boolean(field.type):
            return "true and false of Parquet count as 1 and 0: --labels 0,1"
        return "declare the column's numbers as the labels: --labels or the schema"
