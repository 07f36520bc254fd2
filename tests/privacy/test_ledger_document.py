"""The ledger document: what it says is what was written, or it is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfit.errors import PrivacyError
from dpfit.privacy import ledger_document
from dpfit.privacy.accountant import NOTHING, compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.canonical_json import canonical, digest
from dpfit.privacy.events import GaussianEvent
from dpfit.privacy.ledger_checkpoint import events_of
from dpfit.privacy.ledger_document import LedgerDocument, parse_ledger, resume
from dpfit.privacy.ledger_frame import Cap


def reserved(run: str, scale: int = 1000) -> dict[str, Any]:
    sensitivity = PerAdjacency(replace_one=400, add_remove=100)
    event = GaussianEvent(label="gradient", squared_sensitivity=sensitivity, scale=scale)
    return {"kind": "reserved", "run": run, "events": [event.to_json()], "dataset": "d"}


def ledger() -> LedgerDocument:
    """Three runs: released, aborted, and without a word."""
    document = LedgerDocument.start(Cap(4.0, 1e-6, Adjacency.REPLACE_ONE)).append(reserved("a"))
    document = document.append({"kind": "released", "run": "a", "model_sha256": "0"})
    document = document.append(reserved("b", 10)).append({"kind": "aborted", "run": "b"})
    return document.append(reserved("c"))


WHOLE = ledger().data


def test_round_trip() -> None:
    """parse(write(x)) = x, and the same document gives the same bytes."""
    parsed = parse_ledger(WHOLE, "l")
    assert parsed == ledger()
    assert parsed.data == WHOLE
    assert parse_ledger(LedgerDocument.start().data, "l") == LedgerDocument.start()


def test_every_reservation_counts() -> None:
    """A run costs the same whether it was released, aborted or never heard of again."""
    document = ledger()
    assert document.outcomes() == {"a": "released", "b": "aborted", "c": "unreleased"}
    cost = document.cost(Adjacency.REPLACE_ONE)
    assert cost.gaussian == 2 * cost.gaussian.__class__(400, 10**6) + 4
    bare = (
        LedgerDocument.start().append(reserved("a")).append(reserved("b", 10)).append(reserved("c"))
    )
    assert bare.cost(Adjacency.REPLACE_ONE) == cost


@given(
    at=st.integers(0, len(WHOLE) - 1),
    removed=st.integers(0, 40),
    added=st.binary(max_size=4),
)
def test_changed_bytes(at: int, removed: int, added: bytes) -> None:
    """Bytes changed, lost or added anywhere: refused, or without a meaning."""
    changed = WHOLE[:at] + added + WHOLE[at + removed :]
    assert resume(changed) == (ledger() if changed == WHOLE else None)
    with contextlib.suppress(PrivacyError):
        assert parse_ledger(changed, "l") == ledger()


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789eE.-aefnrstul ').map(str.encode))
def test_any_bytes(data: bytes) -> None:
    """Whatever is no ledger is refused, never a crash."""
    with pytest.raises(PrivacyError):
        parse_ledger(data, "l")


def edited(change: Callable[[dict[str, Any]], Any]) -> bytes:
    root = json.loads(WHOLE)
    change(root)
    return json.dumps(root).encode()


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cap raised": lambda root: root["cap"].update(epsilon=400.0),
    "cap taken away": lambda root: root.update(cap=None),
    "cap of another relation": lambda root: root["cap"].update(adjacency="add-remove"),
    "first entry removed": lambda root: root["entries"].pop(0),
    "middle entry removed": lambda root: root["entries"].pop(2),
    "entries swapped": lambda root: root["entries"].reverse(),
    "entry repeated": lambda root: root["entries"].append(root["entries"][0]),
    "scale raised": lambda root: root["entries"][2]["events"][0].update(scale=10**6),
    "scale as a float": lambda root: root["entries"][2]["events"][0].update(scale=10.0),
    "events emptied": lambda root: root["entries"][2].update(events=[]),
    "kind changed": lambda root: root["entries"][2].update(kind="released"),
    "name changed": lambda root: root["entries"][4].update(dataset="e"),
    "key added": lambda root: root["entries"][4].update(more=1),
    "hash removed": lambda root: root["entries"][4].pop("hash"),
    "entry that is none": lambda root: root["entries"].insert(1, 7),
    "schema changed": lambda root: root.update(schema="dpfit-ledger/2"),
    "cost of checkpoint lowered": lambda root: root["checkpoint"]["cost"].update(gaussian="0/1"),
    "cost of checkpoint as a number": lambda root: root["checkpoint"].update(cost=0),
    "checkpoint of another version": lambda root: root["checkpoint"].update(dpfit="0"),
    "checkpoint of no version": lambda root: root["checkpoint"].pop("dpfit"),
    "checkpoint that is none": lambda root: root.update(checkpoint=None),
    "checkpoint removed": lambda root: root.pop("checkpoint"),
    "run of checkpoint closed": lambda root: root["checkpoint"].update(open=[]),
    "last line changed": lambda root: root.update(sha256="0" * 64),
    "last line removed": lambda root: root.pop("sha256"),
    "key beside the entries": lambda root: root.update(more=1),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_are_found(edit: str) -> None:
    """An edited, moved or missing entry, or another cap, is refused at its place."""
    place = "(entry [1-6] of [4-6]: |it is not a |the document: )"
    with pytest.raises(PrivacyError, match=f"^l: damaged ledger: {place}"):
        parse_ledger(edited(EDITS[edit]), "l")


def earlier(root: dict[str, Any]) -> None:
    """Make a ledger as it was before there were checkpoints."""
    del root["checkpoint"], root["sha256"]


@pytest.mark.parametrize(
    "edit", [name for name in EDITS if not {"checkpoint", "last"} & {*name.split()}]
)
def test_edits_of_earlier_ledgers_are_found(edit: str) -> None:
    """The chain alone finds them too."""

    def both(root: dict[str, Any]) -> None:
        EDITS[edit](root)
        earlier(root)

    assert parse_ledger(edited(earlier), "l") == ledger()
    with pytest.raises(PrivacyError, match=r"^l: damaged ledger: (entry [1-6] of [4-6]: |it is )"):
        parse_ledger(edited(both), "l")


@pytest.mark.parametrize("epsilon", ["1e999", "-1", "0", '"4"', "null", "9" * 400, "9" * 5000])
def test_unusable_caps(epsilon: str) -> None:
    """A cap that is no positive number a float can hold is refused, however it is written."""
    cap = f'{{"epsilon":{epsilon},"delta":1e-6,"adjacency":"replace-one"}}'
    with pytest.raises(PrivacyError):
        parse_ledger(f'{{"schema":"dpfit-ledger/1","cap":{cap},"entries":[]}}'.encode(), "l")


def chained(contents: list[dict[str, Any]], cap: Cap | None = None) -> bytes:
    """A ledger with a right chain of whatever contents, as a forger would write it."""
    root: dict[str, Any] = {"schema": "dpfit-ledger/1", "cap": cap.to_json() if cap else None}
    tip, lines = digest(root), list[str]()
    for content in contents:
        entry = {**content, "previous": tip}
        tip = entry["hash"] = digest(entry)
        lines.append(canonical(entry))
    head = f'{{"schema":"dpfit-ledger/1",\n"cap":{canonical(root["cap"])},\n"entries":[\n'
    return (head + ",\n".join(lines) + "\n]}\n").encode()


NONSENSE: list[dict[str, Any]] = [
    {"kind": "released", "run": "never begun"},
    {"kind": "forgiven", "run": "a"},
    {"kind": "reserved", "run": "a", "events": [{"mechanism": "magic"}]},
    {"kind": "reserved", "run": "a", "events": "none"},
    {"kind": "reserved", "run": "a", "events": []},
    {"kind": "reserved", "run": "a"},
    {"kind": "reserved", "events": reserved("a")["events"]},
    {"kind": "reserved", "run": 7, "events": reserved("a")["events"]},
    {"kind": ["reserved"], "run": "a", "events": reserved("a")["events"]},
]


@pytest.mark.parametrize("content", NONSENSE)
def test_well_chained_nonsense(content: dict[str, Any]) -> None:
    """A chain that is intact but says what cannot be is refused, and dpfit does not write it."""
    data = chained([reserved("b"), content])
    for layout in (data, in_one_line(data)):
        with pytest.raises(PrivacyError, match="entry 2 of 2"):
            parse_ledger(layout, "l")
    with pytest.raises((ValueError, KeyError)):
        LedgerDocument.start().append(content)


def test_old_copy_is_valid() -> None:
    """A ledger without its last entries is valid: it cannot know of them (documented)."""
    shorter = LedgerDocument.start(ledger().cap).append(reserved("a"))
    assert parse_ledger(shorter.data, "l") == shorter


# --- line by line --------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["run", "hash", "previous", "time", "events", "a"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
MEMBERS = st.dictionaries(
    st.sampled_from(["dataset", "time", "settings", "model_sha256", "é", "zebra"]), VALUES
)


def in_one_line(data: bytes) -> bytes:
    """The same content in a layout that has no lines to read one by one."""
    return data.replace(b'"entries":[\n', b'"entries":[ ')


def slowly(data: bytes) -> LedgerDocument:
    """What the reader of any layout makes of a ledger."""
    return parse_ledger(in_one_line(data), "l")


@given(st.lists(MEMBERS, max_size=4), st.sampled_from([None, Cap(4.0, 1e-6, Adjacency.ADD_REMOVE)]))
def test_lines_are_read_as_any_layout_is(members: list[dict[str, Any]], cap: Cap | None) -> None:
    """Whatever members entries have, every reader gives the same document, and the same bytes."""
    document = LedgerDocument.start(cap)
    for number, more in enumerate(members):
        document = document.append({**more, **reserved(f"{number:x}")})
        document = document.append({**more, "kind": "aborted", "run": f"{number:x}"})
    data = document.data
    assert parse_ledger(data, "l") == slowly(data) == document == resume(data)
    assert parse_ledger(data, "l").data == slowly(data).data == data


@given(
    at=st.integers(0, len(WHOLE) - 1),
    removed=st.integers(0, 80),
    added=st.binary(max_size=4) | st.sampled_from([b'"', b'"run":"a",', b'"hash":"0",', b",\n{}"]),
)
def test_both_readers_refuse_the_same(at: int, removed: int, added: bytes) -> None:
    """A changed ledger is accepted by both readers or by none."""
    changed = WHOLE[:at] + added + WHOLE[at + removed :]
    answers = []
    for read in (
        lambda: parse_ledger(changed, "l"),
        lambda: slowly(changed),
    ):
        try:
            answers.append(read().data)
        except PrivacyError:
            answers.append(b"refused")
    assert answers[0] == answers[1]


def test_a_name_that_occurs_twice_in_a_line() -> None:
    """A second member of the same name, hashed along with the line or not, is refused."""
    line = WHOLE.split(b"\n")[3].removesuffix(b",")
    doubled = line.replace(b'{"dataset"', b'{"dataset":"x","dataset"', 1)
    assert doubled != line
    with pytest.raises(PrivacyError, match="a key occurs twice"):
        parse_ledger(WHOLE.replace(line, doubled), "l")
    claimed = json.loads(line)["hash"].encode()
    unhashed = doubled.replace(b'"hash":"' + claimed + b'",', b"")
    forged = doubled.replace(claimed, hashlib.sha256(unhashed).hexdigest().encode())
    head, _, _ = WHOLE.partition(line)
    with pytest.raises(PrivacyError, match="a key occurs twice"):
        parse_ledger(head + forged + b"\n]}\n", "l")


def test_large_ledgers_are_read_by_lines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a size a ledger must be as dpfit wrote it, and the place of damage is still told."""
    monkeypatch.setattr(ledger_document, "_LARGEST_FREE_LAYOUT", 100)
    assert parse_ledger(WHOLE, "l") == ledger()
    with pytest.raises(PrivacyError, match="frame"):
        slowly(WHOLE)
    with pytest.raises(PrivacyError, match="entry 3 of 5"):
        parse_ledger(WHOLE.replace(b'"scale":10,', b'"scale":99,'), "l")


def test_alike_runs_cost_their_number() -> None:
    """The total is the exact sum, whether or not runs share their events."""
    document = LedgerDocument.start()
    for number in range(50):
        document = document.append(reserved(f"{number:x}", 10 + number % 3))
    shared = parse_ledger(document.data, "l")
    events = [event for entry in document.entries() for event in events_of(entry["events"])]
    for adjacency in Adjacency:
        exact = compose(events, adjacency)
        assert document.cost(adjacency) == shared.cost(adjacency) == exact
        own = [cost for _, cost in shared.charges(adjacency)]
        assert sum(own, NOTHING) == exact
