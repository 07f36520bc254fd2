"""The white-box attacker: sees every released value, and knows both data sets.

Between two worlds that differ in one record the best test is the likelihood ratio of everything
that was released (Neyman and Pearson). Of a sum with noise it needs the sums of both worlds at the
same public question, which an attacker who knows both data sets computes: here by asking the same
question of two more curators, one of each world, whose noise is silenced, and of a third whose
noise is one unit, for the scale. A minimiser has a likelihood of its own (:mod:`.minimisers`). The
curator under attack is the real one with its real noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from dpfit.audit.minimisers import log_density, random_vector
from dpfit.audit.stand_ins import Floats, Overheard, Ruler, Silence
from dpfit.privacy.mechanisms.noise import Noise
from dpfit.privacy.point import Point

_PUBLIC: Final = ("zero_point", "noise_scale")  # no release
_MOST_EXACT: Final = 6
_TINY: Final = 1e-300


class Attacked(Protocol):
    """A planned fit of any kind."""

    plan: Any

    def curator(self, noise: Noise) -> Any:
        """The door to its records."""


class Witness:
    """A curator that also adds up the evidence in what it hands out.

    Parameters
    ----------
    worlds : pair of planned fits
        Without and with the canary.
    real : planned fit
        The one that runs: one of them, or one between them.
    noise : Noise
        Of the run, under a key of its own.
    columns : int
        How many the released gradients are of, where :attr:`by_column` is asked for.

    Attributes
    ----------
    log_ratio : float
        Of the second world to the first.
    by_column : float64 array, shape (columns,)
        The same, of each column of the released gradients alone.
    """

    def __init__(
        self, worlds: Sequence[Attacked], real: Attacked, noise: Noise, *, columns: int = 0
    ) -> None:
        self._worlds = worlds
        self._noise = Overheard(noise)
        self._real = real.curator(self._noise)
        self._silences = (Silence(), Silence())
        self._means = [
            world.curator(silence) for world, silence in zip(worlds, self._silences, strict=True)
        ]
        self._ruler = Ruler()
        self._scaled = worlds[0].curator(self._ruler)
        self.log_ratio = 0.0
        self._columns = columns
        self.by_column: Floats = np.zeros(columns)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._real, name)
        if name in _PUBLIC or not callable(asked):
            return asked
        return lambda *args, **options: self._asked(name, asked, args, options)

    def _asked(self, name: str, asked: Callable[..., Any], args: Any, options: Any) -> Any:
        """The real answer; in passing, what it says about the world."""
        for silence in self._silences:
            silence.log_odds = None
        answer = asked(*args, **options)
        first, second, scaled = (
            getattr(curator, name)(*args, **options) for curator in (*self._means, self._scaled)
        )
        odds = [silence.log_odds for silence in self._silences]
        if odds[0] is not None and odds[1] is not None:
            self.log_ratio += _of_choice(odds[0], odds[1], self._noise.chosen)
        elif name == "minimiser" and random_vector(self._worlds[0]) is not None:
            _, objective, centre = args
            without, present = (
                log_density(world, objective, centre, flat(answer), flat(mean))
                for world, mean in zip(self._worlds, (first, second), strict=True)
            )
            self.log_ratio += present - without
        elif answer is not None:
            ratios = self._of_sums(answer, first, second, scaled)
            self.log_ratio += float(ratios.sum())
            # Not of every algorithm: once columns are screened, gradients are on fewer.
            if self._columns and isinstance(answer, Point):
                self.by_column += ratios[: self._columns]
        return answer

    def _of_sums(self, answer: Any, first: Any, second: Any, scaled: Any) -> Floats:
        mean = flat(first)
        unit = flat(scaled) - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(unit > 0.0, (flat(answer) - mean) / unit, 0.0)
            shift = np.where(unit > 0.0, (flat(second) - mean) / unit, 0.0)
        return self._ruler.log_ratio(z, shift)


def flat(value: Any) -> Floats:
    """All numbers of a released value in one row."""
    if isinstance(value, Point):
        value = (value.coefficients, value.intercept)
    if isinstance(value, tuple):
        return np.concatenate([flat(part) for part in value])
    return np.asarray(value, np.float64).ravel()


def _of_choice(first: Floats, second: Floats, chosen: Any) -> float:
    return _log_chance(second, chosen) - _log_chance(first, chosen)


def _log_chance(log_odds: Floats, chosen: Any) -> float:
    """That the k largest of ``log_odds`` plus Gumbel noise are these, in any order.

    Choices fall one by one without replacement; the sum over their orders runs over subsets. Of
    more than a few, as if they were drawn with replacement, which leaves a test that is not best.
    """
    odds = np.exp(log_odds - log_odds.max())
    k = len(chosen)
    if k > _MOST_EXACT:
        return float(log_odds[chosen].sum() - k * (log_odds.max() + np.log(odds.sum())))
    inside = odds[chosen]
    outside = float(np.delete(odds, chosen).sum())
    chance = np.zeros(1 << k)
    chance[0] = 1.0
    for subset in range(1, 1 << k):
        for j in range(k):
            if subset >> j & 1:
                before = subset ^ (1 << j)
                left = outside + sum(inside[i] for i in range(k) if not before >> i & 1)
                chance[subset] += chance[before] * inside[j] / max(left, _TINY)
    return float(np.log(max(chance[-1], _TINY)))
