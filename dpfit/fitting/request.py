"""What a user asks of a fit, checked before anything is read or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from dpfit.algorithms.default_rule import WIDE
from dpfit.design.grid import RowMap
from dpfit.design.storage import IN_MEMORY, Storage
from dpfit.errors import UsageError
from dpfit.files.linear_model import WITH_OFFSET
from dpfit.fitting.algorithm_traits import ALGORITHMS, AUTO, ORIGINALS, Traits, with_setting
from dpfit.fitting.checks import at_least_one, one_of, positive, usable
from dpfit.fitting.search import Search
from dpfit.losses.names import LOSSES, OF_CLASSES
from dpfit.privacy.adjacency import Adjacency
from dpfit.privacy.calibration import Budget
from dpfit.privacy.declared_facts import DeclaredFacts
from dpfit.privacy.events import MinimiserLaw
from dpfit.privacy.owner_release import MOST_ROWS, OwnerRule
from dpfit.privacy.printed_noise import PRINTED
from dpfit.privacy.summary import Label

_SETTINGS: Final = tuple(
    dict.fromkeys(name for traits in ALGORITHMS.values() for name in traits.settings)
)
SELECTIONS: Final = ("one-shot", "peeling")
BATCHES: Final = ("full", "disjoint")
NOISES: Final = tuple(law.value for law in MinimiserLaw)
THRESHOLDS: Final = ("each", "decreasing", "final")
EXACT: Final = "exact"
CALIBRATIONS: Final = (EXACT, "paper", "paper-corollary")
_DEFAULT_HUBER: Final = 0.1  # of the target's range
_SHARES: Final = (1e-9, 1e9)  # of the target's range
LEAST_SMOOTHING: Final = 1e-5  # of the target's range; with less, minimisers are hard to find

_NAMES_OF_ABSOLUTE: Final = ("median", "quantile", "pinball", "mae", "lad", "l1")
_RIDGES: Final = (1e-6, 1e12)

_TEXT_ENTRY: Final = 0.2
_TABLE_ENTRY: Final = 0.5
_LARGEST_COUNT: Final = 1 << 40  # of rows or features: more would leave no number grid
_MOST_ITERATIONS: Final = 1_000_000


@dataclass(frozen=True)
class FitRequest:
    """Everything a user may say about a fit; None means: by the default rule.

    Attributes
    ----------
    sparsity : int or None
        Coefficients to keep; None keeps a dense model, where the algorithm has one.
    budget : Budget or None
        Needed unless the run is without noise; there it only fixes what the rules derive from it.
    without_noise : bool
        Whether to fit without noise and so without privacy.
    dataset : str
        What the ledger calls the data.
    algorithm, loss : str
        Names; the loss may be left to the target.
    of_classes : bool
        Whether the target is of classes, also where it holds more than two numbers.
    iterations, step_size, residual_clip : optional
        Settings of the algorithm.
    l1_radius : float or None
        C of ``dp-fw``.
    selection : str or None
        How ``dp-iht`` chooses columns.
    joint_rows : bool or None
        Whether the classes of a multinomial model share their s columns; None: not said.
    huber_threshold : float or None
        Where Huber's loss turns, in units of the target.
    exposed : bool
        Whether records have an offset or exposure.
    projection_radius : float or None
        l2 bound on the models of ``dp-ight``.
    threshold : str or None
        At which steps ``dp-ight`` has one.
    quantile : float or None
        Of the absolute loss; None: a half.
    smoothing : float or None
        Where a smoothed absolute loss turns into a line, in units of the target.
    ridge : float or None
        l2 penalty, in records.
    noise : str or None
        Law of the noise of median regressions.
    batches : str or None
        The records of each step of ``median-cd``.
    entry_clip : float or None
        Bound on a single entry, as a share of the row norm.
    unit : str or None
        Column of the privacy units; None: each record is one.
    max_rows_per_unit : int or None
        Records of a unit that take part, at most; needed with units.
    unit_clip : float or None
        How many records' longest part of a gradient a unit's may be as long as.
    row_norm : float
        K, the l2 norm of rows.
    row_map : RowMap
        Scale every row to norm K, or only those above it.
    intercept : bool
        Whether to fit one.
    adjacency : Adjacency
        The neighbouring relation of the guarantee.
    calibration : str
        Noise of exactly the budget, or as a paper prints it, whatever that really costs.
    declared : DeclaredFacts
        Public facts that the user vouches for.
    positive_label : label or None
        Which of the two labels is the positive class.
    strict : bool
        Refuse every assumed public fact.
    seed : int or None
        A seed makes the run reproducible, and not private.
    threads : int
        For reading and products; never changes a bit of the result.
    storage : Storage
        Where the rows stand; changes nothing else.
    search : Search or None
        Settings to try, in place of those that the request itself has.

    Raises
    ------
    UsageError
        A value is out of its range, or two of them contradict each other.
    """

    sparsity: int | None
    budget: Budget | None
    dataset: str
    without_noise: bool = False
    algorithm: str = "dp-ight"
    loss: str | None = None
    of_classes: bool = False
    iterations: int | None = None
    step_size: float | None = None
    residual_clip: float | None = None
    l1_radius: float | None = None
    selection: str | None = None
    joint_rows: bool | None = None
    huber_threshold: float | None = None
    exposed: bool = False
    projection_radius: float | None = None
    threshold: str | None = None
    quantile: float | None = None
    smoothing: float | None = None
    ridge: float | None = None
    noise: str | None = None
    batches: str | None = None
    entry_clip: float | None = None
    unit: str | None = None
    max_rows_per_unit: int | None = None
    unit_clip: float | None = None
    row_norm: float = 1.0
    row_map: RowMap = RowMap.NORMALIZE
    intercept: bool = True
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    calibration: str = EXACT
    declared: DeclaredFacts = field(default_factory=DeclaredFacts)
    positive_label: Label | None = None
    strict: bool = False
    seed: int | None = None
    threads: int = 1
    storage: Storage = IN_MEMORY
    search: Search | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in (*ALGORITHMS, *ORIGINALS):
            one_of("--algo", self.algorithm, (AUTO, *ALGORITHMS, *ORIGINALS))
        if self.algorithm in ORIGINALS and not self.without_noise:
            raise UsageError(f"--algo {self.algorithm} is the original without noise")
        if self.budget is None and not self.without_noise:
            raise UsageError("no privacy budget was given")
        if self.loss in _NAMES_OF_ABSOLUTE:
            raise UsageError(
                f"--loss {self.loss!r} is not known", hint="give --loss absolute, and --quantile"
            )
        if self.loss is not None:
            one_of("--loss", self.loss, LOSSES)
            self._check_quantile()
            self.check_loss(self.loss)
        self._check_settings()
        one_of("--calibration", self.calibration, CALIBRATIONS)
        if self.printed:
            self._check_printed()
        at_least_one("--threads", self.threads)
        if self.iterations is not None:
            at_least_one("--iterations", self.iterations)
            if self.iterations > _MOST_ITERATIONS:
                raise UsageError(f"--iterations must be at most {_MOST_ITERATIONS}")
        positive("--step-size", self.step_size)
        positive("--residual-clip", self.residual_clip)
        usable("--residual-clip", self.residual_clip)
        positive("--l1-radius", self.l1_radius)
        usable("--l1-radius", self.l1_radius)
        if self.selection is not None:
            one_of("--selection", self.selection, SELECTIONS)
        positive("--projection-radius", self.projection_radius)
        if self.threshold is not None:
            one_of("--threshold", self.threshold, THRESHOLDS)
        self._check_median()
        positive("--entry-clip", self.entry_clip)
        if self.entry_clip is not None and self.entry_clip > 1.0:
            raise UsageError("--entry-clip is a share of the row norm and at most 1")
        positive("--row-norm", self.row_norm)
        usable("--row-norm", self.row_norm)
        self._check_target()
        self._check_attributes()
        self._check_unit()
        if self.search is not None:
            self._check_search(self.search)

    def _check_search(self, search: Search) -> None:
        """Refuse a search that has no proof, or nothing to search."""
        if self.without_noise:
            raise UsageError("--tune needs noise: a run without it can be repeated at will")
        if self.unit is not None or self.max_rows_per_unit is not None:
            raise UsageError(
                "--tune scores rows, and so does not go with --unit",
                hint="leave --tune out: default settings follow from public numbers",
            )
        if self.printed:
            raise UsageError("--tune goes with --calibration exact only")
        if self.algorithm == "median-objective":
            raise UsageError(
                "--tune has no --algo median-objective, whose runs have no budget in rho",
                hint="choose --algo median-irls or median-cd",
            )
        for name in search.grid:
            if name != "sparsity" and name not in self.traits.settings:
                raise UsageError(
                    f"--tune {name.replace('_', '-')}: no setting of --algo {self.algorithm}",
                    hint=f"it has {', '.join(self._tunable())}",
                )
        search.requests(self)  # each checks its own settings

    def _tunable(self) -> list[str]:
        names = [name.replace("_", "-") for name in self.traits.settings]
        return names if self.traits.sparsity is None else ["sparsity", *names]

    def _check_quantile(self) -> None:
        if self.quantile is None:
            return
        if self.loss != "absolute":
            raise UsageError("--quantile belongs to --loss absolute")
        if not 0.0 < self.quantile < 1.0:
            per_cent = 1.0 < self.quantile < 100.0
            hint = f"did you mean {self.quantile / 100:g}?" if per_cent else None
            raise UsageError("--quantile must lie strictly between 0 and 1", hint=hint)

    def _check_median(self) -> None:
        """Settings of the algorithms for the absolute loss."""
        positive("--smoothing", self.smoothing)
        positive("--ridge", self.ridge)
        if self.ridge is not None and not _RIDGES[0] <= self.ridge <= _RIDGES[1]:
            raise UsageError(f"--ridge must lie between {_RIDGES[0]:g} and {_RIDGES[1]:g} records")
        if self.noise is not None:
            one_of("--noise", self.noise, NOISES)
        if self.batches is not None:
            one_of("--batches", self.batches, BATCHES)
        budget = self.budget
        if budget is None or not self.traits.pure:
            return
        if budget.pure and self.noise == "gaussian":
            raise UsageError("--noise gaussian needs --delta beside --eps")
        if self.algorithm == "median-objective" and budget.epsilon is None:
            raise UsageError(
                f"--algo {self.algorithm} needs a budget in --eps",
                hint="for a rho choose --algo median-irls or median-cd",
            )
        if self.algorithm == "median-cd":
            if self.noise == "l2":
                raise UsageError(
                    "--noise l2 is no law of --algo median-cd", hint="choose l1 or gaussian"
                )
            if self.batches == "full" and (budget.pure or self.noise == "l1"):
                raise UsageError("--batches full needs --noise gaussian, hence --delta")

    def _check_settings(self) -> None:
        """Refuse a setting that the algorithm does not have, instead of dropping it."""
        traits = self.traits
        for name in self.asked_settings():
            if name in traits.settings:
                continue
            raise UsageError(
                f"--{name.replace('_', '-')} is no setting of --algo {self.algorithm}",
                hint=f"it is one of --algo {' or '.join(with_setting(name))}",
            )
        if self.sparsity is not None:
            if traits.sparsity is None:
                raise UsageError(f"--sparsity is no setting of --algo {self.algorithm}")
            at_least_one("--sparsity", self.sparsity)
        elif traits.sparsity:
            raise UsageError(
                f"--algo {self.algorithm} needs --sparsity, the coefficients to keep",
                hint="give a number, for instance --sparsity 50",
            )
        if self.joint_rows is not None and self.sparsity is None:
            raise UsageError("--sparsity-mode needs --sparsity")
        if self.budget is not None and not (traits.pure and self.budget.pure):
            if traits.pure and self.budget.mu is not None:
                raise UsageError(
                    f"--algo {self.algorithm} takes no budget in --mu",
                    hint="give --eps, with --delta or without",
                )
            # Selections need a budget in rho; one in mu, or without a delta, is refused here.
            _ = self.budget.total_rho if traits.selects else self.budget.squared_mu
        if not self.intercept and not traits.intercept:
            raise UsageError(f"--algo {self.algorithm} has no fit without an intercept")

    def _check_printed(self) -> None:
        """Refuse what no paper prints a noise for."""
        asked = f"--calibration {self.calibration}"
        if self.without_noise:
            raise UsageError(f"{asked} is of no use in a run without noise")
        if (self.algorithm, self.calibration) not in PRINTED:
            able = " or ".join(algo for algo, name in PRINTED if name == self.calibration)
            raise UsageError(
                f"--algo {self.algorithm} has no --calibration {self.calibration}",
                hint=f"choose {able}",
            )
        if self.budget is None or self.budget.epsilon is None:
            raise UsageError(f"{asked} needs --eps and --delta, which the printed noise is for")
        if self.selection == "one-shot":
            raise UsageError(f"{asked} chooses columns by --selection peeling")

    def check_loss(self, loss: str) -> None:
        """Refuse what does not go with a loss, once it is known.

        Parameters
        ----------
        loss : str
            As chosen or inferred.

        Raises
        ------
        UsageError
            The algorithm, the printed noise, the offsets or the sparsity mode are for others.
        """
        if self.unit is not None and loss == "absolute":
            raise UsageError(
                "--loss absolute has no algorithm for --unit",
                hint="keep one row of each unit yourself, and leave --unit out",
            )
        if not self.traits.fits(loss):
            able = [name for name, one in ALGORITHMS.items() if loss in (one.losses or ())]
            raise UsageError(
                f"--algo {self.algorithm} does not fit --loss {loss}",
                hint=f"choose {' or '.join(able)}" if able else "choose --loss absolute",
            )
        if self.exposed and loss not in WITH_OFFSET:
            raise UsageError(
                f"--loss {loss} has no offset or exposure", hint="for counts give --loss poisson"
            )
        if loss == "multinomial" and self.traits.selects:
            able = [name for name, traits in ALGORITHMS.items() if not traits.selects]
            if self.algorithm in ORIGINALS:
                able = [name for name, private in ORIGINALS.items() if private in able]
            raise UsageError(
                f"--algo {self.algorithm} fits two classes only",
                hint=f"choose one of {', '.join(able)}",
            )
        if loss != "multinomial" and self.joint_rows is not None:
            raise UsageError("--sparsity-mode belongs to --loss multinomial")
        if self.printed and loss == "poisson":
            raise UsageError("--loss poisson starts at a released mean, which no paper prints")
        if self.calibration == "paper-corollary" and loss != "logistic":
            raise UsageError("--calibration paper-corollary belongs to --loss logistic")

    @property
    def printed(self) -> bool:
        """Whether the noise is as a paper prints it."""
        return self.calibration != EXACT

    @property
    def private_algorithm(self) -> str:
        """The algorithm; of an original the one that adds noise to it."""
        return ORIGINALS.get(self.algorithm, self.algorithm)

    @property
    def traits(self) -> Traits:
        """What the algorithm can be told."""
        return ALGORITHMS[self.private_algorithm]

    def asked_settings(self) -> dict[str, int | float | str]:
        """The settings of the algorithm that the user gave."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in given.items() if value is not None}

    def _check_target(self) -> None:
        declared = self.declared
        for option, value in (("--n-rows", declared.n_rows), ("--n-features", declared.n_features)):
            if value is not None:
                at_least_one(option, value)
                if value > _LARGEST_COUNT:
                    raise UsageError(f"{option} must be at most {_LARGEST_COUNT}")
        if declared.labels is not None and declared.target_range is not None:
            raise UsageError("--labels and --target-range exclude each other")
        if declared.labels is not None:
            if self.loss not in (None, *OF_CLASSES):
                raise UsageError("--labels belongs to --loss logistic or multinomial")
            if self.loss == "logistic" and len(declared.labels) != 2:
                raise UsageError("--loss logistic has two labels; more need --loss multinomial")
        if declared.target_range is not None:
            if self.loss in OF_CLASSES:
                raise UsageError("--target-range belongs to a target that is a number")
            low, high = declared.target_range
            if not (low < high and math.isfinite(high - low)):
                raise UsageError("--target-range needs two finite numbers, the lower first")
            if self.loss == "poisson" and low != 0.0:
                raise UsageError("--target-range of counts begins at 0")

    def _check_attributes(self) -> None:
        """Weights, offsets and the threshold of Huber's loss."""
        positive("--huber-threshold", self.huber_threshold)
        if self.huber_threshold is not None and self.loss != "huber":
            raise UsageError("--huber-threshold belongs to --loss huber")
        positive("--max-weight", self.declared.max_weight)
        positive("--max-exposure", self.declared.max_exposure)
        if self.declared.max_exposure is not None and self.loss != "poisson":
            raise UsageError("--max-exposure belongs to --loss poisson")

    def _check_unit(self) -> None:
        """What makes a guarantee for units that own several records."""
        if self.unit is None:
            for option, value in (
                ("--max-rows-per-unit", self.max_rows_per_unit),
                ("--unit-clip", self.unit_clip),
                ("--n-units", self.declared.n_owners),
            ):
                if value is not None:
                    raise UsageError(
                        f"{option} needs --unit, the column of the units",
                        hint=f"give --unit COLUMN, or leave {option} out",
                    )
            return
        if self.max_rows_per_unit is None:
            raise UsageError(
                "--unit needs --max-rows-per-unit, the rows of a unit that take part",
                hint="give what most units have, for instance --max-rows-per-unit 16",
            )
        if not 1 <= self.max_rows_per_unit <= MOST_ROWS:
            raise UsageError(f"--max-rows-per-unit must lie between 1 and {MOST_ROWS}")
        positive("--unit-clip", self.unit_clip)
        if self.unit_clip is not None and self.unit_clip > self.max_rows_per_unit:
            raise UsageError("--unit-clip is in rows and at most --max-rows-per-unit")
        if self.declared.n_owners is not None:
            at_least_one("--n-units", self.declared.n_owners)
            if self.declared.n_owners > _LARGEST_COUNT:
                raise UsageError(f"--n-units must be at most {_LARGEST_COUNT}")
        able = [name for name, traits in ALGORITHMS.items() if traits.by_unit]
        if not self.traits.by_unit:
            raise UsageError(
                f"--algo {self.algorithm} protects rows, not units",
                hint=f"with --unit choose {' or '.join(able)}",
            )
        if self.printed:
            raise UsageError("--unit: no paper prints a noise for units")

    @property
    def owners(self) -> OwnerRule | None:
        """What records belong together and how much of them counts; None: each is a unit."""
        if self.unit is None or self.max_rows_per_unit is None:
            return None
        clip = self.unit_clip or default_unit_clip(self.max_rows_per_unit)
        return OwnerRule(self.unit, self.max_rows_per_unit, clip)

    def huber_of_range(self, target_range: tuple[float, float]) -> float:
        """The threshold of Huber's loss as a share of the target's range."""
        if self.huber_threshold is None:
            return _DEFAULT_HUBER
        span = target_range[1] - target_range[0]
        return share_of_range("--huber-threshold", self.huber_threshold, span)

    def entry_bound(self, n_features: int) -> float:
        """The entry clip as wished, or less than 1 where noise grows with the largest entry.

        0.2 is best of 0.05 to 0.4 on text with unit rows; tables, whose rows have fewer and larger
        entries, do better with 0.5.
        """
        if self.entry_clip is not None:
            return self.entry_clip
        if not self.traits.by_entry:
            return 1.0
        return _TEXT_ENTRY if n_features > WIDE else _TABLE_ENTRY

    @property
    def private(self) -> bool:
        return not self.without_noise and self.seed is None


def default_unit_clip(max_rows: int) -> float:
    """C by rule: half the square root of the number of rows, and one at least.

    Of 1 to m rows it was best, or close to the best, on four sets of units whose rows differ: these
    pull in many directions, so their sum is seldom longer than a few times the root, and noise is
    for the clip whatever the unit holds. Where all rows of a unit have one label, a clip of m / 2
    was better, and one row a unit better still.
    """
    return max(1.0, math.sqrt(max_rows) / 2)


def share_of_range(option: str, length: float, span: float, least: float = _SHARES[0]) -> float:
    """A length in units of the target as a share of its range.

    Raises
    ------
    UsageError
        It is out of proportion.
    """
    share = length / span
    if not least <= share <= _SHARES[1]:
        raise UsageError(f"{option} is out of proportion to the target's range")
    return share
