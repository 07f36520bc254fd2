"""What a user asks of a matrix completion, checked before anything is read or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpfit.errors import UsageError
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.mechanisms.huber import KNEES
from dpfit.privacy.user_release import NoiseLaw

ALGORITHMS: Final = ("complete-matrix", "als", "irls")
"""The private algorithm, and its originals without noise: for squares and for Huber's loss."""
LOSSES: Final = ("squared", "huber")
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

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """

    budget: Budget | None
    dataset: str
    value_range: tuple[float, float]
    algorithm: str = "complete-matrix"
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

    def __post_init__(self) -> None:
        _one_of("--algo", self.algorithm, ALGORITHMS)
        _one_of("--noise", self.noise, tuple(NoiseLaw))
        if self.loss is not None:
            _one_of("--loss", self.loss, LOSSES)
        self._check_privacy()
        low, high = self.value_range
        if not -math.inf < low < high < math.inf:
            raise UsageError("--range needs two finite numbers, the lower first")
        _within("the length of --range", high - low, 1.0 / _LONGEST_RANGE, _LONGEST_RANGE)
        self._check_loss()
        _within("--rank", self.rank, 0, _MOST_RANK)
        _within("--sweeps", self.sweeps, 1, _MOST_SWEEPS)
        _within("--passes", self.passes, 1, _MOST_SWEEPS)
        _within("--max-per-user", self.max_per_user, 1, 1e6)
        _within("--n-users", self.n_users, 1, _LARGEST_COUNT)
        _within("--n-items", self.n_items, 1, _LARGEST_COUNT)

    def _check_privacy(self) -> None:
        if self.algorithm != "complete-matrix" and not self.without_noise:
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
        if self.huber_knee is not None:
            if self.law is not NoiseLaw.HUBER:
                raise UsageError("--huber-knee belongs to --noise huber")
            _within("--huber-knee", self.huber_knee, float(KNEES[0]), float(KNEES[1]))
            if not (self.huber_knee * _KNEE_STEP).is_integer():
                raise UsageError(f"--huber-knee must be a multiple of 1/{_KNEE_STEP}")

    def _check_loss(self) -> None:
        wanted = {"als": "squared", "irls": "huber"}.get(self.algorithm, self.loss)
        if self.loss not in (None, wanted):
            raise UsageError(f"--algo {self.algorithm} has --loss {wanted}")
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
    def huber(self) -> bool:
        """Whether the users' loss is Huber's."""
        return self.algorithm == "irls" or self.loss == "huber"

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

    def asked_settings(self) -> dict[str, int | float]:
        """The settings of the algorithm that the user gave."""
        names = ("rank", "sweeps", "passes", "max_per_user", "huber_threshold")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r} is not known", hint=f"choose {' or '.join(known)}")


def _within(option: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not (least <= value <= most and math.isfinite(value)):
        raise UsageError(f"{option} must lie between {least:g} and {most:g}, not {value!r}")
