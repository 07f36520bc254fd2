"""The workers of a Dask cluster: one task each a round, where the rows are.

Whoever can reach the scheduler can run code on the workers and read their rows. So connections are
encrypted unless the user says otherwise, and nothing makes private records leave their worker: only
rows of units travel, while they are read (:mod:`dpfit.privacy.unit_exchange`).
"""

from __future__ import annotations

import pydoc
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from distributed import CancelledError, Client, Future, KilledWorker, wait
from numpy.typing import NDArray

from dpfit import __version__
from dpfit.errors import DpfitError, StorageError, UsageError

Integers: TypeAlias = NDArray[np.int64]

_LOOK: Final = 1.0  # seconds between two looks at who is still there
_GONE: Final = (OSError, TimeoutError, CancelledError, KilledWorker)


class Workers:
    """The workers that were there when the run began; one that joins later has no rows.

    Parameters
    ----------
    client : distributed.Client
        Connected.

    Attributes
    ----------
    addresses : list of str
        Where they listen.

    Raises
    ------
    StorageError
        There is none.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.addresses = sorted(client.nthreads())
        if not self.addresses:
            raise StorageError(
                "the cluster has no workers", hint="start them before the run: dask worker"
            )

    def require_own_version(self) -> None:
        """Refuse workers whose sums may be others.

        Raises
        ------
        UsageError
            One has another version of the program.
        """
        # Asked of the standard library: a worker may know no function of ours.
        found = self._client.run(
            pydoc.locate, "dpfit.__version__", workers=self.addresses, on_error="return"
        )
        if any(found.get(address) != __version__ for address in self.addresses):
            self._require_all()
            raise UsageError(
                "a worker of the cluster has another version of dpfit, or none",
                hint=f"install dpfit {__version__} where the workers run",
            )

    def __len__(self) -> int:
        return len(self.addresses)

    def each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Future]:
        """A task on every worker: the function of that worker's argument from each sequence.

        Arguments that are futures are those of the same worker. A task never runs anywhere else.
        """
        return [
            self._on(address, function, *own)
            for address, *own in zip(self.addresses, *arguments, strict=True)
        ]

    def _on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Future:
        return self._client.submit(
            _guarded, function, *arguments, workers=[address], pure=False, retries=0
        )

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """What the tasks returned.

        Raises
        ------
        DpfitError
            A task met it.
        StorageError
            A worker is gone, and its rows with it; or the scheduler is.
        """
        self._finish(futures)
        try:
            results = self._client.gather(list(futures))
        except _GONE:
            raise _lost() from None
        for result in results:
            if isinstance(result, DpfitError):
                raise result
        return list(results)

    def total(self, futures: Sequence[Future]) -> Integers:
        """The sum of what the tasks returned, added on the workers, in pairs."""
        level = list(zip(self.addresses, futures, strict=True))
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            added = [
                (address, self._on(address, _sum, one, other))
                for (address, one), (_, other) in pairs
            ]
            level = added + level[len(level) // 2 * 2 :]
        (total,) = self.results([level[0][1]])
        return np.asarray(total)

    def _finish(self, futures: Sequence[Future]) -> None:
        while True:
            try:
                wait(futures, timeout=_LOOK)
                return
            except TimeoutError:
                self._require_all()
            except _GONE:
                raise _lost() from None

    def _require_all(self) -> None:
        if self._client.status != "running":  # it would try for long to reach the scheduler again
            raise _lost()
        try:
            there = self._client.nthreads()
        except _GONE:
            raise _lost() from None
        if not set(self.addresses) <= there.keys():
            raise _lost()


def _lost() -> StorageError:
    return StorageError(
        "the cluster lost a worker, and its rows with it",
        hint="start the run again; what the ledger says was charged stays charged",
    )


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's value, or its error as one: raised, it would be logged with the records."""
    for argument in arguments:
        if isinstance(argument, DpfitError):
            return argument
    try:
        return function(*arguments)
    except DpfitError as error:
        return error
    except Exception as error:
        return StorageError(f"a worker of the cluster failed ({type(error).__name__})")


def _sum(one: Integers, other: Integers) -> Integers:
    return one + other
