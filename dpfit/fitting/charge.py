"""The ledger's side of one run: what was reserved ends as released or aborted, once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from dpfit.privacy.accountant import compose

if TYPE_CHECKING:
    from dpfit.privacy.adjacency import Adjacency
    from dpfit.privacy.calibration import Budget
    from dpfit.privacy.canonical_json import Json
    from dpfit.privacy.events import Event
    from dpfit.privacy.ledger import Ledger


Result = TypeVar("Result", covariant=True)


class Planned(Protocol[Result]):
    """A run whose plan is fixed; nothing was spent yet."""

    @property
    def events(self) -> Sequence[Event]:
        """The charge."""

    @property
    def steps(self) -> int:
        """How often it reports progress."""

    def run(
        self, reserve: Callable[[Json], None], report_progress: Callable[[int], None]
    ) -> Result:
        """Have the charge put on disk, then fit."""


class Charge:
    """One run in a ledger.

    Parameters
    ----------
    events : sequence of Event
        What is charged.
    ledger : Ledger
        Where.

    Attributes
    ----------
    entry : mapping or None
        The entry of the reservation, once there is one.
    """

    def __init__(self, events: Sequence[Event], ledger: Ledger) -> None:
        self.entry: Json | None = None
        self._events = events
        self._ledger = ledger
        self._run: str | None = None

    def reserve(self, description: Mapping[str, object]) -> None:
        """Put the charge on disk."""
        self._run = self._ledger.reserve(self._events, description)
        self.entry = self._ledger.reserved(self._run)

    def release(self, model: bytes | None = None) -> None:
        """Say that the result is out, and, if that is a model, which it is."""
        # From here on a failure is that of the last entry itself, not of the run.
        run, self._run = self._run, None
        assert run is not None
        detail = {} if model is None else {"model_sha256": hashlib.sha256(model).hexdigest()}
        self._ledger.close(run, "released", **detail)

    def abort(self, reason: str) -> None:
        """Say that the run ended without a model; the charge stays with or without this entry."""
        if self._run is not None:
            self._ledger.close(self._run, "aborted", reason=reason)


def charge_of(
    events: Sequence[Event], budget: Budget | None, adjacency: Adjacency
) -> dict[str, float] | None:
    """The charge in every currency that it has; None for a run that is not private."""
    cost = compose(events, adjacency)
    if cost.infinite or budget is None:
        return None
    charge = {"mu": cost.mu(), "rho": cost.rho_bound()}
    delta = 0.0 if budget.pure else budget.delta
    if delta is not None:
        charge |= {"epsilon": cost.epsilon(delta), "delta": delta}
    return {name: value for name, value in charge.items() if math.isfinite(value)}
