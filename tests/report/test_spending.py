"""What a ledger spent over time, as a picture and in the characters of a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import Event, GaussianEvent, NonPrivateEvent
from dpfit.privacy.ledger_document import LedgerDocument
from dpfit.privacy.ledger_frame import Cap
from dpfit.report.chart import at_most
from dpfit.report.spending import Spending
from dpfit.report.text_chart import HEIGHT, drawn

EVENT = GaussianEvent(label="g", squared_sensitivity=PerAdjacency(1, 1), scale=9)
CAP = Cap(4.0, 1e-6, Adjacency.REPLACE_ONE)
DAYS = [f"2026-{month:02d}-03T03:15:00Z" for month in range(1, 13)]


def ledger(times: list[str], event: Event = EVENT, cap: Cap | None = CAP) -> LedgerDocument:
    """Runs at these times."""
    document = LedgerDocument.start(cap)
    for number, time in enumerate(times):
        entry = {
            "kind": "reserved",
            "run": f"r{number}",
            "time": time,
            "events": [event.to_json()],
            "adjacency": "replace-one",
        }
        document = document.append(entry)
    return document


def spending(document: LedgerDocument, delta: float = 1e-6) -> Spending:
    return Spending.of(document, Adjacency.REPLACE_ONE, delta)


def test_each_step_is_what_was_spent() -> None:
    """After every run the accountant's own sum; the chart rises at the run's time."""
    told = spending(ledger(DAYS))
    for runs, epsilon in told.after[1:]:
        assert epsilon == compose([EVENT] * runs, Adjacency.REPLACE_ONE).epsilon(1e-6)
    chart = told.chart()
    assert chart is not None
    xs = [x for x, _ in chart.series[0].points]
    assert xs == sorted(xs)
    assert chart.x.label == "time (UTC)"
    assert chart.x.ticks[0][1] == "2026-01-03"
    assert chart.series[1].points[0][1] == 4.0


@pytest.mark.parametrize(
    "times",
    [[DAYS[0]] * 3, [DAYS[2], DAYS[1], DAYS[0]], ["yesterday", DAYS[0], "\x1b[2J"], DAYS[:1]],
    ids=["at once", "clock set back", "no times", "one run"],
)
def test_runs_are_counted_where_times_do_not_tell(times: list[str]) -> None:
    """The axis counts runs, and every run stands at its number."""
    chart = spending(ledger(times)).chart()
    assert chart is not None
    assert chart.x.label == "runs"
    assert [x for x, _ in chart.series[0].points] == [0, *range(len(times)), len(times)]


@pytest.mark.parametrize("seconds", [1, 2, 3, 60, 119, 120, 3600, 250_000, 10_000_000])
def test_no_two_times_of_the_axis_read_alike(seconds: int) -> None:
    """They are as fine as the ledger is short, and the day is said where they leave it out."""
    first = datetime(2026, 11, 30, 11, 41, 7, tzinfo=UTC)
    moments = [first, first + timedelta(seconds=seconds)]
    chart = spending(ledger([f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in moments])).chart()
    assert chart is not None
    labels = [label for _, label in chart.x.ticks]
    assert len({*labels}) == len(labels) >= 2
    assert any("30" in said for said in (labels[0].split(":")[0], chart.x.label))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 10, 500, 1001])
def test_the_table_leaves_out_no_run(count: int) -> None:
    """The last eight have a row each, all before them one."""
    rows = spending(ledger(["2026-01-03T03:15:00Z"] * count)).chart().rows  # type: ignore[union-attr]
    names = [row[0] for row in rows]
    each = [str(run) for run in range(max(count - 8, 0) + 1, count + 1)]
    earlier = {0: [], 1: ["1"]}.get(max(count - 8, 0), [f"1 to {count - 8}, together"])
    assert names == [*earlier, *each]
    for row, run in zip(rows, range(count - len(rows) + 1, count + 1), strict=True):
        assert row[2] == at_most(compose([EVENT] * run, Adjacency.REPLACE_ONE).epsilon(1e-6))


def test_a_long_ledger_is_thinned_and_ends_where_it_ends() -> None:
    """No more points than a picture shows, the last run among them."""
    told = spending(ledger(["2026-01-03T03:15:00Z"] * 1001))
    assert len(told.after) <= 202
    assert told.after[-1][0] == 1001
    assert told.spent == compose([EVENT] * 1001, Adjacency.REPLACE_ONE).epsilon(1e-6)


def test_the_cap_is_drawn_at_its_own_delta_only() -> None:
    """At another delta it would be no cap."""
    assert spending(ledger(DAYS), 1e-9).cap is None
    assert spending(ledger(DAYS, cap=None)).cap is None


@pytest.mark.parametrize("times", [[], DAYS])
def test_nothing_to_draw(times: list[str]) -> None:
    """A ledger without runs, and one without a bound, have no picture but a sentence."""
    event = NonPrivateEvent(label="x")
    told = spending(ledger(times, event, None if times else CAP))
    assert told.chart() is None
    assert ("without bound" in told.sentence()) == bool(times)


def test_a_run_that_is_not_private_ends_the_line() -> None:
    """What was spent before it is drawn; nothing is after it."""
    document = ledger(DAYS[:3], cap=None)
    last = {"kind": "reserved", "run": "x", "time": DAYS[3], "adjacency": "replace-one"}
    document = document.append({**last, "events": [NonPrivateEvent(label="x").to_json()]})
    chart = spending(document).chart()
    assert chart is not None
    assert len(chart.series[0].points) == 4
    assert chart.rows[-1][2] == "unbounded"


@pytest.mark.parametrize("width", [1, 40, 80, 500])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_lines_fit_the_terminal(width: int, ascii_only: bool) -> None:
    """Never wider, never fewer rows; in ASCII where nothing else is known."""
    chart = spending(ledger(DAYS)).chart()
    assert chart is not None
    lines = drawn(chart, width=width, ascii_only=ascii_only)
    assert len(lines) == HEIGHT + 3
    assert max(map(len, lines)) <= max(24, min(width, 120))
    assert "\n".join(lines).isascii() == ascii_only


@pytest.mark.parametrize("ascii_only", [False, True])
def test_what_keeps_the_cap_is_not_above_its_row(ascii_only: bool) -> None:
    """Just below the cap, or at it: no column has a part above the cap's line."""
    one = compose([EVENT], Adjacency.REPLACE_ONE).epsilon(1e-6)
    for share in [*(0.5 + place / 200 for place in range(101)), 0.967]:
        cap = Cap(one / share, 1e-6, Adjacency.REPLACE_ONE)
        chart = spending(ledger(DAYS[:1], cap=cap)).chart()
        assert chart is not None
        rows = drawn(chart, width=80, ascii_only=ascii_only)[1 : HEIGHT + 1]
        (rule,) = [place for place, row in enumerate(rows) if row.endswith(" cap")]
        bars = [
            row.split("|" if ascii_only else "\N{BOX DRAWINGS LIGHT VERTICAL}")[1] for row in rows
        ]
        assert not "".join(bars[:rule]).strip()


def test_columns_are_as_high_as_what_was_spent() -> None:
    """Half of the cap fills about half of the rows, and columns never fall."""
    told = spending(ledger(DAYS))
    chart = told.chart()
    assert chart is not None
    rows = drawn(chart, width=80, ascii_only=True)[1 : HEIGHT + 1]
    heights = [sum(row[column : column + 1] == "#" for row in rows) for column in range(6, 76)]
    assert heights == sorted(heights)
    assert heights[-1] == round(HEIGHT * told.spent / chart.y.high)
