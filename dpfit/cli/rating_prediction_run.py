"""Predicting ratings: each user's own part is solved here, from the user's ratings in the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfit.cli.prediction_output import (
    Columns,
    Writer,
    check_output,
    prediction_writer,
    show_evaluation,
)
from dpfit.cli.rating_reading import prediction_rating_options
from dpfit.data.id_table import IdTable
from dpfit.data.open import STDIN
from dpfit.data.pairs import Pairs, read_pairs
from dpfit.data.ratings import RatingReader
from dpfit.data.ratings_by_user import RatingsByUser, rating_parts
from dpfit.errors import DataError, UsageError
from dpfit.files.factor_model import FactorModel, parse_factor_model
from dpfit.fitting.factor_file import factor_outcome
from dpfit.fitting.factor_prediction import FactorPredictor, pair_errors
from dpfit.fitting.user_solve import UserSolver

if TYPE_CHECKING:
    from dpfit.cli.predict import PredictOptions

_OF_ROWS = ("proba", "margin", "label", "ignore_new_features")
_LINES = 1 << 16  # that are written at a time


def predict_ratings(options: PredictOptions, content: bytes) -> None:
    """Run ``dpfit predict`` with a model of ratings, the content of the model file."""
    _check(options)
    model = parse_factor_model(content, options.model)
    ratings = _reader(options, model, options.inputs, values=True)
    asked = None if options.pairs is None else [options.pairs]
    wanted = _reader(options, model, asked, values=options.evaluate) if asked else None
    check_output(options, [*ratings.paths, *(wanted.paths if wanted else ()), options.model])
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            predictor = FactorPredictor(model, UserSolver(factor_outcome(model)))
        except ValueError as error:
            raise DataError(f"is not a model of ratings: {error}", path=options.model) from None
        try:
            _predict(options, model, predictor, ratings, wanted)
        except OverflowError:
            message = "its numbers are too large to compute with"
            raise DataError(message, path=options.model) from None


def _check(options: PredictOptions) -> None:
    options.refuse(_OF_ROWS, "is for models of rows; this one is of ratings")
    if options.missing != "error":
        raise UsageError("--missing is for models of rows; a rating is never empty")
    if options.pairs is not None and options.top is not None:
        raise UsageError("--pairs and --top exclude each other")
    if options.pairs is None and options.top is None:
        raise UsageError(
            "a model of ratings needs to know what to predict",
            hint="give --pairs FILE, or --top N for the best new items of each user",
        )
    if options.top is not None and options.top < 1:
        raise UsageError("--top must be 1 or more")
    if options.evaluate and options.pairs is None:
        raise UsageError("--evaluate compares with the ratings of --pairs FILE")
    if options.pairs == STDIN and STDIN in options.inputs:
        raise UsageError("--pairs and the ratings cannot both be standard input")


def _reader(
    options: PredictOptions, model: FactorModel, inputs: list[str], *, values: bool
) -> RatingReader:
    reading = prediction_rating_options(options, model, inputs, values=values)
    return RatingReader(inputs, reading, items=IdTable(model.items, fixed=True))


def _predict(
    options: PredictOptions,
    model: FactorModel,
    predictor: FactorPredictor,
    ratings: RatingReader,
    wanted: RatingReader | None,
) -> None:
    pairs = None if wanted is None else read_pairs(wanted)
    parts = rating_parts(ratings, grouped=options.grouped)
    with prediction_writer(options, separator="\t") as write:
        if pairs is None:
            assert options.top is not None
            _write_top(predictor, parts, ratings.users, model, options.top, write)
            return
        predicted = predictor.pairs(parts, ratings.users, pairs)
        _write_pairs(pairs, predicted, model, write)
    if options.evaluate:
        assert pairs.value is not None
        errors = pair_errors(predicted, pairs.value)
        values = {"pairs": errors.pairs, "RMSE": errors.rmse, "MAE": errors.mae}
        show_evaluation(values, "the ratings of --pairs", as_json=options.json)


def _write_top(
    predictor: FactorPredictor,
    parts: Iterable[RatingsByUser],
    users: IdTable,
    model: FactorModel,
    n: int,
    write: Writer,
) -> None:
    for best in predictor.top(parts, n):
        write(_columns(users, best.user, model, best.item, best.value))


def _write_pairs(
    pairs: Pairs, predicted: NDArray[np.float64], model: FactorModel, write: Writer
) -> None:
    for start in range(0, len(predicted), _LINES):
        part = slice(start, start + _LINES)
        write(_columns(pairs.users, pairs.user[part], model, pairs.item[part], predicted[part]))


def _columns(
    users: IdTable,
    user: NDArray[np.int64],
    model: FactorModel,
    item: NDArray[np.int64],
    value: NDArray[np.float64],
) -> Columns:
    return {
        "user": np.array([users.texts[code] for code in user], object),
        "item": np.array([model.items[code] for code in item], object),
        "prediction": value,
    }
