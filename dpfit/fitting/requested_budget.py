"""The privacy budget of a run, from its options."""

from __future__ import annotations

from typing import Protocol

from dpfit.errors import UsageError
from dpfit.privacy.calibration import Budget


class BudgetOptions(Protocol):
    """The options that make a budget."""

    @property
    def eps(self) -> float | None: ...
    @property
    def delta(self) -> float | None: ...
    @property
    def rho(self) -> float | None: ...
    @property
    def mu(self) -> float | None: ...


def requested_budget(
    options: BudgetOptions, *, seed: int | None, without_noise: bool
) -> Budget | None:
    """The budget that was asked for; a run without noise needs none.

    Raises
    ------
    UsageError
        It is missing or contradicts itself.
    """
    asked = (options.eps, options.delta, options.rho, options.mu)
    if without_noise and seed is not None:
        raise UsageError("a run without noise takes no seed")
    if without_noise and all(value is None for value in asked):
        return None
    return Budget.from_request(*asked, pure=True)
