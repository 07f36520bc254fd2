"""What was released, said completely enough that anyone can recompute the privacy cost.

An event is a frozen value. Its fields never change their meaning: a new kind of release gets a new
class. Reading a ledger builds events from a fixed table of names; nothing named in a file is ever
imported. Unknown kinds are refused here and by the accountant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, TypeVar, final

from dpfit.privacy.adjacency import Adjacency, PerAdjacency

T = TypeVar("T")

JsonValue = str | int | dict[str, "str | int"] | list[list[dict[str, "JsonValue"]]]
"""What the fields of a serialised event are made of."""

_FRACTION = re.compile(r"(0|[1-9][0-9]{0,3999})/([1-9][0-9]{0,3999})", re.ASCII)
_LABEL_LIMIT = 200
_LEAST_ETA = Fraction(1, 1 << 20) - 1  # within these limits floats know what a search costs
_LEAST_GAMMA = Fraction(1, 1 << 64)
_MOST_GAMMA = 1 - Fraction(1, 1 << 32)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of all events: something done ``count`` times, each time at the same cost.

    Attributes
    ----------
    label : str
        What was released, for the reader of a ledger ("gradient", "column screen").
    count : int
        How many times, >= 1.
    """

    mechanism: ClassVar[str]
    label: str
    count: int = 1

    def __post_init__(self) -> None:
        _check_label(self.label)
        _check_positive_int("count", self.count)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the event as a JSON object; :func:`event_from_json` is the inverse."""
        return {"mechanism": self.mechanism, "label": self.label, "count": self.count}


@final
@dataclass(frozen=True, kw_only=True)
class GaussianEvent(Event):
    """Release of an integer vector plus Gaussian noise rounded to integers.

    One application costs mu^2 = squared_sensitivity / scale^2 exactly (post-processing of the true
    Gaussian mechanism, exactness.md section 3).

    Attributes
    ----------
    squared_sensitivity : PerAdjacency[int]
        Exact squared l2 sensitivity, in squared integer units, >= 1.
    scale : int
        Standard deviation of the noise in the same units, >= 1.
    """

    mechanism: ClassVar[str] = "gaussian"
    squared_sensitivity: PerAdjacency[int]
    scale: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive_int("scale", self.scale)
        _check_integers("squared_sensitivity", self.squared_sensitivity)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {
            "squared_sensitivity": _integers_to_json(self.squared_sensitivity),
            "scale": self.scale,
        }


@final
@dataclass(frozen=True, kw_only=True)
class LaplaceEvent(Event):
    """Release of an integer vector plus Laplace noise rounded to integers.

    Every coordinate gets its own ``floor(scale X)``, X standard Laplace: post-processing of the
    true Laplace mechanism (exactness.md section 5).

    Attributes
    ----------
    l1_sensitivity : PerAdjacency[int]
        Exact l1 sensitivity, in integer units, >= 1.
    squared_sensitivity : PerAdjacency[int]
        Exact squared l2 sensitivity, >= 1 and at most the square of the l1 sensitivity.
    scale : int
        Scale b of the noise in the same units, >= 1; its standard deviation is sqrt(2) b.
    """

    mechanism: ClassVar[str] = "laplace"
    l1_sensitivity: PerAdjacency[int]
    squared_sensitivity: PerAdjacency[int]
    scale: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive_int("scale", self.scale)
        _check_both_norms(self.l1_sensitivity, self.squared_sensitivity)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {
            "l1_sensitivity": _integers_to_json(self.l1_sensitivity),
            "squared_sensitivity": _integers_to_json(self.squared_sensitivity),
            "scale": self.scale,
        }


@final
@dataclass(frozen=True, kw_only=True)
class HuberEvent(Event):
    """Release of an integer vector plus Huber noise rounded to integers.

    Every coordinate gets its own ``floor(scale X)``, X of density proportional to ``exp(-rho(x))``
    with ``rho(x) = x^2 / 2`` up to the knee, and linear beyond (methods, 4.1).

    Attributes
    ----------
    l1_sensitivity : PerAdjacency[int]
        Exact l1 sensitivity, in integer units, >= 1.
    squared_sensitivity : PerAdjacency[int]
        Exact squared l2 sensitivity, >= 1 and at most the square of the l1 sensitivity.
    scale : int
        tau, in the same units, >= 1.
    knee : Fraction
        alpha, > 0.
    """

    mechanism: ClassVar[str] = "huber"
    l1_sensitivity: PerAdjacency[int]
    squared_sensitivity: PerAdjacency[int]
    scale: int
    knee: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive_int("scale", self.scale)
        _check_both_norms(self.l1_sensitivity, self.squared_sensitivity)
        _check_fraction("knee", self.knee)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {
            "l1_sensitivity": _integers_to_json(self.l1_sensitivity),
            "squared_sensitivity": _integers_to_json(self.squared_sensitivity),
            "scale": self.scale,
            "knee": _fraction_text(self.knee),
        }


@final
@dataclass(frozen=True, kw_only=True)
class ZcdpEvent(Event):
    """A release known only to be rho-zero-concentrated differentially private.

    Attributes
    ----------
    rho : PerAdjacency[Fraction]
        Cost of one application, > 0.
    """

    mechanism: ClassVar[str] = "zcdp"
    rho: PerAdjacency[Fraction]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_fractions("rho", self.rho)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {"rho": _fractions_to_json(self.rho)}


@final
@dataclass(frozen=True, kw_only=True)
class PureEvent(Event):
    """A release known only to be epsilon-differentially private.

    Attributes
    ----------
    epsilon : PerAdjacency[Fraction]
        Cost of one application, > 0.
    """

    mechanism: ClassVar[str] = "pure"
    epsilon: PerAdjacency[Fraction]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_fractions("epsilon", self.epsilon)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {"epsilon": _fractions_to_json(self.epsilon)}


@final
@dataclass(frozen=True, kw_only=True)
class BoundedRangeEvent(Event):
    """A release whose log-likelihood ratio varies by at most eta over its outputs.

    The exponential mechanism, equivalently the largest score after Gumbel noise (Durfee and Rogers,
    NeurIPS 2019). A one-shot selection of k columns is ``count = k`` of these.

    Attributes
    ----------
    eta : PerAdjacency[Fraction]
        Range of one application, > 0: twice the score sensitivity over the Gumbel scale.
    """

    mechanism: ClassVar[str] = "bounded-range"
    eta: PerAdjacency[Fraction]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_fractions("eta", self.eta)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {"eta": _fractions_to_json(self.eta)}


class MinimiserLaw(StrEnum):
    """The law of the vector that perturbs an objective or its minimiser."""

    L2 = "l2"
    """Density proportional to ``exp(-|b|_2 / scale)``."""
    L1 = "l1"
    """Density proportional to ``exp(-|b|_1 / scale)``: independent Laplace coordinates."""
    GAUSSIAN = "gaussian"
    """Independent normal coordinates of standard deviation ``scale``."""


@final
@dataclass(frozen=True, kw_only=True)
class MinimiserEvent(Event):
    """The minimiser of an objective with a random linear term; or one plus a random vector.

    The random term b of the objective is a bijective function of its minimiser. Neighbours map one
    minimiser to terms that are at most ``sensitivity`` apart in the law's norm (l2 for Gaussian),
    and the determinants of the two maps are at most ``1 + jacobian`` apart. A random vector that is
    added to the minimiser has ``jacobian`` zero and the minimiser's own sensitivity.

    Attributes
    ----------
    law : MinimiserLaw
        Of the random vector.
    sensitivity : PerAdjacency[Fraction]
        In the law's norm, > 0.
    scale : Fraction
        Of the law, > 0.
    jacobian : PerAdjacency[Fraction]
        q, >= 0: the ratio of determinants is at most 1 + q.
    """

    mechanism: ClassVar[str] = "minimiser"
    law: MinimiserLaw
    sensitivity: PerAdjacency[Fraction]
    scale: Fraction
    jacobian: PerAdjacency[Fraction]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.law, MinimiserLaw):
            raise ValueError(f"law must be a MinimiserLaw, not {_kind(self.law)}")
        _check_fractions("sensitivity", self.sensitivity)
        _check_fraction("scale", self.scale)
        _check_fractions("jacobian", self.jacobian, or_zero=True)

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {
            "law": str(self.law),
            "sensitivity": _fractions_to_json(self.sensitivity),
            "scale": _fraction_text(self.scale),
            "jacobian": _fractions_to_json(self.jacobian),
        }


@final
@dataclass(frozen=True, kw_only=True)
class RandomStoppingEvent(Event):
    """The best of K independent runs, K random and secret; each run is drawn from a public list.

    K has the truncated negative binomial law: ``P(K = k)`` is proportional to ``(1 - gamma)^k
    prod_{l < k} (l + eta) / (l + 1)`` for k >= 1, at eta = 0 to ``(1 - gamma)^k / k``. One run's
    output and its score are released, those of the run with the best score (Papernot and Steinke,
    2021, section 3).

    Attributes
    ----------
    eta : Fraction
        From -1 + 2^-20 to 1: 0 is the logarithmic law, 1 the geometric one.
    gamma : Fraction
        From 2^-64 to 1 - 2^-32.
    runs : tuple of tuples of Event
        What each run that may be drawn releases; equal lists are listed once.
    """

    mechanism: ClassVar[str] = "random-stopping"
    eta: Fraction
    gamma: Fraction
    runs: tuple[tuple[Event, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("eta", self.eta), ("gamma", self.gamma)):
            if not isinstance(value, Fraction):
                raise ValueError(f"{name} must be a Fraction, not {_kind(value)}")
        if not _LEAST_ETA <= self.eta <= 1:
            raise ValueError("eta must lie from -1 + 2^-20 to 1")
        if not _LEAST_GAMMA <= self.gamma <= _MOST_GAMMA:
            raise ValueError("gamma must lie from 2^-64 to 1 - 2^-32")
        if not self.runs or not all(self.runs):
            raise ValueError("runs must list the events of at least one run")
        if any(isinstance(event, RandomStoppingEvent) for run in self.runs for event in run):
            raise ValueError("a run must not be a search itself")

    def to_json(self) -> dict[str, JsonValue]:
        return super().to_json() | {
            "eta": _fraction_text(self.eta),
            "gamma": _fraction_text(self.gamma),
            "runs": [[event.to_json() for event in run] for run in self.runs],
        }


@final
@dataclass(frozen=True, kw_only=True)
class NonPrivateEvent(Event):
    """A release without protection: a run without noise, or with noise anyone can recompute."""

    mechanism: ClassVar[str] = "non-private"


# --- reading -------------------------------------------------------------------------------------


def event_from_json(value: object) -> Event:
    """Build an event from its JSON object.

    Raises
    ------
    ValueError
        For an unknown mechanism, a missing or unknown key, or a value of the wrong type or range.
    """
    if not isinstance(value, dict):
        raise ValueError(f"an event must be a JSON object, not {_kind(value)}")
    fields: dict[object, object] = dict(value)
    mechanism = fields.pop("mechanism", None)
    if mechanism == GaussianEvent.mechanism:
        return _read_gaussian(fields)
    if mechanism == LaplaceEvent.mechanism:
        return _read_laplace(fields)
    if mechanism == HuberEvent.mechanism:
        return _read_huber(fields)
    if mechanism == ZcdpEvent.mechanism:
        label, count, rho = _read_fractions(fields, "rho")
        return ZcdpEvent(label=label, count=count, rho=rho)
    if mechanism == PureEvent.mechanism:
        label, count, epsilon = _read_fractions(fields, "epsilon")
        return PureEvent(label=label, count=count, epsilon=epsilon)
    if mechanism == BoundedRangeEvent.mechanism:
        label, count, eta = _read_fractions(fields, "eta")
        return BoundedRangeEvent(label=label, count=count, eta=eta)
    if mechanism == MinimiserEvent.mechanism:
        return _read_minimiser(fields)
    if mechanism == RandomStoppingEvent.mechanism:
        return _read_stopping(fields)
    if mechanism == NonPrivateEvent.mechanism:
        _check_keys(fields, {"label", "count"})
        return NonPrivateEvent(label=_text(fields, "label"), count=_integer(fields, "count"))
    raise ValueError(f"unknown mechanism {mechanism!r:.100}")


def _read_gaussian(fields: dict[object, object]) -> GaussianEvent:
    _check_keys(fields, {"label", "count", "squared_sensitivity", "scale"})
    return GaussianEvent(
        label=_text(fields, "label"),
        count=_integer(fields, "count"),
        squared_sensitivity=_integers(fields, "squared_sensitivity"),
        scale=_integer(fields, "scale"),
    )


def _read_laplace(fields: dict[object, object]) -> LaplaceEvent:
    _check_keys(fields, {"label", "count", "l1_sensitivity", "squared_sensitivity", "scale"})
    return LaplaceEvent(
        label=_text(fields, "label"),
        count=_integer(fields, "count"),
        l1_sensitivity=_integers(fields, "l1_sensitivity"),
        squared_sensitivity=_integers(fields, "squared_sensitivity"),
        scale=_integer(fields, "scale"),
    )


def _read_minimiser(fields: dict[object, object]) -> MinimiserEvent:
    _check_keys(fields, {"label", "count", "law", "sensitivity", "scale", "jacobian"})
    return MinimiserEvent(
        label=_text(fields, "label"),
        count=_integer(fields, "count"),
        law=MinimiserLaw(_text(fields, "law")),
        sensitivity=_fractions(fields, "sensitivity"),
        scale=_fraction(fields, "scale"),
        jacobian=_fractions(fields, "jacobian"),
    )


def _read_stopping(fields: dict[object, object]) -> RandomStoppingEvent:
    _check_keys(fields, {"label", "count", "eta", "gamma", "runs"})
    runs = fields["runs"]
    if not isinstance(runs, list) or not all(isinstance(run, list) for run in runs):
        raise ValueError("runs must be a list of lists of events")
    nested = RandomStoppingEvent.mechanism
    for event in (event for run in runs for event in run):
        if isinstance(event, dict) and event.get("mechanism") == nested:  # before any recursion
            raise ValueError("a run must not be a search itself")
    return RandomStoppingEvent(
        label=_text(fields, "label"),
        count=_integer(fields, "count"),
        eta=_signed_fraction(fields, "eta"),
        gamma=_fraction(fields, "gamma"),
        runs=tuple(tuple(event_from_json(event) for event in run) for run in runs),
    )


def _read_huber(fields: dict[object, object]) -> HuberEvent:
    _check_keys(
        fields, {"label", "count", "l1_sensitivity", "squared_sensitivity", "scale", "knee"}
    )
    return HuberEvent(
        label=_text(fields, "label"),
        count=_integer(fields, "count"),
        l1_sensitivity=_integers(fields, "l1_sensitivity"),
        squared_sensitivity=_integers(fields, "squared_sensitivity"),
        scale=_integer(fields, "scale"),
        knee=_fraction(fields, "knee"),
    )


def _integers(fields: dict[object, object], key: str) -> PerAdjacency[int]:
    pair = _pair_fields(fields, key)
    return PerAdjacency(
        replace_one=_integer(pair, Adjacency.REPLACE_ONE.value),
        add_remove=_integer(pair, Adjacency.ADD_REMOVE.value),
    )


def _read_fractions(
    fields: dict[object, object], key: str
) -> tuple[str, int, PerAdjacency[Fraction]]:
    _check_keys(fields, {"label", "count", key})
    return _text(fields, "label"), _integer(fields, "count"), _fractions(fields, key)


def _fractions(fields: dict[object, object], key: str) -> PerAdjacency[Fraction]:
    pair = _pair_fields(fields, key)
    return PerAdjacency(
        replace_one=_fraction(pair, Adjacency.REPLACE_ONE.value),
        add_remove=_fraction(pair, Adjacency.ADD_REMOVE.value),
    )


def _pair_fields(fields: dict[object, object], key: str) -> dict[object, object]:
    value = fields[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be an object with one number per adjacency")
    pair: dict[object, object] = dict(value)
    _check_keys(pair, {adjacency.value for adjacency in Adjacency})
    return pair


def _check_keys(fields: dict[object, object], expected: set[str]) -> None:
    missing = sorted(expected - fields.keys())
    unknown = sorted(str(key) for key in fields if key not in expected)
    if missing:
        raise ValueError(f"missing key: {', '.join(missing)}")
    if unknown:
        raise ValueError(f"unknown key: {', '.join(unknown):.200}")


def _integer(fields: dict[object, object], key: str) -> int:
    value = fields[key]
    # bool is a subclass of int, and JSON's 2.0 is not an integer anyone should sum exactly.
    if type(value) is not int:
        raise ValueError(f"{key} must be an integer, not {_kind(value)}")
    return value


def _text(fields: dict[object, object], key: str) -> str:
    value = fields[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a string, not {_kind(value)}")
    return value


def _signed_fraction(fields: dict[object, object], key: str) -> Fraction:
    text = _text(fields, key)
    if not text.startswith("-") or text == "-0/1":
        return _fraction(fields, key)
    return -_fraction({key: text[1:]}, key)


def _fraction(fields: dict[object, object], key: str) -> Fraction:
    text = _text(fields, key)
    match = _FRACTION.fullmatch(text)
    if match is None:
        raise ValueError(f"{key} must be a fraction written 'p/q', not {text!r:.100}")
    value = Fraction(int(match[1]), int(match[2]))
    if _fraction_text(value) != text:
        raise ValueError(f"{key} must be a fraction in lowest terms, not {text!r:.100}")
    return value


# --- checks and writing --------------------------------------------------------------------------


def _check_label(label: str) -> None:
    if not isinstance(label, str) or not label or len(label) > _LABEL_LIMIT:
        raise ValueError(f"label must be a text of 1 to {_LABEL_LIMIT} characters")
    if not label.isprintable():  # a ledger is shown on terminals
        raise ValueError("label must not contain control characters")


def _check_positive_int(name: str, value: int) -> None:
    if type(value) is not int:
        raise ValueError(f"{name} must be an integer, not {_kind(value)}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, not {value}")


def _check_integers(name: str, pair: PerAdjacency[int]) -> None:
    for adjacency in Adjacency:
        _check_positive_int(f"{name} ({adjacency})", _pair(name, pair).under(adjacency))


def _check_both_norms(l1: PerAdjacency[int], squared_l2: PerAdjacency[int]) -> None:
    _check_integers("l1_sensitivity", l1)
    _check_integers("squared_sensitivity", squared_l2)
    for adjacency in Adjacency:
        if squared_l2.under(adjacency) > l1.under(adjacency) ** 2:
            raise ValueError(
                f"squared_sensitivity ({adjacency}) must be at most l1_sensitivity squared"
            )


def _check_fractions(name: str, pair: PerAdjacency[Fraction], *, or_zero: bool = False) -> None:
    for adjacency in Adjacency:
        _check_fraction(
            f"{name} ({adjacency})", _pair(name, pair).under(adjacency), or_zero=or_zero
        )


def _check_fraction(name: str, value: Fraction, *, or_zero: bool = False) -> None:
    if not isinstance(value, Fraction):
        raise ValueError(f"{name} must be a Fraction, not {_kind(value)}")
    if value < 0 or (value == 0 and not or_zero):
        raise ValueError(f"{name} must be positive, not {value}")


def _pair(name: str, pair: PerAdjacency[T]) -> PerAdjacency[T]:
    if not isinstance(pair, PerAdjacency):
        raise ValueError(f"{name} must give one number per adjacency, not {_kind(pair)}")
    return pair


def _integers_to_json(pair: PerAdjacency[int]) -> dict[str, str | int]:
    return {str(adjacency): pair.under(adjacency) for adjacency in Adjacency}


def _fractions_to_json(pair: PerAdjacency[Fraction]) -> dict[str, str | int]:
    return {str(adjacency): _fraction_text(pair.under(adjacency)) for adjacency in Adjacency}


def _fraction_text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _kind(value: object) -> str:
    return type(value).__name__
