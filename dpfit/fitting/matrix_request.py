"""What a user asks of a matrix completion, checked before anything is read or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.design.storage import IN_MEMORY, Storage
from dpfit.errors import UsageError
from dpfit.fitting.checks import one_of, within
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.mechanisms.huber import KNEES
from dpfit.privacy.user_release import NoiseLaw, UserNoise

PRIVATE: Final = "complete-matrix"
ORIGINALS: Final = {"als": "squared", "irls": "huber"}
"""Algorithms without noise, and the loss of each."""
_LOSSES: Final = tuple(ORIGINALS.values())
_MOST_RANK: Final = 64
_MOST_SWEEPS: Final = 1000
_LARGEST_COUNT: Final = 2**31 - 1
_LONGEST_RANGE: Final = 1e15  # the fourth power of a rating is computed
_KNEE_STEP: Final = 64


@dataclass(frozen=True)
class MatrixRequest:
    """Everything a user may say about a completion; None means: by the default rule.

    Attributes
    ----------
    budget : Budget or None
        Needed unless the run is without noise; there it only fixes what the rule derives from it.
        An epsilon without delta asks for pure differential privacy, of Laplace or Huber noise.
    dataset : str
        What the ledger calls the data.
    value_range : (float, float)
        Public bounds of a rating.
    algorithm : str
        ``complete-matrix``, or an original without noise.
    without_noise : bool
        Whether to run without noise and so without privacy.
    noise : str
        Law of the noise.
    huber_knee : float or None
        Where Huber noise turns from normal to exponential, a multiple of 1/64 from 1 to 4.
    loss : str or None
        ``squared`` or ``huber``.
    huber_threshold : float or None
        Where Huber's loss turns, in rating units.
    rank : int or None
        Factors at most; 0 releases biases only.
    sweeps, passes : int or None
        Noisy moves of the item factors, and noisy looks at the item biases.
    max_per_user : float or None
        k: all ratings of a user together weigh like k, at most.
    adjacency : Adjacency
        Of users: add-remove by default, as all measurements of private completion are meant. The
        number of users is a public divisor under both.
    n_users, n_items : int or None
        Declared public numbers.
    strict : bool
        Refuse every assumed public fact.
    budget_report : bool
        Tell each release's share of the budget in the ledger.
    seed : int or None
        A seed makes the run reproducible, and not private.
    storage : Storage
        Where the ratings stand.

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """

    budget: Budget | None
    dataset: str
    value_range: tuple[float, float]
    algorithm: str = PRIVATE
    without_noise: bool = False
    noise: str = NoiseLaw.GAUSSIAN.value
    huber_knee: float | None = None
    loss: str | None = None
    huber_threshold: float | None = None
    rank: int | None = None
    sweeps: int | None = None
    passes: int | None = None
    max_per_user: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    n_users: int | None = None
    n_items: int | None = None
    strict: bool = False
    budget_report: bool = False
    seed: int | None = None
    storage: Storage = IN_MEMORY

    def __post_init__(self) -> None:
        one_of("--algo", self.algorithm, (PRIVATE, *ORIGINALS))
        one_of("--noise", self.noise, tuple(NoiseLaw))
        if self.loss is not None:
            one_of("--loss", self.loss, _LOSSES)
        self._check_privacy()
        low, high = self.value_range
        if not -math.inf < low < high < math.inf:
            raise UsageError("--range needs two finite numbers, the lower first")
        within("the length of --range", high - low, 1.0 / _LONGEST_RANGE, _LONGEST_RANGE)
        self._check_loss()
        within("--rank", self.rank, 0, _MOST_RANK)
        within("--sweeps", self.sweeps, 1, _MOST_SWEEPS)
        if self.rank == 0 and self.sweeps is not None:
            raise UsageError("--sweeps moves factors, and --rank 0 has none")
        within("--passes", self.passes, 1, _MOST_SWEEPS)
        within("--max-per-user", self.max_per_user, 1, 1e6)
        within("--n-users", self.n_users, 1, _LARGEST_COUNT)
        within("the number of --items", self.n_items, 1, _LARGEST_COUNT)

    def _check_privacy(self) -> None:
        if self.algorithm in ORIGINALS and not self.without_noise:
            raise UsageError(f"--algo {self.algorithm} is the original without noise")
        if self.budget is None and not self.without_noise:
            raise UsageError("no privacy budget was given")
        if self.pure and self.law is NoiseLaw.GAUSSIAN:
            raise UsageError(
                "Gaussian noise needs --delta beside --eps",
                hint="give --delta, or choose --noise laplace or huber",
            )
        if self.budget is not None and self.law is not NoiseLaw.GAUSSIAN and not self.pure:
            _ = self.budget.total_rho  # a budget in mu is refused here
        if self.without_noise and self.law is not NoiseLaw.GAUSSIAN:
            raise UsageError("--noise is of no use in a run without noise")
        if self.huber_knee is not None:
            if self.law is not NoiseLaw.HUBER:
                raise UsageError("--huber-knee belongs to --noise huber")
            within("--huber-knee", self.huber_knee, float(KNEES[0]), float(KNEES[1]))
            if not (self.huber_knee * _KNEE_STEP).is_integer():
                raise UsageError(f"--huber-knee must be a multiple of 1/{_KNEE_STEP}")

    def _check_loss(self) -> None:
        if self.loss not in (None, self.users_loss):
            raise UsageError(
                f"--algo {self.algorithm} has --loss {self.users_loss}",
                hint="leave --loss out, or choose the other original",
            )
        if self.huber_threshold is None:
            return
        if not self.huber:
            raise UsageError("--huber-threshold belongs to --loss huber")
        length = self.value_range[1] - self.value_range[0]
        if not 1e-6 * length <= self.huber_threshold <= length:
            raise UsageError("--huber-threshold is out of proportion to --range")

    @property
    def private(self) -> bool:
        """Whether the noise protects."""
        return not self.without_noise and self.seed is None

    @property
    def pure(self) -> bool:
        """Whether the budget is a pure epsilon."""
        budget = self.budget
        return budget is not None and budget.epsilon is not None and budget.delta is None

    @property
    def users_loss(self) -> str:
        """The asked one, or that of the algorithm."""
        return ORIGINALS.get(self.algorithm, self.loss or "squared")

    @property
    def huber(self) -> bool:
        """Whether the users' loss is Huber's."""
        return self.users_loss == "huber"

    @property
    def law(self) -> NoiseLaw:
        """Of the noise."""
        return NoiseLaw(self.noise)

    @property
    def knee(self) -> Fraction:
        """Of Huber noise; the smaller, the closer to Laplace, which a pure budget prefers."""
        if self.huber_knee is not None:
            return Fraction(self.huber_knee)
        return Fraction(1 if self.pure else 2)

    @property
    def user_noise(self) -> UserNoise:
        """The law with its knee, and the currency that it is charged in."""
        return UserNoise(self.law, self.knee, self.pure)

    def asked_settings(self) -> dict[str, int | float]:
        """The settings of the algorithm that the user gave."""
        names = ("rank", "sweeps", "passes", "max_per_user", "huber_threshold")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}
