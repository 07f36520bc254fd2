"""Rows of a fit that are not just read here: kept on disk for later, or on a cluster's workers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from dpfit.data.reader import Reader
from dpfit.data.remote import is_remote
from dpfit.design.storage import Storage
from dpfit.errors import UsageError
from dpfit.fitting.plan import finest_grid
from dpfit.fitting.request import FitRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpfit.cli.fit import FitOptions
    from dpfit.cli.streams import Streams
    from dpfit.privacy.collected_records import Collected
    from dpfit.privacy.workers import Workers


def check_cluster(options: FitOptions) -> None:
    """Refuse a cluster that is none, or cannot read the input.

    Raises
    ------
    UsageError
        See above.
    """
    from dpfit.cli.cluster import check_address

    if options.cluster is None:
        if options.insecure_cluster:
            raise UsageError("--insecure-cluster belongs to --cluster")
        return
    check_address(options.cluster, insecure=options.insecure_cluster)
    if options.inputs == ["-"]:
        raise UsageError(
            "--cluster: workers cannot read this process's standard input",
            hint="name files that the workers find, or URLs",
        )


def check_keeping(options: FitOptions, paths: Sequence[str]) -> None:
    """Refuse to keep rows of which a later run could not know whether they are the same.

    Raises
    ------
    UsageError
        See above.
    """
    if not options.keep_cache:
        return
    if options.cache is None or options.cluster is not None:
        raise UsageError("--keep-cache needs --cache DIR, and no --cluster")
    if options.inputs == ["-"]:
        raise UsageError("--keep-cache: standard input cannot be known again")
    if any(map(is_remote, paths)):
        raise UsageError(
            "--keep-cache: what is behind a URL cannot be known again",
            hint="fetch it first, or fit without --keep-cache",
        )


def kept_rows(reader: Reader, request: FitRequest, source: str, streams: Streams) -> Collected:
    """Rows that an earlier run kept, or that are kept now."""
    from dpfit.privacy.kept_records import kept_records

    collected, found = kept_records(
        reader,
        finest_grid(request),
        source,
        threads=request.threads,
        storage=request.storage,
    )
    streams.step("the rows were kept by an earlier run" if found else "the rows are kept")
    return collected


def rows_on(
    workers: Workers, reader: Reader, request: FitRequest, source: str, streams: Streams
) -> Collected:
    """Rows that stay on the workers which read them."""
    from dpfit.privacy.cluster_records import ClusterCollected

    _tell_idle(len(workers.addresses), len(reader.paths), streams)
    # What the first file says holds for all: a worker may never see that file.
    options = replace(reader.options, textual_labels=reader.labels_are_text())
    return ClusterCollected.read(
        workers,
        [_path_of_worker(path) for path in reader.paths],
        replace(options, feature_map=reader.feature_map),
        finest_grid(request),
        source,
        storage=_storage_of_worker(request.storage),
    )


def _tell_idle(n_workers: int, n_files: int, streams: Streams) -> None:
    """Say that a file is read by one worker as a whole."""
    if n_workers > n_files:
        streams.inform(
            f"{n_workers} workers share {n_files} {'file' if n_files == 1 else 'files'}: "
            f"the others have nothing to do, unless the input is split"
        )


def _path_of_worker(path: str) -> str:
    """A worker's working directory is another."""
    return path if is_remote(path) else os.path.abspath(path)


def _storage_of_worker(storage: Storage) -> Storage:
    return replace(storage, folder=storage.folder and os.path.abspath(storage.folder))
