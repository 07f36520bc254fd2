"""What a user asks of a fit, checked before anything is read or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from dpfit.algorithms.default_rule import WIDE
from dpfit.design.grid import RowMap
from dpfit.design.storage import IN_MEMORY, Storage
from dpfit.errors import UsageError
from dpfit.fitting.algorithm_traits import ALGORITHMS, EXACT, ORIGINALS, Traits
from dpfit.fitting.request_checks import check_request
from dpfit.fitting.search import Search
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts
from dpfit.privacy.owner_release import OwnerRule
from dpfit.privacy.summary import Label

_SETTINGS: Final = tuple(
    dict.fromkeys(name for traits in ALGORITHMS.values() for name in traits.settings)
)
_DEFAULT_HUBER: Final = 0.1  # of the target's range
_SHARES: Final = (1e-9, 1e9)  # of the target's range
LEAST_SMOOTHING: Final = 1e-5  # of the target's range; with less, minimisers are hard to find
_TEXT_ENTRY: Final = 0.2
_TABLE_ENTRY: Final = 0.5


@dataclass(frozen=True)
class FitRequest:
    """Everything a user may say about a fit; None means: by the default rule.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep; None keeps a dense model, where the algorithm has one.
    budget : Budget or None
        Needed unless the run is without noise; there it only fixes what the rules derive from it.
    without_noise : bool
        Whether to fit without noise and so without privacy.
    dataset : str
        What the ledger calls the data.
    algorithm, loss : str
        Names; the loss may be left to the target.
    of_classes : bool
        Whether the target is of classes, also where it holds more than two numbers.
    iterations, step_size, residual_clip : optional
        Settings of the algorithm.
    l1_radius : float or None
        C of ``dp-fw``.
    selection : str or None
        How ``dp-iht`` chooses columns.
    joint_rows : bool or None
        Whether the classes of a multinomial model share their s columns; None: not said.
    huber_threshold : float or None
        Where Huber's loss turns, in units of the target.
    exposed : bool
        Whether records have an offset or exposure.
    projection_radius : float or None
        l2 bound on the models of ``dp-ight``.
    threshold : str or None
        At which steps ``dp-ight`` has one.
    quantile : float or None
        Of the absolute loss; None: a half.
    smoothing : float or None
        Where a smoothed absolute loss turns into a line, in units of the target.
    ridge : float or None
        l2 penalty, in records.
    noise : str or None
        Law of the noise of median regressions.
    batches : str or None
        The records of each step of ``median-cd``.
    entry_clip : float or None
        Bound on a single entry, as a share of the row norm.
    unit : str or None
        Column of the privacy units; None: each record is one.
    max_rows_per_unit : int or None
        Records of a unit that take part, at most; needed with units.
    unit_clip : float or None
        How many records' longest part of a gradient a unit's may be as long as.
    row_norm : float
        K, the l2 norm of rows.
    row_map : RowMap
        Scale every row to norm K, or only those above it.
    intercept : bool
        Whether to fit one.
    adjacency : Adjacency
        The neighbouring relation of the guarantee.
    calibration : str
        Noise of exactly the budget, or as a paper prints it, whatever that really costs.
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
    storage : Storage
        Where the rows stand; changes nothing else.
    search : Search or None
        Settings to try, in place of those that the request itself has.

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """

    sparsity: int | None
    budget: Budget | None
    dataset: str
    without_noise: bool = False
    algorithm: str = "dp-ight"
    loss: str | None = None
    of_classes: bool = False
    iterations: int | None = None
    step_size: float | None = None
    residual_clip: float | None = None
    l1_radius: float | None = None
    selection: str | None = None
    joint_rows: bool | None = None
    huber_threshold: float | None = None
    exposed: bool = False
    projection_radius: float | None = None
    threshold: str | None = None
    quantile: float | None = None
    smoothing: float | None = None
    ridge: float | None = None
    noise: str | None = None
    batches: str | None = None
    entry_clip: float | None = None
    unit: str | None = None
    max_rows_per_unit: int | None = None
    unit_clip: float | None = None
    row_norm: float = 1.0
    row_map: RowMap = RowMap.NORMALIZE
    intercept: bool = True
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    calibration: str = EXACT
    declared: DeclaredFacts = field(default_factory=DeclaredFacts)
    positive_label: Label | None = None
    strict: bool = False
    seed: int | None = None
    threads: int = 1
    storage: Storage = IN_MEMORY
    search: Search | None = None

    def __post_init__(self) -> None:
        check_request(self)

    @property
    def printed(self) -> bool:
        """Whether the noise is as a paper prints it."""
        return self.calibration != EXACT

    @property
    def private_algorithm(self) -> str:
        """The algorithm; of an original the one that adds noise to it."""
        return ORIGINALS.get(self.algorithm, self.algorithm)

    @property
    def traits(self) -> Traits:
        """What the algorithm can be told."""
        return ALGORITHMS[self.private_algorithm]

    def asked_settings(self) -> dict[str, int | float | str]:
        """The settings of the algorithm that the user gave."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def owners(self) -> OwnerRule | None:
        """What records belong together and how much of them counts; None: each is a unit."""
        if self.unit is None or self.max_rows_per_unit is None:
            return None
        clip = self.unit_clip or default_unit_clip(self.max_rows_per_unit)
        return OwnerRule(self.unit, self.max_rows_per_unit, clip)

    def huber_of_range(self, target_range: tuple[float, float]) -> float:
        """The threshold of Huber's loss as a share of the target's range."""
        if self.huber_threshold is None:
            return _DEFAULT_HUBER
        span = target_range[1] - target_range[0]
        return share_of_range("--huber-threshold", self.huber_threshold, span)

    def entry_bound(self, n_features: int) -> float:
        """The entry clip as wished, or less than 1 where noise grows with the largest entry.

        0.2 is best of 0.05 to 0.4 on text with unit rows; tables, whose rows have fewer and larger
        entries, do better with 0.5.
        """
        if self.entry_clip is not None:
            return self.entry_clip
        if not self.traits.by_entry:
            return 1.0
        return _TEXT_ENTRY if n_features > WIDE else _TABLE_ENTRY

    @property
    def private(self) -> bool:
        return not self.without_noise and self.seed is None


def default_unit_clip(max_rows: int) -> float:
    """C by rule: half the square root of the number of rows, and one at least.

    Of 1 to m rows it was best, or close to the best, on four sets of units whose rows differ: these
    pull in many directions, so their sum is seldom longer than a few times the root, and noise is
    for the clip whatever the unit holds. Where all rows of a unit have one label, a clip of m / 2
    was better, and one row a unit better still.
    """
    return max(1.0, math.sqrt(max_rows) / 2)


def share_of_range(option: str, length: float, span: float, least: float = _SHARES[0]) -> float:
    """A length in units of the target as a share of its range.

    Raises
    ------
    UsageError
        It is out of proportion.
    """
    share = length / span
    if not least <= share <= _SHARES[1]:
        raise UsageError(f"{option} is out of proportion to the target's range")
    return share
