"""The promise of a run in plain words."""

from __future__ import annotations

import math

from dpfit.privacy.adjacency import Adjacency
from dpfit.report.attack import TradeOff
from dpfit.report.chart import at_most, percent_at_most
from dpfit.report.released_run import ReleasedRun

_LARGEST_ODDS = 1e4  # a factor above it says nothing

OUTSIDE = (
    "Running time, memory and exit status of the program.",
    "What predict --evaluate and evaluate --public print, from labels without noise.",
    "A row that a prediction is made for: who sees the prediction learns about that row.",
    "What holds for people in general. If the model shows that two things go together, it says "
    "so about everybody, whether or not they are in the data.",
    "Other copies of the data, and anything released from it outside the ledger.",
)


def not_private(run: ReleasedRun) -> str:
    """Why nothing is promised."""
    if run.reproducible:
        return "It was made with --seed: whoever knows the seed can take the noise away again."
    if run.cost.infinite:
        return "It was made without noise. It may show any single record."
    return "Its file says so. It may show any single record."


def promise(run: ReleasedRun, trade_off: TradeOff) -> list[str]:
    """What a private run promises."""
    return [_neighbours(run), _bound(run), _attacker(run, trade_off)]


def _neighbours(run: ReleasedRun) -> str:
    one = run.record
    if run.adjacency is Adjacency.REPLACE_ONE:
        return (
            f"Protected is every single {one} of the data. Exchange any one {one} for any other: "
            f"whoever sees the model can hardly tell which of the two data sets it came from. "
            f"The number of {one}s is public."
        )
    return (
        f"Protected is every single {one} of the data. Leave what any one {one} contributes out "
        "of every sum: whoever sees the model can hardly tell whether that was done. The number "
        f"of {one}s that divides the sums is public."
    )


def _bound(run: ReleasedRun) -> str:
    epsilon = run.epsilon
    if math.isinf(epsilon):
        return "No finite epsilon follows from what was released."
    odds = math.exp(epsilon) if epsilon < 700.0 else math.inf
    factor = f"at most {at_most(odds)}"
    if odds > _LARGEST_ODDS:
        factor = f"more than {_LARGEST_ODDS:,.0f}, which is no protection to speak of"
    chance = "" if run.delta == 0.0 else f", except with a chance of about {run.delta:g}"
    stated = f"epsilon {at_most(epsilon)}" + (
        " without a delta" if run.delta == 0.0 else f" at delta {run.delta:g}"
    )
    return (
        f"The promise is differential privacy with {stated}: the odds of any guess about one "
        f"{run.record} change by a factor of {factor}{chance}."
    )


def _attacker(run: ReleasedRun, trade_off: TradeOff) -> str:
    alarm = 0.01
    return (
        "An attacker who knows both data sets, and everything the run released, guesses right "
        f"with a chance of at most {percent_at_most(trade_off.success)}; without the model "
        f"it is 50 %. With false alarms in {100.0 * alarm:g} % of cases, at most "
        f"{percent_at_most(trade_off.detection(alarm))} of true ones are found."
    )


def assumptions(run: ReleasedRun) -> str:
    """What the promise takes as public."""
    assumed = [fact.name for fact in run.facts if fact.origin == "assumed"]
    if not run.private:
        return "These facts were taken as public when it was fitted."
    if not assumed:
        return "The promise takes these facts as public. None of them was read off the data."
    return (
        "The promise takes these facts as public. Those that are assumed were read off the data, "
        "and the promise holds only as far as everybody may know them anyway: "
        f"{', '.join(assumed)}."
    )


def group_note(run: ReleasedRun) -> str:
    """Who is not protected as a single record."""
    if run.record != "row":
        return f"A {run.record} is protected with all records of that {run.record}."
    return (
        "A person with several rows is protected less: with k rows, as if the noise were k times "
        "smaller."
    )
