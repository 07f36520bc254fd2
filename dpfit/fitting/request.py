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


@dataclass(frozen=True)
class Traits:
    """What an algorithm can be told.

    Attributes
    ----------
    settings : tuple of str
        Settings it has beside the sparsity.
    sparsity : bool or None
        Whether it needs one; None: it has none.
    intercept : bool
        Whether fitting without an intercept is possible.
    by_entry : bool
        Whether its noise grows with the largest entry of a row.
    selects : bool
        Whether it chooses columns under noise that no budget in mu can pay.
    """

    settings: tuple[str, ...]
    sparsity: bool | None
    intercept: bool = True
    by_entry: bool = False
    selects: bool = False


_DESCENT: Final = ("iterations", "step_size", "residual_clip")
ALGORITHMS: Final = {
    "dp-ight": Traits(_DESCENT, sparsity=True),
    "dp-screen": Traits(("iterations", "residual_clip"), sparsity=False, intercept=False),
    "dp-gd": Traits(_DESCENT, sparsity=False),
    "dp-iht": Traits((*_DESCENT, "selection"), sparsity=True, by_entry=True, selects=True),
    "dp-fw": Traits(
        ("iterations", "l1_radius", "residual_clip"), sparsity=None, by_entry=True, selects=True
    ),
    "two-stage": Traits(
        ("iterations", "residual_clip"), sparsity=True, intercept=False, selects=True
    ),
}
AUTO: Final = "auto"
_SETTINGS: Final = ("iterations", "step_size", "residual_clip", "l1_radius", "selection")
SELECTIONS: Final = ("one-shot", "peeling")
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
    selection : str or None
        How ``dp-iht`` chooses columns.
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
    selection: str | None = None
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
        _one_of("--algo", self.algorithm, tuple(ALGORITHMS))
        if self.loss is not None:
            _one_of("--loss", self.loss, LOSSES)
        self._check_settings()
        _at_least_one("--threads", self.threads)
        if self.iterations is not None:
            _at_least_one("--iterations", self.iterations)
            if self.iterations > _MOST_ITERATIONS:
                raise UsageError(f"--iterations must be at most {_MOST_ITERATIONS}")
        _positive("--step-size", self.step_size)
        _positive("--residual-clip", self.residual_clip)
        _positive("--l1-radius", self.l1_radius)
        if self.selection is not None:
            _one_of("--selection", self.selection, SELECTIONS)
        _positive("--entry-clip", self.entry_clip)
        if self.entry_clip is not None and self.entry_clip > 1.0:
            raise UsageError("--entry-clip is a share of the row norm and at most 1")
        _positive("--row-norm", self.row_norm)
        if not _ROW_NORMS[0] <= self.row_norm <= _ROW_NORMS[1]:
            raise UsageError("--row-norm is outside the range of usable numbers")
        self._check_target()

    def _check_settings(self) -> None:
        """Refuse a setting that the algorithm does not have, instead of dropping it."""
        traits = ALGORITHMS[self.algorithm]
        for name in self.asked_settings().keys() - set(traits.settings):
            raise UsageError(f"--{name.replace('_', '-')} is no setting of --algo {self.algorithm}")
        if self.sparsity is not None:
            if traits.sparsity is None:
                raise UsageError(f"--sparsity is no setting of --algo {self.algorithm}")
            _at_least_one("--sparsity", self.sparsity)
        elif traits.sparsity:
            raise UsageError(f"--algo {self.algorithm} needs --sparsity, the coefficients to keep")
        if traits.selects and self.budget is not None:
            _ = self.budget.total_rho  # selections need a budget in rho; one in mu is refused here
        if not self.intercept and not traits.intercept:
            raise UsageError(f"--algo {self.algorithm} has no fit without an intercept")

    def asked_settings(self) -> dict[str, int | float | str]:
        """The settings of the algorithm that the user gave."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in given.items() if value is not None}

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
        return _DEFAULT_ENTRY if ALGORITHMS[self.algorithm].by_entry else 1.0

    @property
    def private(self) -> bool:
        return self.budget is not None and self.seed is None


def chosen_algorithm(name: str, *, intercept: bool) -> str:
    """What ``auto`` stands for, from the request alone: nothing about the data decides.

    dp-screen had the lowest test error of all on every text, census and rating set tried; it cannot
    do without its constant column, and dp-gd is next.
    """
    if name != AUTO:
        return name
    return "dp-screen" if intercept else "dp-gd"


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r} is not known", hint=f"choose {' or '.join(known)}")


def _at_least_one(option: str, value: int) -> None:
    if value < 1:
        raise UsageError(f"{option} must be at least 1, not {value}")


def _positive(option: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise UsageError(f"{option} must be a positive finite number, not {value!r}")
