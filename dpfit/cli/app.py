"""The program: its commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from typer.main import get_command

from dpfit import __version__
from dpfit.cli import signals, streams
from dpfit.cli.command import COMMANDS, register
from dpfit.cli.exit_status import ExitStatus
from dpfit.cli.no_pandas import leave_pandas_alone
from dpfit.cli.streams import masked, printable
from dpfit.errors import (
    DataError,
    DpfitError,
    LockBusyError,
    NotConvergedError,
    PrivacyError,
    StorageError,
    UsageError,
    reason_of,
)
from dpfit.memory import is_lack_of_memory

_STATUS: Final[dict[type[DpfitError], ExitStatus]] = {
    UsageError: ExitStatus.USAGE,
    DataError: ExitStatus.INVALID_DATA,
    PrivacyError: ExitStatus.PRIVACY_REFUSAL,
    StorageError: ExitStatus.STORAGE,
    LockBusyError: ExitStatus.LOCK_BUSY,
    NotConvergedError: ExitStatus.NOT_CONVERGED,
}


# The interpreter's own end waits for threads: after an interruption one may want a lock that was
# left held, without memory one may end the process its own way.
_NOT_WAITED_FOR: Final = (
    ExitStatus.INTERNAL_FAULT,
    ExitStatus.HANGUP,
    ExitStatus.INTERRUPTED,
    ExitStatus.TERMINATED,
)


def build_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command tree.

    Parameters
    ----------
    names : sequence of str
        Commands to build; a run needs only its own, and starts faster for it.
    """
    app = typer.Typer(
        name="dpfit",
        help="Fit sparse models on sensitive files under differential privacy.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        module = importlib.import_module(f"dpfit.cli.{name.replace('-', '_')}")
        register(app, name, module.OPTIONS, module.BODY)
    return app


def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    """Fit sparse models on sensitive files under differential privacy."""


def main() -> None:
    """Entry point of the ``dpfit`` command."""
    gc.disable()  # imports leave no garbage to look for; the command turns it on again
    # No dense algebra here: a pool of BLAS threads would only spin while numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    leave_pandas_alone()
    streams.reserve_standard_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Results are UTF-8 in every locale, and a label or name may be any bytes.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    status = run(sys.argv[1:])
    if status in _NOT_WAITED_FOR:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run the program and return its exit status.

    Parameters
    ----------
    arguments : list of str
        Without the program's name.
    """
    if not arguments:
        run(["--help"])
        return ExitStatus.USAGE
    report = _Reporter(as_json="--json" in arguments, debug="--debug" in arguments)
    try:
        if arguments[0] == "--version":
            return _version(as_json="--json" in arguments)
        names = arguments[:1] if arguments[0] in COMMANDS else COMMANDS
        command = get_command(build_app(names))
        outcome = command.main(arguments, prog_name="dpfit", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else ExitStatus.DONE
    except DpfitError as error:
        return report.error(str(error), error.hint, _STATUS[type(error)], error)
    except typer.TyperException as error:
        return report.error(_told(error), _way_out(error), ExitStatus.USAGE, error)
    except typer.Abort:
        return ExitStatus.INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # Typer turns a closed pipe into its own exit before it reaches us.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _drop_standard_output()
        return ExitStatus.READER_CLOSED
    except (signals.Interrupted, KeyboardInterrupt) as interruption:
        signals.heard()
        number = getattr(interruption, "number", signal.SIGINT)
        return report.error(f"ended by {signal.Signals(number).name}", None, 128 + number, None)
    except Exception as error:
        return _unforeseen(error, report)


def _told(error: typer.TyperException) -> str:
    """Typer's words, without the type of an exception of its own."""
    return error.format_message().replace("Value error, ", "")


def _way_out(error: typer.TyperException) -> str:
    """Where the right name or value can be looked up."""
    context = getattr(error, "ctx", None)
    command = context.info_name if context is not None else None
    if command in COMMANDS:
        return f"dpfit {command} --help lists operands, options and their values"
    return f"the commands are {', '.join(COMMANDS)}; see dpfit --help"


def _unforeseen(error: Exception, report: _Reporter) -> int:
    """What no command turned into an error of its own."""
    if is_lack_of_memory(error):
        hint = "fewer --threads need less; what a ledger shows as reserved stays charged"
        return report.error("out of memory", hint, ExitStatus.INTERNAL_FAULT, error)
    if isinstance(error, OSError):
        _drop_standard_output()  # a full disk behind it would fail the last flush once more
        reason = reason_of(error)
        return report.error(f"input or output failed: {reason}", None, ExitStatus.STORAGE, error)
    where = f"internal fault ({type(error).__name__})"
    hint = "this is a bug; --debug shows where, and may show data with it"
    return report.error(where, hint, ExitStatus.INTERNAL_FAULT, error)


class _Reporter:
    """Writes the one line that an error gets."""

    def __init__(self, *, as_json: bool, debug: bool) -> None:
        self._as_json = as_json
        self._debug = debug

    def error(
        self, message: str, hint: str | None, status: int, cause: BaseException | None
    ) -> int:
        if self._debug and cause is not None:
            import traceback

            traceback.print_exception(cause)
        if self._as_json:
            line = json.dumps(
                {
                    "schema_version": 1,
                    "error": masked(message),
                    "hint": hint,
                    "exit_status": int(status),
                }
            )
        else:
            line = f"dpfit: error: {_one_line(message)}"
            line += f"\nhint: {_one_line(hint)}" if hint else ""
        try:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
        except OSError:  # nobody listens; the status still tells
            pass
        return int(status)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _version(*, as_json: bool) -> int:
    if not as_json:
        sys.stdout.write(f"dpfit {__version__}\n")
        sys.stdout.flush()
        return ExitStatus.DONE
    from importlib.metadata import version

    names = ("numpy", "scipy", "pyarrow", "cryptography")
    packages = {name: version(name) for name in names}
    document = {"schema_version": 1, "dpfit": __version__, "kernel": "csc-int64", **packages}
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()
    return ExitStatus.DONE


def _drop_standard_output() -> None:
    """Point stdout at the null device so that the interpreter's last flush finds no closed pipe."""
    with contextlib.suppress(OSError):
        os.close(1)  # first, since there may be no other descriptor left
    descriptor = os.open(os.devnull, os.O_WRONLY)
    if descriptor != 1:
        os.dup2(descriptor, 1)
        os.close(descriptor)
