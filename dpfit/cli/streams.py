"""Where results, notes, warnings and progress go: results to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dpfit.data.remote import is_remote
from dpfit.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE: Final = 5.0  # seconds, before a person may think that nothing happens

_USER: Final = re.compile(r"://\S*@")
_QUERY: Final = re.compile(r"(://\S*?(?:\?|%3f))\S*(?:=|%3d)\S*", re.IGNORECASE)

_closed: set[int] = set()  # of the standard descriptors, when the program began


def reserve_standard_descriptors() -> None:
    """Put the null device where stdin, stdout or stderr is closed.

    Otherwise the next file opened, perhaps the model, would get that number, and messages with it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            _closed.add(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def require_standard_output() -> None:
    """Refuse a result there that nobody would have.

    Raises
    ------
    UsageError
        It was closed when the program began.
    """
    if 1 in _closed:
        raise UsageError("standard output is closed", hint="give -o FILE")


def masked(text: str) -> str:
    """The text without user, password and query of a URL, wherever one was given and refused."""
    return _QUERY.sub(r"\1***", _USER.sub("://***@", text))


def printable(text: str) -> str:
    """The text in one line without control characters: names and labels may come from anybody."""
    text = masked(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def plain_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """The lines of a two-column table, for files and pipes."""
    clean = [(printable(name), printable(text)) for name, text in rows]
    width = max(len(name) for name, _ in clean)
    return "\n".join([printable(title), *(f"  {name:<{width}}  {text}" for name, text in clean)])


@dataclass(frozen=True)
class Streams:
    """The user's wishes about output. They never change a number.

    Attributes
    ----------
    quiet : bool
        Errors only.
    verbose : int
        1 tells the steps, 2 debugging detail.
    progress : bool or None
        None: when stderr is a terminal.
    color : str
        ``auto``, ``always`` or ``never``.
    """

    quiet: bool = False
    verbose: int = 0
    progress: bool | None = None
    color: str = "auto"

    @property
    def interactive(self) -> bool:
        """Whether a person reads stderr now."""
        return sys.stderr.isatty()

    def result(self, text: str) -> None:
        """One or more lines of result."""
        sys.stdout.write(text + "\n")

    def result_json(self, value: Mapping[str, object]) -> None:
        sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")

    def warn(self, text: str) -> None:
        if not self.quiet:
            sys.stderr.write(f"dpfit: warning: {printable(text)}\n")

    def inform(self, text: str) -> None:
        """What an unattended run should still say in one line."""
        if not self.quiet:
            sys.stderr.write(f"dpfit: {printable(text)}\n")

    def step(self, text: str) -> None:
        if self.verbose and not self.quiet:
            sys.stderr.write(f"dpfit: {printable(text)}\n")

    def result_table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """A two-column table on stdout."""
        if sys.stdout.isatty():
            _rich_table(self._console(to_stderr=False), title, rows)
        else:
            self.result(plain_table(title, rows))

    def summary_table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """A table for the person at the terminal; nothing when stderr is not one."""
        if self.interactive and not self.quiet:
            _rich_table(self._console(to_stderr=True), title, rows)

    @contextlib.contextmanager
    def waiting_for(self, operands: Sequence[str]) -> Iterator[None]:
        """Say what a run waits for that looks for inputs behind a URL and gets no answer."""
        remote = next(filter(is_remote, operands), None)
        if remote is None:
            yield
            return
        text = f"still waiting for credentials or an answer: {remote}"
        timer = threading.Timer(_PATIENCE, self.inform, [text])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def progress_bar(self, task: str, total: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that shows how much is done; no object at all off a terminal."""
        wanted = self.interactive if self.progress is None else self.progress
        if not wanted or self.quiet:
            yield lambda done: None
            return
        from rich.progress import Progress

        with Progress(console=self._console(to_stderr=True), transient=True) as bar:
            handle = bar.add_task(task, total=total)
            yield lambda done: bar.update(handle, completed=done)

    def _console(self, *, to_stderr: bool) -> Console:
        from rich.console import Console

        never = self.color == "never" or os.environ.get("TERM") == "dumb"
        return Console(
            stderr=to_stderr,
            no_color=True if never else None,
            force_terminal=True if self.color == "always" else None,
            highlight=False,
        )


def _rich_table(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=printable(title), show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(escape(printable(name)), escape(printable(text)))
    console.print(table)
