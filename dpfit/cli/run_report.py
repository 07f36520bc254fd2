"""What every charged run tells: what is not private, what was assumed, what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from dpfit.cli.options import ChargeOptions
from dpfit.cli.streams import Streams
from dpfit.fitting.charge import charge_of
from dpfit.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from dpfit.cli.run_files import RunFiles
    from dpfit.privacy.calibration import Budget
    from dpfit.privacy.events import Event
    from dpfit.privacy.public_facts import PublicFacts

_ONE_OF: Final = {"rows": "record", "units": "unit", "users": "user"}


class Request(Protocol):
    """What the reports need to know of a request."""

    @property
    def budget(self) -> Budget | None: ...
    @property
    def adjacency(self) -> Adjacency: ...
    @property
    def private(self) -> bool: ...
    @property
    def without_noise(self) -> bool: ...


def report_before_reading(
    request: Request,
    options: ChargeOptions,
    files: RunFiles,
    streams: Streams,
    *,
    what: str = "model",
) -> None:
    """Warn of a run that is not private; ``what`` names what it releases.

    A dry run tells instead what the run would be refused for and may yet be mended.
    """
    if not options.dry_run and not request.private:
        why = "there is no noise" if request.without_noise else "--seed repeats the noise"
        streams.warn(
            f"{why}: the {what} is not private, and {files.ledger.path} counts as unbounded "
            "from now on"
        )
    if options.dry_run and files.needs_force:
        streams.inform(f"{files.model_path}: exists; the run needs --force to replace it")


def report_assumed(
    facts: PublicFacts, budget: Budget | None, streams: Streams, *, records: str
) -> None:
    """Name, in one line, what was read off the data and is taken as public.

    ``records`` is the fact that counts those whom the guarantee protects: ``rows``, ``units`` or
    ``users``.
    """
    assumed = facts.assumed()
    if assumed:
        listed = ", ".join(f"{fact.name}={_shown(fact.value)} ({fact.option})" for fact in assumed)
        streams.inform(f"assumed from the data and taken as public: {listed}")
    delta = None if budget is None else budget.delta
    if delta is not None and delta * facts.integer(records) > 1.0:
        record = _ONE_OF[records]
        streams.warn(f"delta {delta:g} is above 1/{records}: a whole {record} may leak")


def charge_text(events: Sequence[Event], request: Request) -> str:
    """The charge for a table."""
    charge = charge_of(events, request.budget, request.adjacency)
    spent = "NOT PRIVATE" if charge is None else listed(charge)
    return f"{spent} ({request.adjacency})"


def listed(values: Mapping[str, object]) -> str:
    """Names, as options spell them, with their values, in one line; what has none is left out."""
    return ", ".join(
        f"{name.replace('_', '-')} {_told(value)}"
        for name, value in values.items()
        if value is not None
    )


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return f"({listed(value)})"
    # A value of several words is a rule, such as 0.1 + 0.2 u.
    return f"= {value}" if isinstance(value, str) and " " in value else str(value)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else "?"
    return str(value)
