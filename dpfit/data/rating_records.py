"""CSV and TSV to ratings: pyarrow's parser under strict checks, the slow second look behind."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pacsv

from dpfit.data import rating_reference
from dpfit.data.encode import CellFault, finite_numbers
from dpfit.data.id_table import coded_ids
from dpfit.data.parsed_table import NOT_PARSED, parsed_table
from dpfit.data.plain_records import PlainRecords, spells_nan
from dpfit.data.rating_reference import RatingPlan
from dpfit.data.rating_rows import CodedRatings, line_of_first
from dpfit.data.text_blocks import TextBlock
from dpfit.files.arrow_errors import memory_apart


class RatingParser:
    """Parses the blocks of one file; the options of pyarrow are made once."""

    def __init__(self, path: str, plan: RatingPlan) -> None:
        self._path = path
        self._plan = plan
        self._plain = PlainRecords(plan.delimiter, plan.n_fields)
        self._names = [str(i) for i in range(plan.n_fields)]
        self._parse_options = pacsv.ParseOptions(
            delimiter=plan.delimiter.decode(), newlines_in_values=True
        )
        types = {str(plan.user): pa.string(), str(plan.item): pa.string()}
        if plan.value is not None:
            types[str(plan.value)] = pa.float64()
        self._convert_options = pacsv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=False,
        )

    def parse(self, block: TextBlock) -> CodedRatings:
        """Ratings of the block; see `rating_reference.parse_block` for the contract."""
        fast = self.parse_fast(block.data)
        ratings = fast or rating_reference.parse_block(block, self._path, self._plan)
        return replace(ratings, first_line=line_of_first(block, len(ratings.users.codes)))

    def parse_fast(self, data: bytes) -> CodedRatings | None:
        """Ratings of the block as the reference parser would give them, or None if not sure."""
        if not self._plain.accepts(data):
            return None
        try:
            with memory_apart():
                table = parsed_table(data, self._names, self._parse_options, self._convert_options)
                return self._ratings(table) if table.num_rows else None
        except (*NOT_PARSED, CellFault):
            return None

    def _ratings(self, table: pa.Table) -> CodedRatings:
        # One block of pyarrow's parser holds it all, so this copies nothing.
        arrays = table.combine_chunks().to_batches()[0].columns
        users, items = coded_ids(arrays[0]), coded_ids(arrays[1])
        if not (all(users.texts) and all(map(self._is_item, items.texts))):
            raise CellFault(0, "is empty or not known")
        if self._plan.value is None:
            return CodedRatings(users, items, None)
        if spells_nan(arrays[2]):
            raise CellFault(0, "is NaN")
        return CodedRatings(users, items, finite_numbers(arrays[2]))

    def _is_item(self, text: str) -> bool:
        return bool(text) and self._plan.rule.allows(text)
