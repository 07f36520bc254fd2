"""What it costs to release the best of a random number of runs, and how many to expect.

Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy" (ICLR 2022, theorem
2): if a run has Renyi divergence at most ``rho a`` at every order ``a``, and K is truncated
negative binomial with eta and gamma, the best of K runs has at order ``a``, for every ``b >= 1``,
at most::

    rho a + (1 + eta) ((b - 1) rho + log(1/gamma) / b) + log(E K) / (a - 1)

The middle term is least at ``b = sqrt(log(1/gamma) / rho)``, or at 1 if that is below 1; any b
gives a bound. The last term multiplies delta by E K. Everything is rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpfit.errors import UsageError

_WIDENED: Final = 1 + Fraction(1, 10**9)  # far above the rounding of the floats here
_REMEMBERED: Final = 1 << 10
_FINEST: Final = 1 << 30  # a gamma that is chosen here is a multiple of one over it
_RUNS: Final = (1.1, 1000.0)


@lru_cache(_REMEMBERED)
def stopping_shift(rho: Fraction, eta: Fraction, gamma: Fraction) -> Fraction:
    """The middle term, which is added to epsilon: rounded up."""
    log_inverse = Fraction(_log_inverse(gamma)) * _WIDENED
    best = math.sqrt(float(log_inverse) / max(float(rho), 1e-300))
    order = max(Fraction(1), Fraction(best).limit_denominator(1 << 40))
    return (1 + eta) * ((order - 1) * rho + log_inverse / order)


@lru_cache(_REMEMBERED)
def log_expected_runs(eta: Fraction, gamma: Fraction) -> Fraction:
    """The logarithm of E K, rounded up."""
    expected = expected_runs(float(eta), _log_inverse(gamma))
    return Fraction(math.log(max(expected, 1.0))) + Fraction(1, 10**9)


def expected_runs(eta: float, log_inverse: float) -> float:
    """E K: ``eta (1 - gamma) / (gamma (1 - gamma^eta))``, at eta = 0 its limit.

    Parameters
    ----------
    eta : float
        Above -1.
    log_inverse : float
        ``log(1/gamma)``.
    """
    spread = log_inverse if eta == 0.0 else -math.expm1(-eta * log_inverse) / eta
    return math.expm1(log_inverse) / spread


def gamma_for(eta: Fraction, runs: float) -> Fraction:
    """The gamma at which so many runs are expected; a public setting, so its rounding is free.

    Raises
    ------
    UsageError
        Hardly more than one run, or more than a thousand, are asked for.
    """
    if not _RUNS[0] <= runs <= _RUNS[1]:
        raise UsageError(f"--tune-runs must lie between {_RUNS[0]:g} and {_RUNS[1]:g}")
    low, high = 1e-9, 40.0  # of log(1/gamma), with which E K grows
    for _ in range(100):
        middle = (low + high) / 2
        if expected_runs(float(eta), middle) > runs:
            high = middle
        else:
            low = middle
    return Fraction(max(1, min(round(math.exp(-low) * _FINEST), _FINEST - 1)), _FINEST)


def _log_inverse(gamma: Fraction) -> float:
    """``log(1/gamma)``, also near 1 to the last bits."""
    return -math.log1p(-float(1 - gamma)) if 2 * gamma > 1 else -math.log(float(gamma))
