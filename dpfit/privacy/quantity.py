"""What a release is about; the Curator answers a question only with a release of its own kind."""

from __future__ import annotations

from enum import StrEnum


class Quantity(StrEnum):
    """A statistic of the private records that has a mechanism."""

    GRADIENT = "gradient over rows"
    PARTIAL_GRADIENT = "gradient over rows, on chosen columns"
    UNIT_GRADIENT = "gradient over centred rows of length one"
    OWNER_GRADIENT = "gradient over rows, clipped by unit"
    COLUMN_SUMS = "column sums of positive and negative parts"
    TARGET_SUM = "sum of the target"
    TARGET_AND_EXPOSURE_SUMS = "sums of the target and of the exposure"
    CLASS_SUMS = "number of records of each class"
    BATCH_GRADIENT = "gradient over rows, each record in one of the batches"
    TARGET_RANKS = "selection of a quantile of the target"
    OBJECTIVE_TERM = "random term of an objective"
    MINIMISER_SHIFT = "random vector added to a minimiser"
    MINIMISER = "minimiser on an integer grid"
    SELECTION = "selection of columns by gradient"
    VOTES = "selection of columns by votes of row blocks"
    SCORE = "sum of the bounded loss of a model in a search"
    METRICS = "sums of bounded metrics of a model"
    USER_MEANS = "sum of a number in [-1, 1] of each user"
    USER_SHARES = "sum of a number in [0, 1] of each user"
    ITEM_COUNTS = "weighted counts of ratings by item"
    ITEM_SUMS = "weighted sums of residuals by item"
    FACTOR_SUMS = "weighted sums of residuals by item, times the users' factors"
    FACTOR_MOMENTS = "second moments of the users' factors"

    def charges(self, count: int) -> int:
        """How often that many releases charge one record: once if each has records of its own."""
        return 1 if self is Quantity.BATCH_GRADIENT else count
