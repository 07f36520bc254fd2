"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

# A shared machine may stall any example; time is a benchmark's affair, never a test's.
settings.register_profile("dpfit", deadline=None)
settings.load_profile("dpfit")
