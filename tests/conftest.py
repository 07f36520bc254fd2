"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A shared machine may stall any example; time is a benchmark's affair, never a test's.
settings.register_profile("dpfit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpfit")
