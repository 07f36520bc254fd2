"""Which fit a request asks for: a single one, or a search."""

from __future__ import annotations

from dpfit.fitting.linear_fit import LinearFit
from dpfit.fitting.request import FitRequest


def kind_of_fit(request: FitRequest) -> type[LinearFit]:
    """The fit to be made of the rows."""
    if request.search is None:
        return LinearFit
    from dpfit.fitting.tuned_fit import TunedFit  # late: few runs are searches

    return TunedFit
