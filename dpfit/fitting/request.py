"""What a user asks of a fit, checked before anything is read or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from dpfit.design.grid import RowMap
from dpfit.errors import UsageError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.records import DeclaredFacts, Label

ALGORITHMS: Final = ("dp-ight", "dp-screen", "dp-gd", "dp-iht", "dp-fw")
_NEED_SPARSITY: Final = ("dp-ight", "dp-iht")
_SELECT_BY_ENTRY: Final = ("dp-iht", "dp-fw")  # whose noise grows with the largest entry
LOSSES: Final = ("logistic", "squared")

_DEFAULT_ENTRY: Final = 0.2  # best of 0.05 to 0.4 on text with unit rows
_LARGEST_COUNT: Final = 1 << 40  # of rows or features: more would leave no number grid
_MOST_ITERATIONS: Final = 1_000_000
_ROW_NORMS: Final = (1e-100, 1e100)  # beyond, products of the public units leave the float range


@dataclass(frozen=True)
class FitRequest:
    """Everything a user may say about a fit; None means: by the default rule.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep; None keeps a dense model, where the algorithm has one.
    budget : Budget or None
        None asks for a run without privacy.
    dataset : str
        What the ledger calls the data.
    algorithm, loss : str
        Names; the loss may be left to the target.
    iterations, step_size, residual_clip : optional
        Settings of the algorithm.
    l1_radius : float or None
        C of ``dp-fw``.
    entry_clip : float or None
        Bound on a single entry, as a share of the row norm.
    row_norm : float
        K, the l2 norm of rows.
    row_map : RowMap
        Scale every row to norm K, or only those above it.
    intercept : bool
        Whether to fit one.
    adjacency : Adjacency
        The neighbouring relation of the guarantee.
    declared : DeclaredFacts
        Public facts that the user vouches for.
    positive_label : label or None
        Which of the two labels is the positive class.
    strict : bool
        Refuse every assumed public fact.
    seed : int or None
        A seed makes the run reproducible, and not private.
    threads : int
        For reading and products; never changes a bit of the result.

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """

    sparsity: int | None
    budget: Budget | None
    dataset: str
    algorithm: str = "dp-ight"
    loss: str | None = None
    iterations: int | None = None
    step_size: float | None = None
    residual_clip: float | None = None
    l1_radius: float | None = None
    entry_clip: float | None = None
    row_norm: float = 1.0
    row_map: RowMap = RowMap.NORMALIZE
    intercept: bool = True
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    declared: DeclaredFacts = field(default_factory=DeclaredFacts)
    positive_label: Label | None = None
    strict: bool = False
    seed: int | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        _one_of("--algo", self.algorithm, ALGORITHMS)
        if self.loss is not None:
            _one_of("--loss", self.loss, LOSSES)
        if self.sparsity is not None:
            _at_least_one("--sparsity", self.sparsity)
        elif self.algorithm in _NEED_SPARSITY:
            raise UsageError(f"--algo {self.algorithm} needs --sparsity, the coefficients to keep")
        _at_least_one("--threads", self.threads)
        if self.iterations is not None:
            _at_least_one("--iterations", self.iterations)
            if self.iterations > _MOST_ITERATIONS:
                raise UsageError(f"--iterations must be at most {_MOST_ITERATIONS}")
        _positive("--step-size", self.step_size)
        _positive("--residual-clip", self.residual_clip)
        _positive("--l1-radius", self.l1_radius)
        _positive("--entry-clip", self.entry_clip)
        if self.entry_clip is not None and self.entry_clip > 1.0:
            raise UsageError("--entry-clip is a share of the row norm and at most 1")
        _positive("--row-norm", self.row_norm)
        if not _ROW_NORMS[0] <= self.row_norm <= _ROW_NORMS[1]:
            raise UsageError("--row-norm is outside the range of usable numbers")
        self._check_target()

    def _check_target(self) -> None:
        declared = self.declared
        for option, value in (("--n-rows", declared.n_rows), ("--n-features", declared.n_features)):
            if value is not None:
                _at_least_one(option, value)
                if value > _LARGEST_COUNT:
                    raise UsageError(f"{option} must be at most {_LARGEST_COUNT}")
        if declared.labels is not None and declared.target_range is not None:
            raise UsageError("--labels and --target-range exclude each other")
        if declared.labels is not None and self.loss == "squared":
            raise UsageError("--labels belongs to --loss logistic")
        if declared.target_range is not None:
            if self.loss == "logistic":
                raise UsageError("--target-range belongs to --loss squared")
            low, high = declared.target_range
            if not (low < high and math.isfinite(high - low)):
                raise UsageError("--target-range needs two finite numbers, the lower first")

    @property
    def entry_bound(self) -> float:
        """The entry clip as wished, or 0.2 where selection noise pays for the largest entry."""
        if self.entry_clip is not None:
            return self.entry_clip
        return _DEFAULT_ENTRY if self.algorithm in _SELECT_BY_ENTRY else 1.0

    @property
    def private(self) -> bool:
        return self.budget is not None and self.seed is None


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r} is not known", hint=f"choose {' or '.join(known)}")


def _at_least_one(option: str, value: int) -> None:
    if value < 1:
        raise UsageError(f"{option} must be at least 1, not {value}")


def _positive(option: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise UsageError(f"{option} must be a positive finite number, not {value!r}")
