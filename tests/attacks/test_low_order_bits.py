"""The attack of low-order bits (Mironov, 2012) on every kind of number that is released.

A float sampler reaches only some floats, and which ones a sum ``x + noise`` can reach tells x. The
attacker here knows both worlds and the program, and has one released vector. In each world they
solve for the noise, take what the sampler can draw in its neighbourhood, replay the release with it
and count the coordinates that come out the same to the last bit. The right world explains all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dense_rows import dense_design
from dpfit.audit.models import numbers_of
from dpfit.audit.worlds import linear_worlds
from dpfit.design.grid import Grid, RowMap
from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest
from dpfit.losses.absolute import Absolute
from dpfit.losses.base import Loss
from dpfit.losses.logistic import Logistic
from dpfit.losses.smoothed import HuberSmoothed
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.charged_releases import Release
from dpfit.privacy.curator import Curator
from dpfit.privacy.gaussian_release import GaussianRelease, squared_factor
from dpfit.privacy.laplace_release import LaplaceRelease, l1_factor
from dpfit.privacy.mechanisms.noise import Noise, NoNoise, noise_of
from dpfit.privacy.minimiser_release import MinimiserRelease, plan_minimiser
from dpfit.privacy.objective import Objective
from dpfit.privacy.planned_release import PlannedRelease
from dpfit.privacy.point import Point
from dpfit.privacy.private_records import PrivateRecords
from dpfit.privacy.quantity import Quantity

D = 64
GRID = Grid(1.0, RowMap.NORMALIZE, 20, intercept=False)
ROWS = np.random.default_rng(7).standard_normal((4, D))
SCALE_BITS = 47  # of noise that hides a record well: its sum moves by 2^41 in l2
OBJECTIVE = Objective(HuberSmoothed(0.5, 0.1), 40.0)
FAILURE = 1e-9


class Given(NoNoise):
    """The noise of an attacker's replay, in units of its scale."""

    def __init__(self, noise: np.ndarray) -> None:
        self._noise = noise

    def integers(self, scale_bits: int, size: int, step: int) -> Any:
        return np.ldexp(np.resize(self._noise, size), scale_bits)

    laplace = integers


class Sampler:
    """A way to draw noise of scale 1, and what it can draw near given numbers.

    The noise itself goes where ours stands, as floats.
    """

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        raise NotImplementedError

    def near(self, noise: np.ndarray) -> Iterator[np.ndarray]:
        raise NotImplementedError

    def noise(self, seed: int) -> Noise:
        return Given(self.draw(np.random.default_rng(seed), D))


class NumpyLaplace(Sampler):
    """``Generator.laplace``: the logarithm of a multiple of 2^-52."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.laplace(size=size)

    def near(self, noise: np.ndarray) -> Iterator[np.ndarray]:
        nearest = np.rint(np.ldexp(np.exp(-np.abs(noise)), 52))
        for step in range(-6, 7):
            uniform = np.ldexp(np.clip(nearest + step, 1, 2.0**52), -52)
            logs = [math.log(u) for u in uniform]  # of the C library, as numpy's sampler
            yield np.copysign(logs, noise)


class BoxMuller(Sampler):
    """The textbook's pair of normal numbers from two multiples of 2^-53."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return self._pairs(1.0 - rng.random(size // 2), rng.random(size // 2))

    @staticmethod
    def _pairs(radial: np.ndarray, angular: np.ndarray) -> np.ndarray:
        radius, angle = np.sqrt(-2.0 * np.log(radial)), 2.0 * math.pi * angular
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])

    def near(self, noise: np.ndarray) -> Iterator[np.ndarray]:
        first, second = np.split(noise, 2)
        radial = np.rint(np.ldexp(np.exp(-(first**2 + second**2) / 2.0), 53))
        angular = np.rint(np.ldexp(np.arctan2(second, first) / (2.0 * math.pi) % 1.0, 53))
        for i in range(-3, 4):
            for j in range(-3, 4):
                inner = np.ldexp(np.clip(radial + i, 1, 2.0**53), -53)
                yield self._pairs(inner, np.ldexp(angular + j, -53))


class SinglePrecision(Sampler):
    """``Generator.standard_normal`` in 32 bits, as on a graphics card."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.standard_normal(size, dtype=np.float32).astype(np.float64)

    def near(self, noise: np.ndarray) -> Iterator[np.ndarray]:
        yield noise.astype(np.float32).astype(np.float64)


class Ours(Sampler):
    """Exact integers."""

    def __init__(self, scale_bits: int = SCALE_BITS) -> None:
        self._scale_bits = scale_bits

    def near(self, noise: np.ndarray) -> Iterator[np.ndarray]:
        yield np.ldexp(np.rint(np.ldexp(noise, self._scale_bits)), -self._scale_bits)

    def noise(self, seed: int) -> Noise:
        return noise_of(private=True, seed=seed)


NAIVE = (NumpyLaplace(), BoxMuller(), SinglePrecision())
by_name = pytest.mark.parametrize("sampler", NAIVE, ids=lambda one: type(one).__name__)


@dataclass(frozen=True)
class World:
    """One of two neighbouring data sets and what is asked of it.

    Attributes
    ----------
    release : callable
        What comes out with that noise.
    """

    release: Callable[[Noise], np.ndarray]

    def explained(self, released: np.ndarray, sampler: Sampler) -> int:
        """How many of the released numbers the sampler can have made in this world."""
        silent = self.release(NoNoise())
        of_one = self.release(Given(np.ones(1))) - silent
        moved = of_one != 0.0
        noise = (released - silent)[moved] / of_one[moved]
        found = np.zeros(len(noise), bool)
        for candidate in sampler.near(noise):
            found |= self.release(Given(candidate))[moved] == released[moved]
        return int(found.sum())


def right_guesses(
    worlds: tuple[World, World], sampler: Sampler, attack: Sampler, trials: int
) -> int:
    """How often the attacker tells the world; between equal counts a coin decides."""
    coin = np.random.default_rng(3)
    right = 0
    for trial in range(trials):
        truth = trial % 2
        released = worlds[truth].release(sampler.noise(1000 + trial))
        counts = [world.explained(released, attack) for world in worlds]
        guess = int(coin.integers(2)) if counts[0] == counts[1] else int(np.argmax(counts))
        right += guess == truth
    return right


def at_chance(right: int, trials: int) -> bool:
    """Hoeffding: a fair guesser is outside with probability below `FAILURE`."""
    return abs(right / trials - 0.5) <= math.sqrt(math.log(2.0 / FAILURE) / (2.0 * trials))


def curator(target: float, loss: Loss, release: Release, noise: Noise) -> Curator:
    records = PrivateRecords(dense_design(ROWS, GRID), np.array([target, 0.0, 1.0, 1.0]))
    return Curator(records=records, loss=loss, grid=GRID, n_rows=4, releases=[release], noise=noise)


def gradients(release: GaussianRelease | LaplaceRelease) -> tuple[World, World]:
    """The gradient at zero where the label of one record differs. Its unit is a power of two."""
    columns = np.arange(D) if release.quantity is Quantity.PARTIAL_GRADIENT else None

    def world(target: float) -> World:
        def answer(noise: Noise) -> np.ndarray:
            door = curator(target, Logistic(), release, noise)
            zero = Point(np.zeros(D), 0.0)
            return door.gradient("g", zero, clip=0.5, columns=columns).coefficients

        return World(answer)

    return world(0.0), world(1.0)


def gaussian() -> GaussianRelease:
    factor = squared_factor(Quantity.GRADIENT, GRID, 0)
    return GaussianRelease("g", Quantity.GRADIENT, factor, 1 << 20, SCALE_BITS, 1)


def laplace() -> LaplaceRelease:
    squared = squared_factor(Quantity.PARTIAL_GRADIENT, GRID, D)
    return LaplaceRelease("g", l1_factor(GRID, D), squared, 1 << 20, SCALE_BITS, 1, D)


def minimiser_release(*, pure: bool) -> Any:
    planned = PlannedRelease(
        "m", Quantity.MINIMISER, 1, Fraction(0), laplace=pure, objective=OBJECTIVE
    )
    return plan_minimiser(
        planned, GRID, n_rows=4, n_features=D, unit_bits=20, vector=None,
        squared_mu=None if pure else Fraction(1, 4), epsilon=Fraction(1, 2) if pure else None,
        adjacency=Adjacency.REPLACE_ONE,
    )  # fmt: skip


def minimisers(*, pure: bool) -> tuple[World, World]:
    """The minimiser of an objective, of the same two worlds."""
    release = minimiser_release(pure=pure)

    def world(target: float) -> World:
        def answer(noise: Noise) -> np.ndarray:
            door = curator(target, Absolute(), release, noise)
            return door.minimiser("m", OBJECTIVE, 0.5).coefficients

        return World(answer)

    return world(0.0), world(1.0)


def request(algorithm: str) -> FitRequest:
    budget = Budget.from_request(0.1, 1e-5, None, None)
    return FitRequest(sparsity=None, budget=budget, dataset="synthetic", algorithm=algorithm)


def models() -> tuple[World, World]:
    """The numbers of a model after one step, of worlds as far apart as neighbours can be."""
    asked = replace(request("dp-gd"), loss="logistic", iterations=1)

    def world(fit: LinearFit) -> World:
        return World(
            lambda noise: numbers_of(fit.plan.algorithm.run(fit.curator(noise), _ignore), 3)
        )

    first, second = linear_worlds(asked, 20, 3)
    return world(first), world(second)


def _ignore(done: int) -> None:
    pass


KINDS = {
    "gaussian gradient": gradients(gaussian()),
    "laplace gradient": gradients(laplace()),
    "gaussian minimiser": minimisers(pure=False),
    "laplace minimiser": minimisers(pure=True),
    "model": models(),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_pair = pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (NumpyLaplace(), "laplace gradient"),
        (BoxMuller(), "gaussian gradient"),
        (SinglePrecision(), "gaussian gradient"),
    ],
    ids=["laplace", "box-muller", "single"],
)


@each_pair
def test_naive_noise_tells_the_world(sampler: Sampler, kind: str) -> None:
    """Floats where our noise stands give the record away, at a charge near zero.

    A guesser would pass by chance with probability below 1e-9.
    """
    assert right_guesses(KINDS[kind], sampler, sampler, 40) >= 38


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (NumpyLaplace(), "laplace minimiser"),
        (NumpyLaplace(), "gaussian minimiser"),
        (SinglePrecision(), "model"),
    ],
    ids=["laplace", "gaussian", "model"],
)
def test_naive_noise_tells_the_world_from_anything_released(sampler: Sampler, kind: str) -> None:
    """From minimisers and model files, too."""
    assert right_guesses(KINDS[kind], sampler, sampler, 40) >= 38


@each_pair
def test_our_noise_tells_nothing(sampler: Sampler, kind: str) -> None:
    """The same attackers are at chance against the released integers."""
    trials = 60 if isinstance(sampler, BoxMuller) else 100
    assert at_chance(right_guesses(KINDS[kind], Ours(), sampler, trials), trials)


@each_kind
def test_what_we_release_is_possible_in_both_worlds(kind: str) -> None:
    """To the last bit: an integer explains each number in the other world as in the right one."""
    worlds = KINDS[kind]
    for trial in range(20):
        for truth in worlds:
            released = truth.release(Ours().noise(trial))
            counts = [world.explained(released, Ours()) for world in worlds]
            assert counts[0] == counts[1] > 0


@each_kind
def test_integers_do_not_explain_floats(kind: str) -> None:
    """That test can fail: of noise in double precision they explain less than half."""
    worlds = KINDS[kind]
    released = worlds[0].release(NumpyLaplace().noise(1))
    assert all(world.explained(released, Ours()) < len(released) / 2 for world in worlds)


@pytest.mark.parametrize("algorithm", ["median-objective", "median-irls"])
def test_a_minimiser_in_a_model_lies_on_a_public_grid(algorithm: str) -> None:
    """Whatever random vector went before: coefficients are multiples of the planned step."""
    asked = replace(request(algorithm), loss="absolute")
    steps = set()
    for fit in linear_worlds(asked, 20, 3):
        (release,) = [one for one in fit.plan.releases if isinstance(one, MinimiserRelease)]
        step = release.step / fit.plan.grid.row_norm
        steps.add(step)
        for seed in range(10):
            model = fit.plan.algorithm.run(fit.curator(Ours().noise(seed)), _ignore)
            multiples = model.values / step
            assert 0.0 < np.abs(multiples).max() < 2.0**42
            assert np.abs(multiples - np.rint(multiples)).max() < 2.0**-9
    assert len(steps) == 1
