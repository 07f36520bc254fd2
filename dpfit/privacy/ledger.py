"""The ledger file: charge first, release afterwards, never two writers at once.

Order of events in a run: :meth:`Ledger.check` (before any data is read), :meth:`Ledger.reserve`
(on disk before the noise key exists), then the release, then :meth:`Ledger.close`. A crash in
between leaves the charge spent.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from dpfit.errors import PrivacyError, StorageError
from dpfit.files.atomic import write_atomically
from dpfit.files.lock import locked
from dpfit.privacy.accountant import compose
from dpfit.privacy.canonical_json import Json
from dpfit.privacy.events import Event, NonPrivateEvent
from dpfit.privacy.ledger_document import LedgerDocument, earlier_part, parse_ledger, resume
from dpfit.privacy.ledger_file import ledger_bytes
from dpfit.privacy.ledger_frame import Cap
from dpfit.privacy.ledger_part import LONGEST_ENDING, EarlierPart

_LARGEST_LEDGER = 1 << 30  # all parts, eight hundred thousand runs
LARGEST_PART = 1 << 20  # some eight hundred runs; a longer ledger goes on in a new file


class Ledger:
    """A ledger on disk, shared by every process that knows its path.

    Parameters
    ----------
    path : str
        The file; it need not exist.
    lock_timeout : float
        Seconds to wait for another process that is writing.
    while_waiting : callable, optional
        Called again and again during that wait; ends it by raising.
    """

    def __init__(
        self,
        path: str,
        *,
        lock_timeout: float,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        # Links are followed once: to read one file and write another would lose the other's runs.
        real = os.path.realpath(path)
        self._file = path if os.path.abspath(path) == real else real
        self._lock_timeout = lock_timeout
        self._while_waiting = while_waiting
        self._known: LedgerDocument | None = None  # as last read or written here
        self._reserved: dict[str, Json] = {}

    def read(self, *, must_exist: bool = False) -> LedgerDocument:
        """The document with every entry verified; an empty one if the file does not exist.

        Parameters
        ----------
        must_exist : bool
            Refuse a missing file instead.

        Raises
        ------
        StorageError
            The file cannot be read.
        PrivacyError
            The file is damaged.
        """
        data = ledger_bytes(self._file, self.path)
        if data is None and must_exist:
            raise StorageError(
                f"{self.path}: no such file",
                hint="is the name right? --cap-eps and --cap-delta start a ledger with a cap",
            )
        if data is None:
            return LedgerDocument.start()
        return self._refuse_part(self._verified(data, self.path))

    def _look(self) -> LedgerDocument:
        """The document, by its checkpoint where that will do."""
        known = self._known.data if self._known else b""
        data = ledger_bytes(self._file, self.path, known)
        if data is None:
            self._refuse_long_name()
            return LedgerDocument.start()
        if self._known is None or data is not known:
            self._known = self._refuse_part(resume(data) or self._verified(data, self.path))
        return self._known

    def _refuse_long_name(self) -> None:
        """Refuse now what would have no name for its first part, some hundred runs later."""
        folder, name = os.path.split(self._file)
        if not os.path.isdir(folder or "."):
            return  # said where it is written
        room = os.pathconf(folder or ".", "PC_NAME_MAX") - len(os.fsencode(name))
        if room < LONGEST_ENDING:
            raise StorageError(
                f"{self.path}: cannot be a ledger: its name is too long",
                hint=f"earlier parts of a long ledger have names {LONGEST_ENDING} bytes longer",
            )

    def _refuse_part(self, document: LedgerDocument) -> LedgerDocument:
        """Refuse an earlier part by its name: it knows nothing of what was spent since."""
        if self._file.endswith(document.as_earlier().path("")):
            raise PrivacyError(
                f"{self.path}: is an earlier part of a ledger",
                hint="give the ledger, whose name is before the number",
            )
        return document

    def _verified(self, data: bytes, path: str) -> LedgerDocument:
        """The document by every entry of every part, from the first."""
        parts, size = [(data, path)], len(data)
        while (earlier := earlier_part(parts[-1][0])) is not None:
            parts.append(self._part(earlier))
            size += len(parts[-1][0])
            if size > _LARGEST_LEDGER:
                raise PrivacyError(f"{path}: damaged ledger: larger than a ledger can be")
        document = None
        for data, path in reversed(parts):
            document = parse_ledger(data, path, document)
        assert document is not None
        return document

    def _part(self, earlier: EarlierPart) -> tuple[bytes, str]:
        """An earlier part's file, and its name."""
        path = earlier.path(self._file)
        data = ledger_bytes(path, path)
        if data is None:
            raise PrivacyError(
                f"{path}: no such file, and it holds earlier runs of {self.path}",
                hint="put it back beside the ledger: what was spent is added up from all parts",
            )
        before = earlier_part(data)
        if earlier.number != (1 if before is None else before.number + 1):
            raise PrivacyError(f"{path}: damaged ledger: it is not part {earlier.number}")
        return data, path

    def _grown(self) -> LedgerDocument:
        """The document, which still has all that was seen of it before, its cap too.

        Raises
        ------
        PrivacyError
            It was moved away, or an old copy or another file took its place.
        """
        before = self._known
        document = self._look()
        if before is not None and not self._has(document, before):
            raise PrivacyError(
                f"{self.path}: is not the ledger that it was when the run began",
                hint="put back the file that holds every run, and start again",
            )
        return document

    def _has(self, document: LedgerDocument, before: LedgerDocument) -> bool:
        """Whether a document has all of another, which may have ended in an earlier part since."""
        while document.earlier is not None and document.part > before.part:
            data, path = self._part(document.earlier)
            document = resume(data) or self._verified(data, path)
        return document.continues(before)

    def create(self, cap: Cap) -> LedgerDocument:
        """Start a ledger with a cap.

        Raises
        ------
        StorageError
            The file exists: a cap belongs to the first line of the chain and is not changed.
        """
        document = LedgerDocument.start(cap)
        with self._locked() as last_look:
            if os.path.lexists(self._file):
                raise StorageError(
                    f"{self.path}: exists, and the cap of a ledger cannot be changed",
                    hint="start a new ledger file for a new cap",
                )
            write_atomically(self._file, document.data, overwrite=False, last_look=last_look)
        return document

    def check(self, events: Sequence[Event]) -> None:
        """Refuse, without writing, a charge that the cap does not allow."""
        _refuse_beyond_cap(self._grown(), events, self.path)

    def reserve(self, events: Sequence[Event], description: Mapping[str, object]) -> str:
        """Charge a run: on disk when this returns.

        Parameters
        ----------
        events : sequence of Event
            Everything the run may release.
        description : mapping
            Data set name, algorithm, public facts and settings, as JSON values.

        Returns
        -------
        str
            The run's name.

        Raises
        ------
        PrivacyError
            The cap does not allow it, or the ledger is damaged, or another than was checked.
        LockBusyError, StorageError
            The file could not be locked, read or written.
        """
        with self._locked() as last_look:
            document = self._grown()
            _refuse_beyond_cap(document, events, self.path)
            run = uuid.uuid4().hex
            self._reserved[run] = {
                "kind": "reserved",
                "run": run,
                "time": _now(),
                "events": [event.to_json() for event in events],
                **description,
            }
            if document.size > LARGEST_PART:
                document = self._part_ended(document, last_look)
            self._write(document.append(self._reserved[run]), last_look)
        return run

    def reserved(self, run: str) -> Json:
        """The entry of a reservation that was made here."""
        return self._reserved[run]

    def _part_ended(
        self, document: LedgerDocument, last_look: Callable[[], None]
    ) -> LedgerDocument:
        """Keep a long document in a file of its own; the part that goes on from it.

        Until the new part is written the ledger is the old one, and the copy means nothing.
        """
        path = document.as_earlier().path(self._file)
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            # Its name can be foreseen: a link there would lead the only copy astray.
            raise StorageError(
                f"{path}: stands where the ledger keeps its earlier runs", hint="remove it"
            )
        write_atomically(
            path,
            document.data,
            overwrite=True,
            last_look=last_look,
            mode_of=self._file,
        )
        return document.next_part()

    def close(self, run: str, outcome: str, **detail: str) -> None:
        """Append how a run ended, ``released`` or ``aborted``. The charge does not change.

        Raises
        ------
        PrivacyError
            The file no longer holds the run's reservation: it was replaced by another, such as an
            old copy. The charge was written once more, so that it is not lost.
        """
        with self._locked() as last_look:
            document = self._look()
            end: Json = {"kind": outcome, "run": run, "time": _now(), **detail}
            lost = run not in document.checkpoint.open_runs
            entries = [self._reserved[run], end] if lost else [end]
            self._write(document.append(*entries), last_look)
        if lost:
            raise PrivacyError(
                f"{self.path}: was replaced while the run went on; its charge was written again",
                hint="other runs may be missing: restore a copy that holds every run",
            )

    def _write(self, document: LedgerDocument, last_look: Callable[[], None]) -> None:
        write_atomically(self._file, document.data, overwrite=True, last_look=last_look)
        self._known = document

    def _locked(self) -> AbstractContextManager[Callable[[], None]]:
        return locked(self._file, timeout=self._lock_timeout, while_waiting=self._while_waiting)


def _refuse_beyond_cap(document: LedgerDocument, events: Sequence[Event], path: str) -> None:
    cap = document.cap
    if cap is None:
        return
    spent = document.cost(cap.adjacency)
    if any(isinstance(event, NonPrivateEvent) for event in events):
        raise PrivacyError(
            f"{path}: has a cap, and a run that is not private cannot be charged to it",
            hint="name another --ledger for trials",
        )
    after = (spent + compose(events, cap.adjacency)).epsilon(cap.delta)
    if after > cap.epsilon:
        raise PrivacyError(
            f"{path}: the budget does not allow this run: epsilon would be {after:.4g} "
            f"at delta {cap.delta:g} under {cap.adjacency}, the cap is {cap.epsilon:g}, "
            f"{spent.epsilon(cap.delta):.4g} is spent",
            hint="ask for less (`dpfit budget LEDGER` shows what is left); runs under another "
            "--adjacency need a ledger whose cap has it too",
        )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
