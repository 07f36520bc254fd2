"""What was charged, used up release by release; nothing leaves here without its noise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.gaussian_release import GaussianRelease
from dpfit.privacy.huber_release import HuberRelease
from dpfit.privacy.laplace_release import LaplaceRelease
from dpfit.privacy.mechanisms import real_vectors
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.mechanisms.peeling import peel
from dpfit.privacy.mechanisms.real_vectors import RealVector
from dpfit.privacy.minimiser_release import MinimiserRelease, VectorRelease
from dpfit.privacy.objective import Objective
from dpfit.privacy.peeling_release import PeelingRelease
from dpfit.privacy.quantity import Quantity
from dpfit.privacy.selection_release import SelectionRelease

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
SumRelease: TypeAlias = GaussianRelease | LaplaceRelease | HuberRelease
ChoiceRelease: TypeAlias = SelectionRelease | PeelingRelease
Release: TypeAlias = SumRelease | ChoiceRelease | VectorRelease | MinimiserRelease

_VECTORS: Final = {
    MinimiserLaw.L2: real_vectors.spherical_vector,
    MinimiserLaw.L1: real_vectors.laplace_vector,
    MinimiserLaw.GAUSSIAN: real_vectors.gaussian_vector,
}


class ChargedReleases:
    """The charged releases of a run and the noise that they were charged for.

    A question takes its release first, and so uses it up, and then has it add the noise.

    Parameters
    ----------
    releases : iterable of releases
        What was charged, by label.
    noise : Noise
        Exact noise under a key that was made after the charge was on disk.
    """

    def __init__(self, releases: Iterable[Release], noise: Noise) -> None:
        self._releases = {release.label: release for release in releases}
        self._left = {label: release.count for label, release in self._releases.items()}
        self._noise = noise
        self._step = 0

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("charged releases can be neither pickled nor copied")  # steps would repeat

    def noise_multiplier(self, label: str) -> float:
        """Noise of a release, as a multiple of the largest share that one record can have."""
        return self._releases[label].noise_multiplier

    def take_sum(self, label: str, quantity: Quantity) -> SumRelease:
        """Use up one charged release of sums of the right kind.

        Raises
        ------
        RuntimeError
            More was asked than was charged: a fault in the algorithm.
        """
        release = self._spend(label, quantity)
        assert isinstance(release, SumRelease)
        return release

    def take_choice(self, label: str, quantity: Quantity) -> ChoiceRelease:
        """Use up one charged selection.

        Its scores are compared, not noised, so they must not wrap around as sums may; the records
        were checked for that before the charge.

        Raises
        ------
        RuntimeError
            More was asked than was charged: a fault in the algorithm.
        """
        release = self._spend(label, quantity)
        assert isinstance(release, SelectionRelease | PeelingRelease)
        return release

    def take_minimiser(self, label: str, objective: Objective) -> MinimiserRelease:
        """Use up the charged release of a minimiser.

        Raises
        ------
        RuntimeError
            It was not charged, or for another objective, or without the random vector that it
            relies on: a fault in the algorithm.
        """
        release = self._spend(label, Quantity.MINIMISER)
        assert isinstance(release, MinimiserRelease)
        vectors = [one for one in self._releases.values() if isinstance(one, VectorRelease)]
        if {release.objective, *(one.objective for one in vectors)} != {objective}:
            raise RuntimeError("the minimiser of another objective than charged was asked")
        if not (release.alone or vectors):
            raise RuntimeError("a minimiser was asked whose random vector was not charged")
        return release

    def random_vector(self, quantity: Quantity, size: int) -> RealVector:
        """The charged random vector of that kind; zero if none was charged."""
        for label, release in self._releases.items():
            if isinstance(release, VectorRelease) and release.quantity is quantity:
                self._spend(label, quantity)
                draw = _VECTORS[release.law]
                return draw(self._noise, size, self._next_step).times(float(release.scale))
        return RealVector(np.zeros(size), 0.0)

    def batch(self, label: str) -> int:
        """The number of the batch that the next release of a label is about: each has its own."""
        release = self._releases[label]
        return release.count - self._left[label]

    def _spend(self, label: str, quantity: Quantity) -> Release:
        release = self._releases[label]
        if release.quantity is not quantity or self._left[label] < 1:
            raise RuntimeError(f"a release of {quantity} was asked that was not charged")
        self._left[label] -= 1
        return release

    def noisy(self, release: SumRelease, sums: Integers) -> Integers:
        """The sums with noise on each, in the same shape."""
        noisy = self._fresh(release, sums.size).reshape(sums.shape)
        noisy += sums  # in place: with many columns these are the largest arrays of a run
        return noisy

    def choose(self, release: ChoiceRelease, scores: Integers) -> Integers:
        """Indices of the noisily largest scores, ascending, as many as charged."""
        if isinstance(release, PeelingRelease):
            return peel(scores, release.chosen, lambda: self._fresh_laplace(release, len(scores)))
        return self._noise.choose(scores, release.chosen, release.scale_bits, self._next_step())

    def choose_signed(self, release: ChoiceRelease, scores: Integers) -> int:
        """The noisily largest of the 2 d scores q and -q; d + j stands for -q_j."""
        if isinstance(release, PeelingRelease):
            signed = np.concatenate([scores, -scores])
            return int(peel(signed, 1, lambda: self._fresh_laplace(release, len(signed)))[0])
        return self._noise.choose_signed(scores, release.scale_bits, self._next_step())

    def _fresh(self, release: SumRelease, size: int) -> Integers:
        if isinstance(release, LaplaceRelease):
            return self._fresh_laplace(release, size)
        if isinstance(release, HuberRelease):
            return self._noise.huber(release.knee, release.scale_bits, size, self._next_step())
        return self._noise.integers(release.scale_bits, size, self._next_step())

    def _fresh_laplace(self, release: LaplaceRelease | PeelingRelease, size: int) -> Integers:
        return self._noise.laplace(release.scale_bits, size, self._next_step())

    def _next_step(self) -> int:
        """A step number that no other noise of this run has: the same one would cancel it."""
        step, self._step = self._step, self._step + 1
        return step
