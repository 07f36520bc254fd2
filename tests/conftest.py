"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples in every run: new ones are looked for on purpose, not while something else is
# checked. ``DPFIT_EXPLORE=1`` does, and so does asking the fuzzing tests for more of them.
EXPLORES = bool({"DPFIT_EXPLORE", "DPFIT_FUZZ"} & os.environ.keys())

# A shared machine may stall any example; time is a benchmark's affair, never a test's.
settings.register_profile(
    "dpfit",
    derandomize=not EXPLORES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dpfit")
