"""All the noise of a run under one interface: exact, or none."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dpfit.privacy.mechanisms.gaussian import GaussianNoise
from dpfit.privacy.mechanisms.random_stopping import StoppingDraws
from dpfit.privacy.random_bits import BitSource, RunKey, load_cipher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfit.privacy.mechanisms.huber import HuberNoise
    from dpfit.privacy.mechanisms.laplace import LaplaceNoise
    from dpfit.privacy.mechanisms.top_k import GumbelTopK
    from dpfit.privacy.random_bits import RandomWords


class Noise(Protocol):
    """What the Curator draws; every call needs a step number of its own."""

    def integers(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        """``floor(2^scale_bits N)``, N standard normal, ``size`` times."""
        ...

    def laplace(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        """``floor(2^scale_bits X)``, X standard Laplace, ``size`` times."""
        ...

    def huber(self, knee: Fraction, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        """``floor(2^scale_bits X)``, X of Huber's law with that knee, ``size`` times."""
        ...

    def choose(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        """Indices of the k largest of scores + Gumbel(2^scale_bits), ascending."""
        ...

    def choose_signed(self, scores: NDArray[np.int64], scale_bits: int, step: int) -> int:
        """The largest of the 2 d noisy scores q and -q; d + j stands for -q_j."""
        ...


class ExactNoise:
    """Noise of the run's key.

    Parameters
    ----------
    bits : RandomWords
        Counter-based bits.
    """

    def __init__(self, bits: RandomWords) -> None:
        self._bits = bits
        self._gaussian = GaussianNoise(bits)
        self._laplace: LaplaceNoise | None = None
        self._huber: dict[Fraction, HuberNoise] = {}
        self._top_k: GumbelTopK | None = None

    def integers(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        return self._gaussian.integers(scale_bits, size, step)

    def laplace(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        if self._laplace is None:
            from dpfit.privacy.mechanisms.laplace import LaplaceNoise

            self._laplace = LaplaceNoise(self._bits)
        return self._laplace.integers(scale_bits, size, step)

    def huber(self, knee: Fraction, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        if knee not in self._huber:
            from dpfit.privacy.mechanisms.huber import HuberNoise

            self._huber[knee] = HuberNoise(self._bits, knee)
        return self._huber[knee].integers(scale_bits, size, step)

    def choose(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        return self._selection().select(scores, k, scale_bits, step)

    def choose_signed(self, scores: NDArray[np.int64], scale_bits: int, step: int) -> int:
        return int(self._selection().select_signed(scores, 1, scale_bits, step)[0])

    def _selection(self) -> GumbelTopK:
        if self._top_k is None:
            from dpfit.privacy.mechanisms.top_k import GumbelTopK

            self._top_k = GumbelTopK(self._bits)
        return self._top_k


class NoNoise:
    """The noise of a non-private run: none; of equal scores the first index wins."""

    def integers(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def laplace(self, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def huber(self, knee: Fraction, scale_bits: int, size: int, step: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def choose(
        self, scores: NDArray[np.int64], k: int, scale_bits: int, step: int
    ) -> NDArray[np.int64]:
        return np.sort(np.argsort(-scores, kind="stable")[:k])

    def choose_signed(self, scores: NDArray[np.int64], scale_bits: int, step: int) -> int:
        best = int(np.argmax(np.abs(scores)))
        return best if scores[best] >= 0 else len(scores) + best


class SearchNoise:
    """The randomness of a search: how many runs, which, and each run's own noise.

    Its key is born here, so make one after the charge is on disk.

    Parameters
    ----------
    seed : int or None
        None takes a fresh key from the operating system.
    """

    def __init__(self, seed: int | None) -> None:
        self._key = _new_key(seed)
        self._runs = 0
        self.draws = StoppingDraws(BitSource(self._key))

    def of_next_run(self) -> Noise:
        """Noise under a key that no other run has."""
        self._runs += 1
        return ExactNoise(BitSource(self._key.child(self._runs)))


def prepare_noise() -> None:
    """Find out, before the charge, that noise can be made; draws nothing and makes no key."""
    load_cipher()


def noise_of(*, private: bool, seed: int | None) -> Noise:
    """The noise of a run; its key is born here, so call this after the charge is on disk.

    Parameters
    ----------
    private : bool
        False for a run without noise.
    seed : int or None
        None takes a fresh key from the operating system.
    """
    if not private:
        return NoNoise()
    return ExactNoise(BitSource(_new_key(seed)))


def _new_key(seed: int | None) -> RunKey:
    return RunKey.from_system() if seed is None else RunKey.from_seed(seed)
