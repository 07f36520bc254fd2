"""One completion from ratings to released item factors, in the order that keeps every promise.

Settings are checked, ratings are read, the exact charge is reserved on disk, only then the noise
key is made, and what comes out of the curator becomes the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dpfit import __version__
from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.errors import DataError
from dpfit.fitting.matrix_plan import MatrixPlan, plan_matrix
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.ledger_document import Json
from dpfit.privacy.mechanisms.noise import noise_of
from dpfit.privacy.public_facts import Origin, PublicFact, PublicFacts
from dpfit.privacy.rating_curator import RatingCurator, check_memory
from dpfit.privacy.rating_records import RatingCollector, Triplets


class MatrixFit:
    """A completion whose ratings were read and whose plan is fixed; nothing was spent yet.

    Parameters
    ----------
    request : MatrixRequest
        What the user asked for.
    blocks : iterable of Triplets
        The private ratings, read once; codes number users and items from 0.
    shape : callable
        Tells, once the ratings were read, the numbers of users and of items that were found.
    source : str
        What to call the input in messages.

    Attributes
    ----------
    plan : MatrixPlan
        Settings, charge and public facts.

    Raises
    ------
    DataError, PrivacyError
        The ratings cannot be used, or a fact would have to be assumed in a strict run.
    """

    def __init__(
        self,
        request: MatrixRequest,
        blocks: Iterable[Triplets],
        *,
        shape: Callable[[], tuple[int, int]],
        source: str,
    ) -> None:
        self.request = request
        collector = RatingCollector(request.value_range)
        for block in blocks:
            collector.add(block)
        facts = PublicFacts(strict=request.strict)
        found = shape()
        for name, said, number in zip(
            ("users", "items"), (request.n_users, request.n_items), found, strict=True
        ):
            facts.add(_number(name, said, number, source))
        bounds = list(request.value_range)
        facts.add(PublicFact("value_range", bounds, Origin.DECLARED, "--range"))
        self.plan: MatrixPlan = plan_matrix(request, facts)
        check_memory(self.plan.grid)
        self._ratings = collector.build(self.plan.grid.n_users, self.plan.grid.n_items)

    def run(
        self, reserve: Callable[[Json], None], report_progress: Callable[[int], None]
    ) -> FactorOutcome:
        """Charge, then complete.

        Parameters
        ----------
        reserve : callable
            Puts the charge of ``plan.events``, described by its argument, on disk; the noise key is
            made only after it returned.
        report_progress : callable
            Called between passes and sweeps with the number done.

        Returns
        -------
        FactorOutcome
            Public quantities of the items.
        """
        reserve(self.description())
        curator = RatingCurator(
            ratings=self._ratings,
            grid=self.plan.grid,
            value_range=self.request.value_range,
            releases=self.plan.releases,
            noise=noise_of(private=not self.request.without_noise, seed=self.request.seed),
        )
        return self.plan.algorithm.run(curator, report_progress)

    def description(self) -> Json:
        """What the ledger says about the run, beside its events."""
        request, plan = self.request, self.plan
        return {
            "dpfit": __version__,
            "dataset": request.dataset,
            "algorithm": request.algorithm,
            "private": request.private,
            "reproducible": request.seed is not None,
            "adjacency": str(request.adjacency),
            "record": "user",
            "budget": request.budget.to_json() if request.budget else None,
            "noise": request.noise,
            "loss": "huber" if request.huber else "squared",
            "settings": plan.algorithm.settings(),
            "public_facts": plan.facts.to_json(),
        }


def _number(name: str, said: int | None, found: int, source: str) -> PublicFact:
    """The number of users or items: declared, or assumed from the data.

    Raises
    ------
    DataError
        There are more than declared, or none.
    """
    option = f"--n-{name}"
    if said is not None:
        if found > said:
            raise DataError(f"holds more {name} than declared by {option}", path=source)
        return PublicFact(name, said, Origin.DECLARED, option)
    if found < 1:
        raise DataError("holds no ratings", path=source)
    return PublicFact(name, found, Origin.ASSUMED, option)
