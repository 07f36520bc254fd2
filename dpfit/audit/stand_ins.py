"""What stands in for a run's noise where an attacker, who knows both data sets, rehearses a run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.mechanisms.noise import Noise, NoNoise

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
LogRatio: TypeAlias = Callable[[Floats, Floats], Floats]


class Silence(NoNoise):
    """None at all; notes the scores of the last selection.

    Attributes
    ----------
    log_odds : float64 array or None
        Of each choice, up to a constant, in the last selection.
    """

    def __init__(self) -> None:
        self.log_odds: Floats | None = None

    def choose(self, scores: Integers, k: int, scale_bits: int, step: int) -> Integers:
        self.log_odds = np.ldexp(scores.astype(np.float64), -scale_bits)
        return super().choose(scores, k, scale_bits, step)

    def choose_signed(self, scores: Integers, scale_bits: int, step: int) -> int:
        signed = np.concatenate([scores, -scores]).astype(np.float64)
        self.log_odds = np.ldexp(signed, -scale_bits)
        return super().choose_signed(scores, scale_bits, step)


class Ruler(NoNoise):
    """One unit of the noise on every coordinate; notes the law of the last.

    Attributes
    ----------
    log_ratio : callable
        Log-likelihood ratio of noise at z, in those units, between a shift of d and none.
    """

    log_ratio: LogRatio

    def integers(self, scale_bits: int, size: int, step: int) -> Integers:
        self.log_ratio = lambda z, d: (z - d / 2.0) * d
        return np.full(size, 1 << scale_bits)

    def laplace(self, scale_bits: int, size: int, step: int) -> Integers:
        self.log_ratio = lambda z, d: np.abs(z) - np.abs(z - d)
        return np.full(size, 1 << scale_bits)

    def huber(self, knee: Fraction, scale_bits: int, size: int, step: int) -> Integers:
        self.log_ratio = lambda z, d: _huber(z, float(knee)) - _huber(z - d, float(knee))
        return np.full(size, 1 << scale_bits)


class Overheard:
    """A run's own noise; notes what the last selection chose, which is released.

    Parameters
    ----------
    noise : Noise
        The run's.

    Attributes
    ----------
    chosen : int64 array
        Indices into the scores.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self.integers, self.laplace, self.huber = noise.integers, noise.laplace, noise.huber
        self.chosen = np.zeros(0, np.int64)

    def choose(self, scores: Integers, k: int, scale_bits: int, step: int) -> Integers:
        self.chosen = self._noise.choose(scores, k, scale_bits, step)
        return self.chosen

    def choose_signed(self, scores: Integers, scale_bits: int, step: int) -> int:
        best = self._noise.choose_signed(scores, scale_bits, step)
        self.chosen = np.array([best])
        return best


def _huber(z: Floats, knee: float) -> Floats:
    size = np.abs(z)
    return np.asarray(np.where(size <= knee, z * z / 2.0, knee * size - knee * knee / 2.0))
