"""A charged run of the command line, which signals may end, and the writing of its model."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dpfit.cli import signals
from dpfit.errors import DpfitError
from dpfit.files.atomic import write_atomically
from dpfit.fitting.charge import Charge, Planned, Result

if TYPE_CHECKING:
    from dpfit.cli.run_files import RunFiles
    from dpfit.cli.streams import Streams
    from dpfit.privacy.canonical_json import Json
    from dpfit.privacy.events import Event


class ChargedRun:
    """Charges a run and writes its model.

    Parameters
    ----------
    events : sequence of Event
        The charge.
    files : RunFiles
        Where it is made.
    streams : Streams
        Where a ledger is told that is new although it was named.
    """

    def __init__(self, events: Sequence[Event], files: RunFiles, streams: Streams) -> None:
        self._charge = Charge(events, files.ledger)
        self._files = files
        self._streams = streams

    def reserve(self, description: Json) -> None:
        """Put the charge on disk."""
        path = self._files.ledger.path
        is_new = self._files.ledger_is_named and not os.path.exists(path)
        with signals.uninterrupted():
            self._charge.reserve(description)
        if is_new:
            self._streams.inform(f"{path}: a new ledger, without a cap")

    def write(self, model: bytes, path: str, *, overwrite: bool) -> None:
        """Write the model whole and tell the ledger; ``-`` is standard output."""
        if path == "-":
            # Not protected: a reader that stalls must not make the run deaf to signals.
            sys.stdout.buffer.write(model)
            sys.stdout.buffer.flush()
        with signals.uninterrupted():
            if path != "-":
                write_atomically(path, model, overwrite=overwrite)
            self._charge.release(model)

    def show(self, result: bytes) -> None:
        """Write a result that is no model to standard output and tell the ledger."""
        sys.stdout.buffer.write(result)
        sys.stdout.buffer.flush()
        with signals.uninterrupted():
            self._charge.release()

    def abort(self, error: BaseException) -> None:
        """Say that the run ended without a model."""
        reason = type(error).__name__
        if isinstance(error, signals.Interrupted):
            reason = error.number.name
        with contextlib.suppress(DpfitError), signals.uninterrupted():
            self._charge.abort(reason)


@contextlib.contextmanager
def charged_run(events: Sequence[Event], files: RunFiles, streams: Streams) -> Iterator[ChargedRun]:
    """A run that is aborted in the ledger when the block fails after its reservation."""
    run = ChargedRun(events, files, streams)
    try:
        yield run
    except BaseException as error:
        signals.heard()
        run.abort(error)
        raise


def run_and_write(
    planned: Planned[Result],
    files: RunFiles,
    streams: Streams,
    *,
    task: str,
    document: Callable[[Result], bytes],
) -> Result:
    """Charge, fit and write the model.

    Parameters
    ----------
    planned : Planned
        What runs.
    files : RunFiles
        Where the charge and the model go.
    streams : Streams
        Where progress is shown.
    task : str
        What to call it there.
    document : callable
        The model file, from the result.
    """
    with charged_run(planned.events, files, streams) as run:
        with streams.progress_bar(task, planned.steps) as show:

            def between_steps(done: int) -> None:
                signals.raise_pending()
                show(done)

            # Raised amid the threads' locks, an interruption could leave one held for ever.
            with signals.uninterrupted():
                result = planned.run(run.reserve, between_steps)
        run.write(document(result), files.model_path, overwrite=files.force)
    return result
