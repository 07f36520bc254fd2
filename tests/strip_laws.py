"""The laws of the strip sampler, from their definitions, for tests.

Formulas are evaluated by mpmath to 400 bits and share nothing with the package's integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import accumulate
from math import sqrt

import numpy as np
import pytest
from mpmath import ctx_mp, mpf
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import laplace

from dpfit.privacy.mechanisms.gaussian import GaussianNoise, StandardNormal
from dpfit.privacy.mechanisms.huber import HuberNoise, standard_huber
from dpfit.privacy.mechanisms.laplace import LaplaceNoise, StandardLaplace
from dpfit.privacy.mechanisms.strip_tables import (
    CELL_BITS,
    STRIP_BITS,
    StripLaw,
    StripTables,
    strip_tables,
)
from dpfit.privacy.mechanisms.strips import StripNoise
from dpfit.privacy.random_bits import BitSource, RunKey

# A context of its own: the global one may be changed by any module.
MP = ctx_mp.MPContext()
MP.prec = 400
H = MP.mpf(2) ** -STRIP_BITS

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """A law, in the notation of ``strip_tables``, and what the tests of its sampler ask."""

    name: str
    law: StripLaw
    noise_class: Callable[..., StripNoise]
    noise_call: str  # how a program makes it from ``bits``
    mass: mpf
    height: Callable[[int], mpf]  # g(j h)
    heights_from: Callable[[int], mpf]  # sum of g(i h) over i >= j
    ratio: Callable[[int, mpf], mpf]  # g((j + x) h) / g(j h)
    probability: Callable[[int], mpf]  # of strip j, on one side
    table_end: float  # values beyond always come from the remainder
    # Units between the certified bounds of the mass and of g(j h).
    mass_width: int
    height_width: Callable[[int], int]
    # Strips whose thresholds and levels are tried, on both sides of the table's end and far out;
    # strips that only a tie at the top threshold reaches, and what floats may err there, in bands.
    threshold_strips: tuple[int, ...]
    level_strips: tuple[int, ...]
    tail_strips: tuple[int, ...]
    far_strips: tuple[int, ...]
    far_error: float
    known_values: list[int]
    known_digest: str
    # The law in floats: distribution function, and the value and its size standardised.
    cdf: Callable[[Reals], Reals]
    scores: Callable[[Reals], tuple[Reals, Reals]]
    moments: tuple[tuple[int, float, float], ...]  # n, E X^n, E X^(2 n)
    edges: tuple[int, ...]  # of tails that are counted
    bins: tuple[int, int]  # -log2 of their width, and where they end

    def noise(self, seed: int = 7, **options: float) -> StripNoise:
        return self.noise_class(BitSource(RunKey.from_seed(seed)), **options)

    @property
    def tables(self) -> StripTables:
        return strip_tables(self.law)

    @property
    def top(self) -> int:
        """The strip of the last threshold."""
        return len(self.tables.thresholds) - 1

    @property
    def tried_threshold_strips(self) -> tuple[int, ...]:
        return (*self.threshold_strips, self.top - 3, self.top - 1, self.top)

    @property
    def tried_tail_strips(self) -> tuple[int, ...]:
        return (self.top + 1, self.top + 100, *self.tail_strips)

    def rectangle(self, strip: int) -> mpf:
        """c_j."""
        counts = self.tables.counts
        return (counts[strip] if strip < len(counts) else 0) * self.mass / (2**CELL_BITS * H)

    def rest(self, strip: int) -> mpf:
        """M_j."""
        return self.height(strip) - self.rectangle(strip)

    @cached_property
    def total(self) -> mpf:
        """Sum of all M_j."""
        return self.heights_from(0) - sum(map(self.rectangle, range(len(self.tables.counts))))

    @cached_property
    def cumulative(self) -> list[int]:
        """floor(2^320 sum_{i<=j} M_i / sum M), as far as a test asks."""
        sums = accumulate(map(self.rest, range(self.tail_strips[-1] + 1)))
        return [int(MP.floor(partial / self.total * MP.mpf(2) ** 320)) for partial in sums]


@cache
def _normal_height(strip: int) -> mpf:
    return MP.exp(-((strip * H) ** 2) / 2)


@cache
def _laplace_height(strip: int) -> mpf:
    return MP.exp(-strip * H)


def _normal_probability(strip: int) -> mpf:
    root = MP.sqrt(2)
    return (MP.erfc(strip * H / root) - MP.erfc((strip + 1) * H / root)) / 2


NORMAL = Case(
    name="normal",
    law=StandardNormal(),
    noise_class=GaussianNoise,
    noise_call="GaussianNoise(bits)",
    mass=MP.sqrt(2 * MP.pi),
    height=_normal_height,
    heights_from=lambda j: sum(map(_normal_height, range(j, 2200))),
    ratio=lambda j, x: MP.exp(-H * H * x * (2 * j + x) / 2),
    probability=_normal_probability,
    table_end=221 / 64,
    mass_width=3,
    height_width=lambda j: 2 * j * j,
    threshold_strips=(0, 1, 2, 57, 110, 220, 221, 400, 600),
    level_strips=(0, 1, 50, 220, 221, 500, 580),
    tail_strips=(900, 1000),
    far_strips=(1000, 1350),
    far_error=2**-2,
    known_values=[
        -636973208050,
        -1104107594706,
        -765668615924,
        1419342116302,
        -162082926811,
        -670146208411,
    ],
    known_digest="3a735aebb9f59cc9988a891181edea405340905729972c9481a9951dcffe5d11",
    cdf=ndtr,
    scores=lambda x: (x, (x**2 - 1) / sqrt(2)),
    moments=((1, 0, 1), (2, 1, 3), (4, 3, 105)),
    edges=(3, 4, 5),
    bins=(9, 5),
)

LAPLACE = Case(
    name="laplace",
    law=StandardLaplace(),
    noise_class=LaplaceNoise,
    noise_call="LaplaceNoise(bits)",
    mass=MP.mpf(2),
    height=_laplace_height,
    heights_from=lambda j: _laplace_height(j) / (1 - MP.exp(-H)),
    ratio=lambda j, x: MP.exp(-H * x),
    probability=lambda j: (_laplace_height(j) - _laplace_height(j + 1)) / 2,
    table_end=399 / 64,
    mass_width=0,
    height_width=lambda j: 4 * j,
    threshold_strips=(0, 1, 57, 200, 398, 399, 1000, 3000),
    level_strips=(0, 1, 50, 398, 399, 1000, 2500),
    tail_strips=(5000, 8000),
    far_strips=(5000, 13_965),
    far_error=2**-8,
    known_values=[
        -636973208050,
        -1293086155730,
        -817208223476,
        1797299238350,
        -144903057627,
        -704505946779,
    ],
    known_digest="c1f047ba93598eccaff0d0461cc7aee7b6bc00c5ef1f1a48692a73e168acba4b",
    cdf=laplace.cdf,
    scores=lambda x: (x / sqrt(2), np.abs(x) - 1),
    moments=((1, 0, 2), (2, 2, 24), (4, 24, 40320)),
    edges=(6, 8, 10, 12),
    bins=(8, 8),
)

KNEE = 2
_KNEE_STRIPS = KNEE << STRIP_BITS
_AT_THE_KNEE = MP.exp(-(MP.mpf(KNEE) ** 2) / 2)
HUBER_MASS = MP.sqrt(2 * MP.pi) * MP.erf(KNEE / MP.sqrt(2)) + 2 * _AT_THE_KNEE / KNEE


@cache
def _huber_height(strip: int) -> mpf:
    if strip <= _KNEE_STRIPS:
        return _normal_height(strip)
    return _AT_THE_KNEE * MP.exp(-KNEE * (strip * H - KNEE))


def _huber_heights_from(strip: int) -> mpf:
    start = max(strip, _KNEE_STRIPS)
    beyond = _huber_height(start) / (1 - MP.exp(-KNEE * H))
    return sum(map(_normal_height, range(strip, _KNEE_STRIPS)), beyond)


def _huber_ratio(strip: int, place: mpf) -> mpf:
    if strip < _KNEE_STRIPS:
        return NORMAL.ratio(strip, place)
    return MP.exp(-KNEE * H * place)


def _huber_probability(strip: int) -> mpf:
    if strip < _KNEE_STRIPS:
        return _normal_probability(strip) * NORMAL.mass / HUBER_MASS
    return (_huber_height(strip) - _huber_height(strip + 1)) / KNEE / HUBER_MASS


def _huber_cdf(x: Reals) -> Reals:
    mass, knee = float(HUBER_MASS), float(KNEE)
    tail = np.exp(-(knee**2) / 2 - knee * np.maximum(np.abs(x) - knee, 0.0)) / knee / mass
    within = sqrt(2 * np.pi) * (ndtr(np.minimum(-np.abs(x), 0.0)) - ndtr(-knee)) / mass
    upper = np.where(np.abs(x) < knee, within + np.exp(-(knee**2) / 2) / knee / mass, tail)
    return np.where(x < 0.0, upper, 1.0 - upper)


def _huber_moment(power: int) -> float:
    """E X^n, n even: the normal part by the incomplete gamma function, the tail by parts."""
    half = MP.mpf(power + 1) / 2
    inner = MP.mpf(2) ** (half - 1) * MP.gammainc(half, 0, MP.mpf(KNEE) ** 2 / 2)
    beyond = MP.gammainc(power + 1, KNEE * KNEE) / MP.mpf(KNEE) ** (power + 1)
    return float(2 * (inner + _AT_THE_KNEE * MP.exp(KNEE * KNEE) * beyond) / HUBER_MASS)


_HUBER_DEVIATION = sqrt(_huber_moment(2))

HUBER = Case(
    name="huber",
    law=standard_huber(Fraction(KNEE)),
    noise_class=partial(HuberNoise, knee=Fraction(KNEE)),
    noise_call=f"HuberNoise(bits, Fraction({KNEE}))",
    mass=HUBER_MASS,
    height=_huber_height,
    heights_from=_huber_heights_from,
    ratio=_huber_ratio,
    probability=_huber_probability,
    table_end=256 / 64,
    mass_width=3,
    height_width=lambda j: 2 * j * j,
    threshold_strips=(0, 1, 57, 127, 128, 129, 255, 256, 600, 1000),
    level_strips=(0, 1, 50, 127, 128, 255, 256, 600, 1200),
    tail_strips=(2500, 4000),
    far_strips=(2500, 7000),
    far_error=2**-8,
    known_values=[
        -636973208050,
        -1121287463890,
        -782848485108,
        1436521985486,
        -162082926811,
        -687326077595,
    ],
    known_digest="44b57d03d309c130a02dacc3f48bea0958ea4b8c9a989510c5fe6dea4f83a5ce",
    cdf=_huber_cdf,
    scores=lambda x: (
        x / _HUBER_DEVIATION,
        (x**2 / _HUBER_DEVIATION**2 - 1) / sqrt(_huber_moment(4) / _HUBER_DEVIATION**4 - 1),
    ),
    moments=tuple((n, 0.0 if n % 2 else _huber_moment(n), _huber_moment(2 * n)) for n in (1, 2, 4)),
    edges=(4, 5, 6),
    bins=(8, 6),
)

LAWS = (NORMAL, LAPLACE, HUBER)

each_law = pytest.mark.parametrize("case", LAWS, ids=lambda case: case.name)


def each_law_with(argument: str, field: str) -> pytest.MarkDecorator:
    """Each law with each value its field lists."""
    rows = [
        pytest.param(case, value, id=f"{case.name}-{value}".replace(" ", ""))
        for case in LAWS
        for value in getattr(case, field)
    ]
    return pytest.mark.parametrize(("case", argument), rows)
