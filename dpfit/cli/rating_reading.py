"""Reading options of the command line as options of the reader of ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfit.data.open import expand_inputs, format_of
from dpfit.data.pipeline import cpu_count
from dpfit.data.rating_options import ROLES, RatingOptions
from dpfit.data.ratings import RATING_EXTENSIONS, RatingReader
from dpfit.files.factor_model import FactorModel

if TYPE_CHECKING:
    from dpfit.cli.audit import AuditOptions
    from dpfit.cli.complete_matrix import CompleteMatrixOptions
    from dpfit.cli.predict import PredictOptions

_WITH_COLUMNS = ("csv", "tsv", "parquet")


def rating_options(options: CompleteMatrixOptions | AuditOptions) -> RatingOptions:
    """How ratings are read to complete them."""
    return RatingOptions(
        format=str(options.format),
        user=options.user,
        item=options.item,
        value=options.value,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        duplicates=str(options.duplicates),
        threads=cpu_count() if options.threads is None else options.threads,
    )


def stored_columns(reader: RatingReader) -> dict[str, str | None]:
    """The columns that a model keeps, by role; None where the format has no names."""
    if reader.format in _WITH_COLUMNS:
        return dict(reader.options.table_columns)
    return dict.fromkeys(ROLES)


def prediction_rating_options(
    options: PredictOptions, model: FactorModel, inputs: list[str], *, values: bool
) -> RatingOptions:
    """How ``dpfit predict`` reads ratings or pairs: by the model's columns unless others are named.

    Parameters
    ----------
    options : PredictOptions
        Of the command.
    model : FactorModel
        Names the columns.
    inputs : list of str
        What is read.
    values : bool
        Whether the column of ratings is wanted.
    """
    kind = format_of(expand_inputs(inputs)[0], str(options.format), RATING_EXTENSIONS)
    stored = model.columns if kind in _WITH_COLUMNS else dict.fromkeys(ROLES)
    return RatingOptions(
        format=str(options.format),
        user=options.user or stored["user"],
        item=options.item or stored["item"],
        value=(options.value or stored["value"]) if values else None,
        values=values,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
        duplicates=str(options.duplicates),
        ignore_new_items=options.ignore_new_items,
        predicting=True,
        threads=cpu_count() if options.threads is None else options.threads,
    )
