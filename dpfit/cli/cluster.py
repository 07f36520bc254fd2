"""Connections to a Dask cluster, encrypted unless the user says otherwise."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dpfit.errors import StorageError, UsageError

if TYPE_CHECKING:
    from distributed import Client

    from dpfit.privacy.workers import Workers

_LOCAL: Final = "local:"
_ENCRYPTED: Final = "tls://"
_PLAIN: Final = "tcp://"
_PLACE: Final = re.compile(r"(?:tls|tcp)://(?:[\w.-]+|\[[\w:.%]+\]):([0-9]{1,5})", re.ASCII)
_LAST_PORT: Final = 65535
_PATIENCE: Final = 10.0  # seconds to reach a scheduler
_FAREWELL: Final = 3.0  # seconds for a scheduler to hear that we leave; it may be gone
_SCHEDULER: Final = "is a Dask scheduler running there? it prints its address as it starts"
_CERTIFICATES: Final = f"{_SCHEDULER}; Dask's own settings name the certificates"
_SETTINGS: Final = {
    # Rows are private: they stay in memory, whatever Dask reckons that they take.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.comm.timeouts.connect": "10s",  # also what a lost scheduler is waited for
}


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address that is none, or whose connections anybody could read.

    Raises
    ------
    UsageError
        See above.
    """
    if address.startswith(_LOCAL):
        count = address.removeprefix(_LOCAL)
        if not re.fullmatch("[0-9]{1,4}", count) or not 1 <= int(count) <= 1024:
            raise UsageError(
                "--cluster local:N needs a number of workers, 1 to 1024",
                hint="for instance --cluster local:2",
            )
        return
    place = _PLACE.fullmatch(address)
    if place is None or not 1 <= int(place[1]) <= _LAST_PORT:
        raise UsageError(
            "--cluster is tls://HOST:PORT, tcp://HOST:PORT or local:N",
            hint="a scheduler prints its address as it starts; local:2 needs none",
        )
    if address.startswith(_PLAIN) and not insecure:
        raise UsageError(
            "--cluster tcp:// sends sums of private rows in the open",
            hint="give a tls:// address, or --insecure-cluster if the network is yours alone",
        )


@contextmanager
def connected(address: str) -> Iterator[Workers]:
    """The workers at a checked address; those of ``local:N`` live as long as the context.

    Raises
    ------
    UsageError
        Dask is not installed, or a worker behind ``tls://`` would get its parts in the open.
    StorageError
        The scheduler cannot be reached.
    """
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise UsageError(
            "--cluster needs Dask", hint="install it with: pip install 'dpfit[cluster]'"
        ) from None
    from dpfit.privacy.workers import Workers

    logging.disable(logging.CRITICAL)  # one line says what was lost; no more
    # A wide model goes to every worker at each step; there is nothing the user could load instead.
    warnings.filterwarnings("ignore", message="Sending large graph")
    with dask.config.set(_SETTINGS):
        if address.startswith(_LOCAL):
            with _local(int(address.removeprefix(_LOCAL))) as client:
                yield Workers(client)
            return
        try:
            client = Client(address, timeout=_PATIENCE)
        except (OSError, TimeoutError, ValueError, TypeError):  # the last: no certificate is named
            raise StorageError(
                f"{address}: the cluster cannot be reached",
                hint=_CERTIFICATES if address.startswith(_ENCRYPTED) else _SCHEDULER,
            ) from None
        try:
            workers = Workers(client)
            if address.startswith(_ENCRYPTED):
                _check_encrypted(workers)
            workers.require_own_version()
            yield workers
        finally:
            client.close(timeout=_FAREWELL)


def _check_encrypted(workers: Workers) -> None:
    """Workers send each other sums, whatever the way to the scheduler is."""
    if not all(worker.startswith(_ENCRYPTED) for worker in workers.addresses):
        raise UsageError(
            "--cluster: a worker listens in the open",
            hint="let every worker listen at a tls:// address",
        )


@contextmanager
def _local(n_workers: int) -> Iterator[Client]:
    from distributed import Client, LocalCluster, Security

    # Runs beside each other: Dask then takes another port for pages that nobody asked for.
    warnings.filterwarnings("ignore", message="Port .* is already in use")
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            security=Security.temporary(),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
