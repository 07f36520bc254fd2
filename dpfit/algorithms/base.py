"""What the fit asks of an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dpfit.algorithms.outcome import Outcome
from dpfit.privacy.curator import Curator
from dpfit.privacy.planned_release import PlannedRelease

Setting = int | float | str | bool | None | Mapping[str, float]


class Algorithm(Protocol):
    """Settings fixed from public quantities; knows what it will ask and how to use the answers."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    @property
    def steps(self) -> int:
        """How many gradients it takes, for a progress bar."""
        ...

    def settings(self) -> Mapping[str, Setting]:
        """Every setting, as JSON values."""
        ...

    def planned(self) -> Sequence[PlannedRelease]:
        """Everything it will ask; the parts sum to one."""
        ...

    def run(self, curator: Curator, report_progress: Callable[[int], None]) -> Outcome:
        """Fit; ``report_progress`` is called with the number of gradients taken so far."""
        ...
