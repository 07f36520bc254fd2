"""The ledger's side of one run: what was reserved ends as released or aborted, once."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpfit.cli import signals
from dpfit.errors import DpfitError
from dpfit.files.atomic import write_atomically

if TYPE_CHECKING:
    from dpfit.privacy.events import Event
    from dpfit.privacy.ledger import Ledger
    from dpfit.privacy.ledger_document import Json


class ChargedRun:
    """Charges a run and writes its model.

    Parameters
    ----------
    events : sequence of Event
        The charge.
    ledger : Ledger
        Where it is made.
    """

    def __init__(self, events: Sequence[Event], ledger: Ledger) -> None:
        self._events = events
        self._ledger = ledger
        self._run: str | None = None

    def reserve(self, description: Json) -> None:
        """Put the charge on disk."""
        with signals.uninterrupted():
            self._run = str(self._ledger.reserve(self._events, description)["run"])

    def write(self, model: bytes, path: str, *, overwrite: bool) -> None:
        """Write the model whole and tell the ledger; ``-`` is standard output."""
        if path == "-":
            # Not protected: a reader that stalls must not make the run deaf to signals.
            sys.stdout.buffer.write(model)
            sys.stdout.buffer.flush()
        with signals.uninterrupted():
            if path != "-":
                write_atomically(path, model, overwrite=overwrite)
            # From here on a failure is that of the last entry itself, not of the run.
            run, self._run = self._run, None
            assert run is not None
            self._ledger.close(run, "released", model_sha256=hashlib.sha256(model).hexdigest())

    def abort(self, error: BaseException) -> None:
        """Say that the run ended without a model; the charge stays with or without this entry."""
        if self._run is None:
            return
        reason = type(error).__name__
        if isinstance(error, signals.Interrupted):
            reason = error.number.name
        with contextlib.suppress(DpfitError), signals.uninterrupted():
            self._ledger.close(self._run, "aborted", reason=reason)


@contextlib.contextmanager
def charged_run(events: Sequence[Event], ledger: Ledger) -> Iterator[ChargedRun]:
    """A run that is aborted in the ledger when the block fails after its reservation."""
    run = ChargedRun(events, ledger)
    try:
        yield run
    except BaseException as error:
        signals.heard()
        run.abort(error)
        raise
