"""A long ledger goes on in a new file: nothing is lost, and a run reads the last part alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dpfit.errors import PrivacyError, StorageError
from dpfit.privacy import ledger as ledger_module
from dpfit.privacy import ledger_document, ledger_part
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import PureEvent
from dpfit.privacy.ledger import Ledger
from dpfit.privacy.ledger_document import LedgerDocument, earlier_part, parse_ledger, resume
from dpfit.privacy.ledger_frame import Cap
from dpfit.privacy.ledger_part import LONGEST_ENDING

RUNS = 25
EVENT = PureEvent(
    label="b", epsilon=PerAdjacency(replace_one=Fraction(1, 8), add_remove=Fraction(1, 7))
)
CAP = Cap(float(Fraction(RUNS, 8)), 1e-6, Adjacency.REPLACE_ONE)


def opened(path: Path) -> Ledger:
    return Ledger(str(path), lock_timeout=0)


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has room for a few runs."""
    monkeypatch.setattr(ledger_module, "LARGEST_PART", 2500)


@pytest.fixture
def path(tmp_path: Path, short_parts: None) -> Path:
    """A ledger of :data:`RUNS` runs under their cap, in several parts; every third is open."""
    path = tmp_path / "l.json"
    opened(path).create(CAP)
    for number in range(RUNS):
        one = opened(path)
        one.check([EVENT])
        run = one.reserve([EVENT], {"dataset": f"d{number}"})
        if number % 3:
            one.close(run, "released")
    return path


def parts_of(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.glob("l.json.*") if file.suffix != ".lock")


def test_parts_are_one_ledger(path: Path) -> None:
    """All runs, outcomes and costs are there, in their order, as without parts."""
    assert len(parts_of(path)) >= 3
    assert all(file.stat().st_size < 6000 for file in (path, *parts_of(path)))
    document = opened(path).read()
    reserved = [entry for entry in document.entries() if entry["kind"] == "reserved"]
    assert [entry["dataset"] for entry in reserved] == [f"d{number}" for number in range(RUNS)]
    outcomes = list(document.outcomes().values())
    assert outcomes == ["released" if number % 3 else "unreleased" for number in range(RUNS)]
    whole = LedgerDocument.start(CAP)
    for entry in document.entries():
        whole = whole.append({k: v for k, v in entry.items() if k not in ("previous", "hash")})
    assert whole.checkpoint == document.checkpoint
    for adjacency in Adjacency:
        assert document.cost(adjacency) == compose([EVENT] * RUNS, adjacency)


def test_cap_over_all_parts(path: Path) -> None:
    """What earlier parts spent counts, without a look at them."""
    for file in parts_of(path):
        file.unlink()
    for refused in (Ledger.check, lambda *args: Ledger.reserve(*args, {})):
        with pytest.raises(PrivacyError, match="the budget does not allow this run"):
            refused(opened(path), [EVENT])


def test_a_run_reads_the_last_part_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked, charged and closed with all earlier parts away, and no entry verified."""
    before = parse_ledger(parts_of(path)[0].read_bytes(), "l")
    path.write_bytes(before.next_part().data)
    for file in parts_of(path):
        file.rename(file.with_suffix(".away"))

    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr(ledger_document, "_line", never)
        patched.setattr(LedgerDocument, "entries", never)
        one = opened(path)
        one.check([EVENT])
        one.close(one.reserve([EVENT], {}), "released")
    resumed = resume(path.read_bytes())
    assert resumed is not None
    expected = before.cost(Adjacency.REPLACE_ONE) + compose([EVENT], Adjacency.REPLACE_ONE)
    assert resumed.checkpoint.cost == expected


def test_a_run_may_close_in_a_later_part(tmp_path: Path, short_parts: None) -> None:
    """A long run among short ones keeps its name through the parts, and has seen them all grow."""
    path = tmp_path / "l.json"
    long = opened(path)
    long.check([EVENT])
    run = long.reserve([EVENT], {"dataset": "long"})
    waiting = opened(path)
    waiting.check([EVENT])
    for _ in range(RUNS):
        one = opened(path)
        one.close(one.reserve([EVENT], {}), "released")
    assert len(parts_of(path)) >= 3
    waiting.reserve([EVENT], {"dataset": "waited"})
    long.close(run, "released")
    assert opened(path).read().outcomes()[run] == "released"


def filled(path: Path) -> None:
    """Charge runs until the next begins a new part."""
    while opened(path).read().size <= ledger_module.LARGEST_PART:
        opened(path).reserve([EVENT], {})


def changed(file: Path, old: bytes, new: bytes) -> None:
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new))


HARMS: dict[str, tuple[Callable[[list[Path]], object], str]] = {
    "missing": (lambda parts: parts[0].unlink(), "no such file, and it holds earlier runs"),
    "cut": (lambda parts: os.truncate(parts[1], parts[1].stat().st_size // 2), "damaged"),
    "changed": (lambda parts: changed(parts[0], b'"d1"', b'"d7"'), "damaged ledger: .* hash"),
    "another": (
        lambda parts: parts[0].write_bytes(LedgerDocument.start(CAP).data),
        "the part before it is another",
    ),
    "two exchanged": (
        lambda parts: parts[1].write_bytes(parts[0].read_bytes()),
        "it is not part 2",
    ),
    "grown since": (
        lambda parts: parts[0].write_bytes(
            parse_ledger(parts[0].read_bytes(), "l")
            .append({"kind": "reserved", "run": "late", "events": [EVENT.to_json()]})
            .data
        ),
        "the part before it is another",
    ),
}


def test_parts_lie_beside_the_file_that_a_link_leads_to(tmp_path: Path, short_parts: None) -> None:
    """Two links, two folders, one ledger; and a missing part is named where it belongs."""
    path = tmp_path / "l.json"
    links = [tmp_path / "a" / "now.json", tmp_path / "b" / "l.json"]
    for link in links:
        link.parent.mkdir()
        link.symlink_to(path)
    for number in range(RUNS):
        opened(links[number % 2]).reserve([EVENT], {})
    assert len(parts_of(path)) >= 3
    assert all(opened(link).read() == opened(path).read() for link in links)
    parts_of(path)[0].unlink()
    with pytest.raises(PrivacyError, match=re.escape(str(tmp_path / "l.json.1-"))):
        opened(links[0]).read()


@pytest.mark.parametrize("harm", HARMS)
def test_harm_to_an_earlier_part(path: Path, harm: str) -> None:
    """Whoever adds up a ledger whose earlier part is gone or is another is refused."""
    act, message = HARMS[harm]
    act(parts_of(path))
    with pytest.raises(PrivacyError, match=message):
        opened(path).read()


def test_a_forged_start(path: Path) -> None:
    """A part that says less was spent before it than was is refused by whoever adds up."""
    data = path.read_bytes()
    document = resume(data)
    assert document is not None
    assert document.earlier is not None
    stated = dict(document.earlier.checkpoint)
    stated["cost"] = {**stated["cost"], "pure": "1/8"}  # type: ignore[dict-item]
    forged = ledger_part.EarlierPart(document.earlier.number, stated)
    harmed = data.replace(
        json.dumps(document.earlier.to_json(), sort_keys=True, separators=(",", ":")).encode(),
        json.dumps(forged.to_json(), sort_keys=True, separators=(",", ":")).encode(),
    )
    assert harmed != data
    assert resume(harmed) is None
    path.write_bytes(harmed)
    with pytest.raises(PrivacyError, match="what it says of the part before it"):
        opened(path).read()


def test_parts_of_another_version_are_counted_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version takes no cost of an older one on trust, in no part; a run then needs all."""
    monkeypatch.setattr(ledger_document, "__version__", "9.9.9")
    monkeypatch.setattr("dpfit.privacy.ledger_checkpoint.__version__", "9.9.9")
    assert resume(path.read_bytes()) is None
    document = opened(path).read()
    assert document.cost(Adjacency.REPLACE_ONE) == compose([EVENT] * RUNS, Adjacency.REPLACE_ONE)
    with pytest.raises(PrivacyError, match="does not allow"):
        opened(path).check([EVENT])
    newest = parts_of(path)[-1]
    newest.rename(newest.with_suffix(".away"))
    with pytest.raises(PrivacyError, match="no such file"):
        opened(path).check([EVENT])


def test_a_version_may_change_between_parts(
    tmp_path: Path, short_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first entry of a newer version leaves a ledger that this version resumes."""
    path = tmp_path / "l.json"
    for number in range(RUNS):
        if number == RUNS // 2:
            monkeypatch.setattr(ledger_document, "__version__", "9.9.9")
            monkeypatch.setattr("dpfit.privacy.ledger_checkpoint.__version__", "9.9.9")
        opened(path).reserve([EVENT], {})
    assert resume(path.read_bytes()) is not None
    assert len(opened(path).read().outcomes()) == RUNS


def test_a_name_too_long_for_parts_is_refused_at_once(tmp_path: Path, short_parts: None) -> None:
    """Not hundreds of runs later; the longest name that is taken serves to the last part."""
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") - LONGEST_ENDING
    with pytest.raises(StorageError, match="its name is too long"):
        opened(tmp_path / ("l" * (longest + 1))).check([EVENT])
    path = tmp_path / ("l" * longest)
    for _ in range(RUNS):
        one = opened(path)
        one.check([EVENT])
        one.reserve([EVENT], {})
    assert len(opened(path).read().outcomes()) == RUNS


def test_parts_have_the_mode_of_their_ledger(tmp_path: Path, short_parts: None) -> None:
    """What was closed to others stays closed."""
    path = tmp_path / "l.json"
    opened(path).create(CAP)
    path.chmod(0o600)
    for _ in range(RUNS):
        opened(path).reserve([EVENT], {})
    assert {file.stat().st_mode & 0o777 for file in (path, *parts_of(path))} == {0o600}


def test_a_kill_between_part_and_ledger(
    tmp_path: Path, short_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part written, and the ledger not: the ledger is the old one, and goes on."""
    path = tmp_path / "l.json"
    opened(path).create(CAP)
    filled(path)
    old = path.read_bytes()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(path).reserve([EVENT], {})
    assert path.read_bytes() == old
    assert [file.read_bytes() for file in parts_of(path)] == [old]
    opened(path).reserve([EVENT], {})
    assert [file.read_bytes() for file in parts_of(path)] == [old]
    runs = old.count(b'"kind":"reserved"')
    assert len(opened(path).read().outcomes()) == runs + 1


def test_a_part_is_no_ledger(path: Path) -> None:
    """Given as the ledger, an earlier part is refused: its cap would allow what is long spent."""
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    for part in parts_of(path):
        for refused in (
            Ledger.read,
            lambda ledger: ledger.check([EVENT]),
            lambda ledger: ledger.reserve([EVENT], {}),
        ):
            with pytest.raises(PrivacyError, match=r"an earlier part of a ledger|no such file"):
                refused(opened(part))
    with pytest.raises(PrivacyError, match="an earlier part of a ledger"):
        opened(parts_of(path)[0]).read()
    kept = {file: file.read_bytes() for file in path.parent.iterdir() if file in before}
    assert kept == before


def naming(number: int, tip: str = "0" * 64) -> bytes:
    """A ledger without entries that names this earlier part."""
    earlier = {"part": number, "checkpoint": {"tip": tip}}
    document = {"schema": "dpfit-ledger/1", "cap": None, "earlier": earlier, "entries": []}
    return json.dumps({**document, "checkpoint": {}, "sha256": ""}).encode()


@pytest.mark.parametrize("copies", [[1], [2, 1], [3, 2, 3]])
def test_parts_that_name_each_other_in_a_circle(
    tmp_path: Path, short_parts: None, copies: list[int]
) -> None:
    """Each step back must lead to a part of the number before, so that there is an end."""
    path = tmp_path / "l.json"
    checked = opened(path)
    checked.check([EVENT])
    checked.reserve([EVENT], {})
    path.write_bytes(naming(copies[0]))
    for number, named in zip(copies, [*copies[1:], copies[-1]], strict=True):
        path.with_name(f"l.json.{number}-{'0' * 12}").write_bytes(naming(named))
    for refused in (Ledger.read, lambda ledger: ledger.check([EVENT])):
        with pytest.raises(PrivacyError, match="damaged ledger: it is not part"):
            refused(opened(path))
    with pytest.raises(PrivacyError, match="damaged ledger"):
        checked.reserve([EVENT], {})


def test_parts_are_bounded_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts there are, adding them up has a limit."""
    monkeypatch.setattr(ledger_module, "_LARGEST_LEDGER", 6000)
    with pytest.raises(PrivacyError, match="larger than a ledger can be"):
        opened(path).read()


@pytest.mark.parametrize("there", ["a link", "a link to nothing", "the null device", "a pipe"])
def test_what_stands_at_the_name_of_a_part(tmp_path: Path, short_parts: None, there: str) -> None:
    """Nothing is written through a link, into a device or a pipe; the run is not charged."""
    path, victim = tmp_path / "l.json", tmp_path / "victim"
    opened(path).create(CAP)
    filled(path)
    victim.write_text("kept")
    document = opened(path).read()
    name = Path(document.as_earlier().path(str(path)))
    if there == "a pipe":
        os.mkfifo(name)
    else:
        target = {"a link": victim, "the null device": Path("/dev/null")}
        name.symlink_to(target.get(there, tmp_path / "nowhere"))
    with pytest.raises(StorageError, match="stands where the ledger keeps its earlier runs"):
        opened(path).reserve([EVENT], {})
    assert victim.read_text() == "kept"
    assert opened(path).read() == document


def test_open_runs_do_not_end_a_part(tmp_path: Path, short_parts: None) -> None:
    """However many runs were killed, a part has room for its own entries."""
    path = tmp_path / "l.json"
    for _ in range(6 * RUNS):
        opened(path).reserve([EVENT], {})
    assert len(parts_of(path)) < 6 * RUNS / 3


def test_versions_that_take_turns(
    tmp_path: Path, short_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of this version goes on from parts that another ended while it read its data."""
    path = tmp_path / "l.json"
    waiting = opened(path)
    waiting.check([EVENT])
    waiting.reserve([EVENT], {})
    with monkeypatch.context() as patched:
        patched.setattr(ledger_document, "__version__", "9.9.9")
        patched.setattr("dpfit.privacy.ledger_checkpoint.__version__", "9.9.9")
        for _ in range(RUNS):
            opened(path).reserve([EVENT], {})
    waiting.reserve([EVENT], {})
    assert len(opened(path).read().outcomes()) == RUNS + 2


@pytest.mark.parametrize(
    "earlier",
    [
        None,
        {},
        {"part": 0, "checkpoint": {"tip": "0" * 64}},
        {"part": True, "checkpoint": {"tip": "0" * 64}},
        {"part": 1, "checkpoint": {"tip": "../" * 22}},
        {"part": 10**4299, "checkpoint": {"tip": "0" * 64}},
        {"part": 1, "checkpoint": {"tip": 10**63}},
        {"part": 1, "checkpoint": {}},
        {"part": 1, "checkpoint": []},
        {"part": 1, "checkpoint": {"tip": "0" * 64}, "more": 1},
        {"part": 1, "checkpoint": {"tip": "0" * 64}},
    ],
)
def test_what_is_no_earlier_part(path: Path, earlier: object) -> None:
    """Only a whole number and a hash name a file; whatever else stands there is damage."""
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "earlier": earlier}), encoding="utf-8")
    with pytest.raises(PrivacyError, match=r"damaged ledger|no such file|it is not part"):
        opened(path).read()
    named = earlier_part(path.read_bytes())
    assert named is None or named.tip == "0" * 64
