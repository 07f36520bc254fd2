"""A run that an estimator charges: to a ledger file, or to none if that was said."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Literal, Protocol, TypeVar

from dpfit.errors import DpfitError, UsageError
from dpfit.files.atomic import check_writable
from dpfit.fitting.charge import Charge, Planned, Result
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.ledger import Ledger

_ENDS = (".json", ".ledger")


class Model(Protocol):
    """What is written to a model file."""

    def to_bytes(self) -> bytes:
        """The file."""
        ...


AnyModel = TypeVar("AnyModel", bound=Model)


def ledger_path(ledger: object) -> str | Literal[False] | None:
    """The path of a ledger as a text; False for none, None where nothing was said.

    Raises
    ------
    UsageError
        It is something else.
    """
    if ledger is None or ledger is True:
        return None
    if ledger is False:
        return False
    path = os.fspath(ledger) if isinstance(ledger, str | os.PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise UsageError("--ledger must be the path of a file, or False")
    return path


def ledger_of(parameters: SimpleNamespace) -> Ledger | None:
    """Where a run is charged; None if the user said nowhere.

    There is no default. A file in the working directory would be easy to overlook, and its runs are
    lost to the sum as soon as the directory is another; no file would be worse.

    Raises
    ------
    UsageError
        Nothing was said.
    StorageError
        It cannot be written.
    """
    path = parameters.ledger
    if path is False:
        return None
    if path is None:
        raise UsageError(
            "no ledger was given",
            hint="ledger='NAME.ledger.json' adds up what all runs on the same records spend, those "
            "of the command line too; with ledger=False nothing does",
        )
    check_writable(path, overwrite=True)
    return Ledger(path, lock_timeout=parameters.lock_timeout)


def dataset_of(parameters: SimpleNamespace) -> str:
    """What the ledger calls the data: by default the ledger's name without its ends."""
    if parameters.dataset is not None:
        return str(parameters.dataset)
    if not parameters.ledger:
        return "data"
    name = os.path.basename(parameters.ledger)
    for end in _ENDS:
        name = name.removesuffix(end)
    return name or "data"


def run_charged(
    planned: Planned[Result], ledger: Ledger | None, document: Callable[[Result], AnyModel]
) -> tuple[AnyModel, Json | None]:
    """Charge, fit and make the model.

    Parameters
    ----------
    planned : Planned
        What runs.
    ledger : Ledger or None
        Where it is charged.
    document : callable
        The model, from the result.

    Returns
    -------
    model
    mapping or None
        The entry of the charge in the ledger.
    """
    if ledger is None:
        return document(planned.run(_nothing, _nothing)), None
    charge = Charge(planned.events, ledger)
    try:
        model = document(planned.run(charge.reserve, _nothing))
        charge.release(model.to_bytes())
    except BaseException as error:
        with contextlib.suppress(DpfitError):
            charge.abort(type(error).__name__)
        raise
    return model, charge.entry


def _nothing(_: object) -> None:
    """Neither a charge nor progress."""
