"""One completion from ratings to released item factors, in the order that keeps every promise.

Settings are checked, ratings are read, the exact charge is reserved on disk, only then the noise
key is made, and what comes out of the curator becomes the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dpfit import __version__
from dpfit.algorithms.factor_outcome import FactorOutcome
from dpfit.data.ratings_by_user import AllRatings
from dpfit.errors import DataError
from dpfit.fitting.matrix_plan import MatrixPlan, plan_matrix, public_facts
from dpfit.fitting.matrix_request import MatrixRequest
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.events import Event
from dpfit.privacy.mechanisms.noise import Noise, noise_of, prepare_noise
from dpfit.privacy.public_facts import Origin, PublicFact
from dpfit.privacy.rating_curator import RatingCurator, arrays_of, check_memory
from dpfit.privacy.rating_records import private_ratings

_BYTES_OF_NAME: Final = 200  # a user's, while its ratings are read


class MatrixFit:
    """A completion whose ratings were read and whose plan is fixed; nothing was spent yet.

    Parameters
    ----------
    request : MatrixRequest
        What the user asked for.
    ratings : AllRatings
        The private ratings of all users.
    n_items : int
        How many items there are: the declared ones, or those found.
    source : str
        What to call the input in messages.

    Attributes
    ----------
    plan : MatrixPlan
        Settings, charge and public facts.

    Raises
    ------
    DataError, PrivacyError, StorageError, UsageError
        The ratings cannot be used, or held; a fact would have to be assumed in a strict run.
    """

    def __init__(
        self,
        request: MatrixRequest,
        ratings: AllRatings,
        *,
        n_items: int,
        source: str,
    ) -> None:
        self.request = request
        facts = public_facts(request)
        if request.n_users is None:
            facts.add(_assumed("users", ratings.n_users, "--n-users", source))
        elif ratings.n_users > request.n_users:
            raise DataError("holds more users than declared by --n-users", path=source)
        if request.n_items is None:
            facts.add(_assumed("items", n_items, "--items", source))
        self.plan: MatrixPlan = plan_matrix(request, facts)
        check_memory(self.plan.grid)
        self._ratings = private_ratings(
            ratings,
            request.value_range,
            n_users=self.plan.grid.n_users,
            n_items=self.plan.grid.n_items,
            folder=request.storage.folder,
        )
        names = _BYTES_OF_NAME * ratings.n_users
        request.storage.check(self._ratings.bytes_held, names + arrays_of(self.plan.grid))

    @property
    def events(self) -> Sequence[Event]:
        """The charge."""
        return self.plan.events

    @property
    def steps(self) -> int:
        """How often :meth:`run` reports progress."""
        return self.plan.algorithm.steps

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
        prepare_noise()
        reserve(self.description())
        noise = noise_of(private=not self.request.without_noise, seed=self.request.seed)
        return self.plan.algorithm.run(self.curator(noise), report_progress)

    def curator(self, noise: Noise) -> RatingCurator:
        """The door to these ratings, with that noise.

        A run that is charged goes through :meth:`run`; an audit, whose ratings are synthetic, makes
        the noise of each trial itself.
        """
        return RatingCurator(
            ratings=self._ratings,
            grid=self.plan.grid,
            value_range=self.request.value_range,
            releases=self.plan.releases,
            noise=noise,
        )

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
            "noise": None if request.without_noise else request.noise,
            "loss": request.users_loss,
            "settings": plan.algorithm.settings(),
            "public_facts": plan.facts.to_json(),
            **({"budget_shares": plan.shares} if request.budget_report else {}),
        }


def _assumed(name: str, found: int, option: str, source: str) -> PublicFact:
    """The number of users or items, from the data."""
    if found < 1:
        raise DataError("holds no ratings", path=source)
    return PublicFact(name, found, Origin.ASSUMED, option)
