"""Where a charged run reads and writes: names by default, and refusals before anything is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpfit.cli import signals
from dpfit.cli.streams import require_standard_output
from dpfit.cli.targets import check_apart, check_target
from dpfit.data.compression import SUFFIXES
from dpfit.data.remote import is_remote, stem_of
from dpfit.errors import UsageError
from dpfit.files.atomic import check_writable
from dpfit.files.lock import lock_name
from dpfit.privacy.ledger import Ledger


class FileOptions(Protocol):
    """The options that name files of a charged run."""

    @property
    def inputs(self) -> Sequence[str]: ...
    @property
    def output(self) -> str | None: ...
    @property
    def ledger(self) -> str | None: ...
    @property
    def dataset(self) -> str | None: ...
    @property
    def force(self) -> bool: ...
    @property
    def lock_timeout(self) -> float: ...


@dataclass(frozen=True)
class RunFiles:
    """The files of a charged run.

    Attributes
    ----------
    source : str
        What to call the input in messages.
    dataset : str
        What the ledger calls the data.
    model_path : str
        ``-`` is standard output.
    force : bool
        Whether the model may replace a file.
    ledger : Ledger
        Where the run is charged.
    ledger_is_named : bool
        Whether by ``--ledger``, so that a slip of the pen would begin another one.
    """

    source: str
    dataset: str
    model_path: str
    force: bool
    ledger: Ledger
    ledger_is_named: bool

    @classmethod
    def from_options(cls, options: FileOptions, suffix: str) -> RunFiles:
        """Resolve names; touches no file.

        Parameters
        ----------
        options : FileOptions
            Of the command.
        suffix : str
            End of a model's name, such as ``.model.json``.

        Raises
        ------
        UsageError
            Standard input gives no name.
        """
        stem = _stem(options, suffix)
        ledger = Ledger(
            options.ledger or f"{stem}.ledger.json",
            lock_timeout=options.lock_timeout,
            while_waiting=signals.raise_pending,
        )
        return cls(
            source=options.inputs[0],
            dataset=options.dataset or os.path.basename(stem),
            model_path=options.output or f"{stem}{suffix}",
            force=options.force,
            ledger=ledger,
            ledger_is_named=options.ledger is not None,
        )

    def check_apart_from(self, inputs: Iterable[str | None], *, writes: bool) -> None:
        """Refuse outputs that cannot or must not be written; a dry run, as the run itself would.

        An earlier model alone does not end a dry run: it is told, see :meth:`needs_force`.

        Parameters
        ----------
        inputs : iterable of str or None
            All that the run reads.
        writes : bool
            Whether the run will write a model and a charge; a dry run does not.

        Raises
        ------
        UsageError, StorageError
            An output is one of the inputs, exists, or is out of bounds.
        """
        reads = [path for path in inputs if path is not None]
        lock = lock_name(self.ledger.path)
        for path in (self.ledger.path, lock):
            check_apart(path, reads)
        if self.model_path != "-":
            reads += [self.ledger.path, lock]
            force = self.force or not writes
            check_target(self.model_path, force=force, reads=reads, replaces_models_only=True)
        elif writes:
            require_standard_output()
        check_writable(self.ledger.path, overwrite=True)

    @property
    def needs_force(self) -> bool:
        """Whether the run would be refused for an earlier model."""
        path = self.model_path
        return not self.force and path != "-" and os.path.isfile(path)


def _stem(options: FileOptions, suffix: str) -> str:
    """Base name of the first input without its extensions; of the model for standard input."""
    first_input, output = options.inputs[0], options.output
    if first_input == "-":
        if output is not None and output != "-":
            kind, dot, extension = suffix.rpartition(".")
            return output.removesuffix(dot + extension).removesuffix(kind)
        if output is None or options.ledger is None:
            raise UsageError(
                "reading standard input needs names for what is written",
                hint="give -o MODEL, and --ledger LEDGER if the model goes to standard output",
            )
        return "stdin"
    if is_remote(first_input):
        first_input = stem_of(first_input)
    name = os.path.basename(os.path.normpath(first_input))
    stem, last = os.path.splitext(name)
    if last.lower() in SUFFIXES:
        stem = os.path.splitext(stem)[0]
    return stem or name
