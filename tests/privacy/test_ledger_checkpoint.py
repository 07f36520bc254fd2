"""The checkpoint: what a run takes on trust is what every entry would have told it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpfit.errors import PrivacyError
from dpfit.privacy import ledger_document
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.canonical_json import canonical
from dpfit.privacy.events import (
    Event,
    GaussianEvent,
    MinimiserEvent,
    MinimiserLaw,
    NonPrivateEvent,
    PureEvent,
    ZcdpEvent,
)
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_document import LedgerDocument, parse_ledger, resume
from dpfit.privacy.ledger_frame import Cap

TENTH = PerAdjacency(replace_one=Fraction(1, 10), add_remove=Fraction(1, 7))
FOUR = PerAdjacency(replace_one=4, add_remove=1)
EVENTS: list[Event] = [
    GaussianEvent(label="a", squared_sensitivity=FOUR, scale=9),
    PureEvent(label="b", epsilon=TENTH, count=3),
    ZcdpEvent(label="c", rho=TENTH),
    MinimiserEvent(
        label="d",
        law=MinimiserLaw.GAUSSIAN,
        sensitivity=TENTH,
        scale=Fraction(3),
        jacobian=TENTH,
    ),
    NonPrivateEvent(label="e"),
]


def ledger(adjacency: Adjacency | None, runs: int = len(EVENTS)) -> LedgerDocument:
    """A run of each kind of event; every other one was released."""
    document = LedgerDocument.start(Cap(4.0, 1e-6, adjacency) if adjacency else None)
    for number, event in enumerate(EVENTS[:runs]):
        run = f"run {number}"
        document = document.append({"kind": "reserved", "run": run, "events": [event.to_json()]})
        if number % 2:
            document = document.append({"kind": "released", "run": run})
    return document


@pytest.mark.parametrize("adjacency", [None, *Adjacency])
def test_resumed_is_verified(adjacency: Adjacency | None) -> None:
    """At every length the checkpoint says what verifying all entries says, and goes on alike."""
    for runs in range(len(EVENTS) + 1):
        data = ledger(adjacency, runs).data
        resumed, verified = resume(data), parse_ledger(data, "l")
        assert resumed == verified
        assert resumed is not None
        assert resumed.checkpoint == verified.checkpoint
        if adjacency is not None:
            assert resumed.cost(adjacency) == compose(EVENTS[:runs], adjacency)
        more = {"kind": "reserved", "run": "more", "events": [EVENTS[0].to_json()]}
        longer = resumed.append(more)
        assert longer.data == verified.append(more).data
        assert "more" in longer.checkpoint.open_runs
        assert resumed.checkpoint == parse_ledger(data, "l").checkpoint  # a document never changes


def test_any_flipped_bit_is_noticed() -> None:
    """A file that differs in one bit anywhere, or lost its end, is not resumed."""
    whole = ledger(Adjacency.REPLACE_ONE).data
    assert resume(whole) is not None
    for at in range(len(whole)):
        assert resume(whole[:at]) is None
        assert resume(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :]) is None


def test_what_is_no_json_is_refused() -> None:
    """Entries in another encoding, each of which a JSON reader would guess, are not read."""
    whole = written(ledger(None)) + b"\n]}\n"
    head, line, rest = whole.partition(whole.split(b"\n")[4].removesuffix(b","))
    for other in (b"\xef\xbb\xbf" + line, line.decode().encode("utf-16-le")):
        with pytest.raises(PrivacyError):
            parse_ledger(head + other + rest, "l")


def test_another_head_is_not_resumed() -> None:
    """Where entries begin is known from the head: one in another layout is refused, hash or no."""
    document = ledger(Adjacency.REPLACE_ONE)
    end = document.data.partition(b"\n],\n")[2].rpartition(b'"sha256"')[0]
    body = written(document).replace(b'"cap":', b'"cap": ') + b"\n],\n" + end
    data = body + f'"sha256":"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()
    assert resume(data) is None
    with pytest.raises(PrivacyError, match="SHA-256"):
        parse_ledger(data, "l")


def test_last_line_is_the_hash_of_the_lines_before() -> None:
    """Any program can check the whole file: SHA-256 of all lines but the last (man page)."""
    *lines, last = ledger(None).data.splitlines(keepends=True)
    told = hashlib.sha256(b"".join(lines)).hexdigest()
    assert last == f'"sha256":"{told}"}}\n'.encode()


def written(document: LedgerDocument) -> bytes:
    """The file up to its last entry."""
    return document.data.partition(b'\n],\n"checkpoint"')[0]


def without_checkpoint(document: LedgerDocument) -> bytes:
    """As earlier versions wrote it."""
    return written(document) + b"\n]}\n"


def test_earlier_ledgers_are_read() -> None:
    """A ledger without a checkpoint is verified as a whole and gets one with its next entry."""
    document = ledger(Adjacency.REPLACE_ONE)
    data = without_checkpoint(document)
    assert resume(data) is None
    assert parse_ledger(data, "l").data == document.data


def sealed_anew(document: LedgerDocument, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The ledger with another checkpoint, and the hash that belongs to it."""
    stated = json.loads(canonical(document.checkpoint.to_json()))
    change(stated)
    body = written(document) + b'\n],\n"checkpoint":' + canonical(stated).encode() + b",\n"
    return body + f'"sha256":"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cost lowered": lambda stated: stated["cost"].update(gaussian="0/1"),
    "no cost": lambda stated: stated.update(cost=None),
    "doublings": lambda stated: stated["cost"].update(doublings=0),
    "denominator of zero": lambda stated: stated["cost"].update(rho="1/0"),
    "not in lowest terms": lambda stated: stated["cost"].update(rho="2/4"),
    "fraction too long": lambda stated: stated["cost"].update(rho=f"1/{'f' * 5000}"),
    "fraction without end": lambda stated: stated["cost"].update(rho="1"),
    "cost that is none": lambda stated: stated["cost"].update(infinite=1),
    "another tip": lambda stated: stated.update(tip="0" * 64),
    "a run closed": lambda stated: stated["open"].pop(),
    "open runs of many kinds": lambda stated: stated.update(open=["a", 1, []]),
    "a tip that is no text": lambda stated: stated.update(tip=1),
    "a further member": lambda stated: stated.update(more=1),
    "a member less": lambda stated: stated.pop("open"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_checkpoint_that_its_entries_do_not_bear_out(forgery: str) -> None:
    """Whoever verifies the ledger refuses a forged checkpoint; no forgery crashes a run."""
    data = sealed_anew(ledger(Adjacency.REPLACE_ONE, 4), FORGERIES[forgery])
    resume(data)
    for layout in (data, data.replace(b'"entries":[\n', b'"entries":[ ')):
        with pytest.raises(PrivacyError, match="its checkpoint is not what its entries come to"):
            parse_ledger(layout, "l")


def test_checkpoint_of_another_version() -> None:
    """What another version made of the entries is not taken on trust: they are counted anew."""
    document = ledger(Adjacency.REPLACE_ONE, 4)
    lowered = {"gaussian": "0/1", "rho": "0/1", "noise": "0/1", "pure": "0/1"}
    data = sealed_anew(document, lambda stated: stated.update(dpfit="0.0.9", cost=lowered))
    assert resume(data) is None
    assert parse_ledger(data, "l").data == document.data


def test_runs_read_no_entry(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on a ledger as dpfit wrote it verifies no entry and adds up no old charge."""
    path = tmp_path / "l.json"
    path.write_bytes(ledger(Adjacency.REPLACE_ONE, 2).data)

    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr(ledger_document, "_line", never)
        patched.setattr(LedgerDocument, "entries", never)
        for _ in range(3):
            owned = Ledger(str(path), lock_timeout=0)
            owned.check(EVENTS[:1])
            owned.close(owned.reserve(EVENTS[:1], {"dataset": "d"}), "released")
    spent = parse_ledger(path.read_bytes(), "l").cost(Adjacency.REPLACE_ONE)
    assert spent == compose([*EVENTS[:2], *EVENTS[:1] * 3], Adjacency.REPLACE_ONE)


def test_cap_of_a_resumed_ledger(tmp_path: Any) -> None:
    """Old charges count: what a verified ledger would refuse, a resumed one refuses."""
    event = EVENTS[0]
    cap = compose([event] * 3, Adjacency.REPLACE_ONE).epsilon(1e-6)
    path = tmp_path / "l.json"
    Ledger(str(path), lock_timeout=0).create(Cap(cap, 1e-6, Adjacency.REPLACE_ONE))
    for _ in range(3):
        Ledger(str(path), lock_timeout=0).reserve([event], {})
    assert resume(path.read_bytes()) is not None
    for refused in (Ledger.check, lambda *args: Ledger.reserve(*args, {})):
        with pytest.raises(PrivacyError, match="the budget does not allow this run"):
            refused(Ledger(str(path), lock_timeout=0), [event])


SMALL = [
    PureEvent(label="b", epsilon=PerAdjacency(replace_one=Fraction(1), add_remove=Fraction(1)))
]


@pytest.mark.parametrize("event", ["moved away", "an older copy", "another ledger"])
def test_a_run_keeps_to_the_ledger_that_it_checked(tmp_path: Path, event: str) -> None:
    """Between a run's first look and its charge a ledger may grow; it may not lose a run or its
    cap, whatever stands in its place."""
    path = tmp_path / "l.json"
    cap = Cap(4.0, 1e-6, Adjacency.REPLACE_ONE)
    Ledger(str(path), lock_timeout=0).create(cap)
    older = path.read_bytes()
    Ledger(str(path), lock_timeout=0).reserve(SMALL, {})
    run = Ledger(str(path), lock_timeout=0)
    run.check(SMALL)
    Ledger(str(path), lock_timeout=0).reserve(SMALL, {})
    if event == "moved away":
        path.unlink()
    else:
        other = LedgerDocument.start() if event == "another ledger" else None
        path.write_bytes(other.data if other else older)
    there = path.read_bytes() if path.exists() else None
    with pytest.raises(PrivacyError, match="not the ledger that it was"):
        run.reserve(SMALL, {})
    assert (path.read_bytes() if path.exists() else None) == there


def test_a_ledger_may_grow_between_check_and_charge(tmp_path: Path) -> None:
    """Runs of other processes in between are kept, and counted against the cap."""
    path = str(tmp_path / "l.json")
    Ledger(path, lock_timeout=0).create(Cap(2.5, 1e-6, Adjacency.REPLACE_ONE))
    first, second = (Ledger(path, lock_timeout=0) for _ in range(2))
    for one in (first, second):
        one.check(SMALL)
    first.reserve(SMALL, {})
    second.reserve(SMALL, {})
    assert len(list(Ledger(path, lock_timeout=0).read().entries())) == 2
    with pytest.raises(PrivacyError, match="does not allow"):
        first.reserve(SMALL, {})


def test_a_link_is_followed_once(tmp_path: Path) -> None:
    """A link that is turned to another ledger while a run goes on costs neither ledger a run."""
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for runs, file in enumerate(files, start=1):
        for _ in range(runs):
            Ledger(str(file), lock_timeout=0).reserve(SMALL, {})
    link = tmp_path / "now.json"
    link.symlink_to(files[0])
    run = Ledger(str(link), lock_timeout=0)
    run.check(SMALL)
    link.unlink()
    link.symlink_to(files[1])
    run.close(run.reserve(SMALL, {}), "released")
    kinds = [len(list(Ledger(str(file), lock_timeout=0).read().entries())) for file in files]
    assert kinds == [1 + 2, 2]
