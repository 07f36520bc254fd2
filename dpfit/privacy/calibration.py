"""The budget a user asks for, and how much noise it buys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpfit.errors import UsageError
from dpfit.privacy import conversion

_EPSILON_RANGE = (1e-9, 1e5)
_RHO_RANGE = (1e-18, 1e5)
_MU_RANGE = (1e-9, 1e3)
_DELTA_LEAST = 1e-299  # a quarter of it, for folded losses, is within the conversions
_DELTA_HINT = "choose delta well below 1/number of rows, for instance 1e-6"
_BUDGET_HINT = (
    "give one of --eps with --delta, --rho or --mu; "
    "medians, and ratings under Laplace noise, need no --delta"
)


@dataclass(frozen=True)
class Budget:
    """A request for privacy: exactly one of (epsilon, delta), rho and mu is set.

    Attributes
    ----------
    epsilon : float or None
        Approximate differential privacy, at ``delta``; without a delta pure.
    delta : float or None
        Of an epsilon; beside rho or mu, where to report one.
    rho : float or None
        Zero-concentrated differential privacy.
    mu : float or None
        Gaussian differential privacy.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None

    @staticmethod
    def from_request(
        epsilon: float | None,
        delta: float | None,
        rho: float | None,
        mu: float | None,
        *,
        prefix: str = "--",
        pure: bool = False,
    ) -> Budget:
        """Check what the user gave and return the budget.

        ``prefix`` begins the names of the options in errors, for instance ``--cap-``; ``pure``
        allows an epsilon without a delta.

        Raises
        ------
        UsageError
            Unless exactly one of epsilon (with delta), rho and mu was given, in a sensible range.
        """
        given = [value for value in (epsilon, rho, mu) if value is not None]
        if not given:
            raise UsageError("no privacy budget was given", hint=_BUDGET_HINT)
        if len(given) > 1:
            raise UsageError("more than one privacy budget was given", hint=_BUDGET_HINT)
        if delta is not None:
            _check_delta(prefix, delta)
        if rho is not None:
            _check_range(f"{prefix}rho", rho, _RHO_RANGE)
            return Budget(rho=rho, delta=delta)
        if mu is not None:
            _check_range(f"{prefix}mu", mu, _MU_RANGE)
            return Budget(mu=mu, delta=delta)
        _check_range(f"{prefix}eps", given[0], _EPSILON_RANGE)
        if delta is None and not pure:
            raise _without_delta(prefix)
        return Budget(epsilon=given[0], delta=delta)

    @property
    def pure(self) -> bool:
        """Whether pure differential privacy is asked for."""
        return self.epsilon is not None and self.delta is None

    @cached_property
    def squared_mu(self) -> Fraction:
        """Total mu^2 that Gaussian releases may spend, rounded down, exact from then on.

        Any Gaussian-only cost with ``cost.gaussian <= squared_mu`` keeps the request. Uses the
        exact curve for (epsilon, delta) and mu^2 = 2 rho for zCDP (Bun and Steinke, 2016,
        proposition 1.6).
        """
        if self.mu is not None:
            return Fraction(self.mu) ** 2
        if self.rho is not None:
            return 2 * Fraction(self.rho)
        epsilon, delta = self.approximate()
        return Fraction(conversion.gaussian_mu(epsilon, delta)) ** 2

    @cached_property
    def total_rho(self) -> Fraction:
        """Total rho that a run of zCDP releases may spend, rounded down, exact from then on.

        Raises
        ------
        UsageError
            For a budget in mu, which only Gaussian releases can keep: no rho implies a mu.
        """
        if self.mu is not None:
            raise UsageError(
                "a budget in mu needs releases with Gaussian noise only",
                hint="give --eps with --delta, or --rho",
            )
        if self.rho is not None:
            return Fraction(self.rho)
        epsilon, delta = self.approximate()
        return Fraction(conversion.zcdp_rho(epsilon, delta))

    def to_json(self) -> dict[str, float]:
        """Return the numbers that are set, by name."""
        names = ("epsilon", "delta", "rho", "mu")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def approximate(self) -> tuple[float, float]:
        """Epsilon and delta of a budget that has an epsilon.

        Raises
        ------
        UsageError
            For a budget in pure differential privacy.
        """
        if self.epsilon is None:
            raise ValueError("the budget has no epsilon")
        if self.delta is None:
            raise _without_delta("--")
        return self.epsilon, self.delta


def gaussian_scale(sensitivity: float, squared_mu: Fraction, count: int) -> float:
    """Return the noise of each of ``count`` equal Gaussian releases, rounded up.

    ``sensitivity * sqrt(count / squared_mu)``: together they cost at most ``squared_mu``.

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity of one release, finite and > 0.
    squared_mu : Fraction
        What all of them may spend, > 0.
    count : int
        Number of releases, >= 1.
    """
    if not 0.0 < sensitivity < math.inf:
        raise ValueError(f"sensitivity must be finite and positive, not {sensitivity!r}")
    if squared_mu <= 0 or count < 1:
        raise ValueError(f"nothing to spend: squared_mu {squared_mu}, count {count}")
    return conversion.sqrt_up(Fraction(sensitivity) ** 2 * count / squared_mu)


def _without_delta(prefix: str) -> UsageError:
    return UsageError(f"Gaussian noise needs {prefix}delta beside {prefix}eps", hint=_DELTA_HINT)


def _check_delta(prefix: str, delta: float) -> None:
    name = f"{prefix}delta"
    if not 0.0 < delta < 1.0:
        raise UsageError(
            f"{name} must lie strictly between 0 and 1, not {delta!r}", hint=_DELTA_HINT
        )
    if delta < _DELTA_LEAST:
        raise UsageError(f"{name} must be at least {_DELTA_LEAST}, not {delta!r}")


_STRENGTHS = dict.fromkeys(
    ("--eps", "--cap-eps", "eps"),
    "1 or less is a strong promise, 2 to 4 a usual compromise; see dpfit-recipes(7)",
)


def _check_range(name: str, value: float, allowed: tuple[float, float]) -> None:
    least, most = allowed
    if not value > 0.0 or math.isinf(value):
        raise UsageError(
            f"{name} must be a finite positive number, not {value!r}", hint=_STRENGTHS.get(name)
        )
    if value < least:
        raise UsageError(f"{name} {value!r} is below {least}: no data set is large enough for it")
    if value > most:
        cap = name.startswith("--cap-")
        raise UsageError(
            f"{name} {value!r} is above {most} and protects nothing",
            hint=None if cap else "use --non-private for a run without noise",
        )
