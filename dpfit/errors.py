"""The errors a user can meet, each mapped once to an exit status by ``cli/app.py``.

A message says what was found, what was expected and where; it never carries a value from the data.
"""

from __future__ import annotations


def reason_of(error: OSError) -> str:
    """What the system said, as the end of a message: ``no such file or directory``."""
    return (error.strerror or type(error).__name__).lower()


class DpfitError(Exception):
    """Base of every error that ends a run with one line.

    Parameters
    ----------
    message : str
        What is wrong, in one line, without a value from the data.
    hint : str, optional
        What to do next.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # The constructors' keywords are not among the arguments that pickling would repeat.
        return _remade, (type(self), self.args, vars(self))


def _remade(kind: type[DpfitError], args: tuple[object, ...], state: dict[str, object]) -> object:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class UsageError(DpfitError):
    """An option, a setting or a combination of them makes no sense (exit status 2)."""


class DataError(DpfitError):
    """An input record or file is not what its format promises (exit status 3).

    Parameters
    ----------
    message : str
        What is wrong, without a value from the data.
    path : str
        The file as the user named it; ``-`` is standard input.
    line : int, optional
        Physical line, counted from 1. Binary formats have none.
    hint : str, optional
        What to do next.
    """

    def __init__(
        self, message: str, *, path: str, line: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        name = "standard input" if self.path == "-" else self.path
        place = name if self.line is None else f"{name}:{self.line}"
        return f"{place}: {self.message}"


class PrivacyError(DpfitError):
    """The guarantee cannot be given: the budget does not suffice or a bound is missing (4)."""


class StorageError(DpfitError):
    """A file cannot be read or written (exit status 5)."""


class LockBusyError(DpfitError):
    """Another process holds the ledger's lock (exit status 6)."""


class NotConvergedError(DpfitError):
    """The solver did not reach the accuracy that the guarantee needs (exit status 7)."""
