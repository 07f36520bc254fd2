"""The noise of each trial of an audit."""

from __future__ import annotations

from typing import Final

from dpfit.privacy.mechanisms.noise import Noise, noise_of

_STRIDE: Final = 1 << 40  # between the keys of two seeds


class TrialKeys:
    """Fresh noise for each trial.

    Parameters
    ----------
    seed : int or None
        None takes every key from the operating system, as a private run does.
    """

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._made = 0

    def noise(self) -> Noise:
        """Of the next trial."""
        self._made += 1
        seed = None if self._seed is None else self._seed * _STRIDE + self._made
        return noise_of(private=True, seed=seed)
