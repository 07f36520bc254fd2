"""The page of a model, and that of a plan: one file, which asks nothing of any network.

Its policy lets a browser load nothing and run nothing; the one style sheet is named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from xml.etree.ElementTree import Element

from dpfit import __version__
from dpfit.privacy.accountant import Cost
from dpfit.report.attack import TradeOff, attack_chart, privacy_chart
from dpfit.report.chart import Chart, at_most, percent_at_most
from dpfit.report.elements import Child, element, serialised, shortened, table
from dpfit.report.largest import Largest
from dpfit.report.plan import LEAST_DELTA, MOST, Plan
from dpfit.report.promise import OUTSIDE, assumptions, group_note, not_private, promise
from dpfit.report.protected import SpentOnEach
from dpfit.report.released_run import ReleasedRun
from dpfit.report.spending import Spending
from dpfit.report.style import STYLE
from dpfit.report.svg import bar, figure

PLAN_TITLE: Final = "Error to expect, before anything is spent"
_PAIR: Final = ("setting", "value")
_PLAN_TEXT: Final = (
    "What to expect from the noise of one release that spends everything on single rows, for "
    "columns on a scale of one, residuals within 1 and a well conditioned design; and, as a "
    "yardstick, the minimax rate, which no private method beats by more than a constant and powers "
    "of log n. Real data differ: read off the shape, and how much a doubled epsilon buys, not the "
    "height."
)
_NOTHING_NEW: Final = (
    "Everything here is computed from the model and the ledger, which are released already, and "
    "from public facts. Nothing new is released, and nothing was charged for it."
)


@dataclass(frozen=True)
class LedgerPart:
    """What the page says of a ledger.

    Attributes
    ----------
    spending : Spending
        Under the relation of its cap, if it has one.
    on_each : SpentOnEach
        Under the relation of the model's run.
    run : int or None
        Number of the run that released the model, by the hash of its file; None if no run did.
    """

    spending: Spending
    on_each: SpentOnEach
    run: int | None

    def beside(self, record: str) -> tuple[str, Cost] | None:
        """What to call the runs that count against one such record, and what they cost."""
        spent = self.on_each.on(record)
        if spent is None:
            return None
        every = spent.runs == self.on_each.total.runs
        named = "all runs of the ledger" if every else f"all runs of the ledger for a {record}"
        return named, spent.cost


@dataclass(frozen=True)
class ModelPage:
    """All that the page of a model shows.

    Attributes
    ----------
    run : ReleasedRun
    largest : Largest
    ledger : LedgerPart or None
    """

    run: ReleasedRun
    largest: Largest
    ledger: LedgerPart | None

    @cached_property
    def trade_off(self) -> TradeOff:
        """The best attacker against the run."""
        return TradeOff.of(self.run.cost)

    @cached_property
    def plan(self) -> Plan | None:
        """Error against epsilon for the numbers of this run; None where it is not for such runs."""
        numbers = self.run.numbers
        rows, features = numbers.get("rows", 0), numbers.get("features", 0)
        if not (
            1 <= rows <= MOST and 1 <= features <= MOST and LEAST_DELTA <= self.run.delta < 1.0
        ):
            return None
        if self.run.record != "row":  # noise is then for all rows of a unit
            return None
        sparsity = numbers.get("sparsity")
        if sparsity is not None and not 1 <= sparsity < features:
            sparsity = None
        return Plan(rows, features, sparsity, self.run.delta, self.run.adjacency)

    @property
    def _marked(self) -> float | None:
        """The run's epsilon, where the picture of a plan has a place for it."""
        return self.run.epsilon if 0.0 < self.run.epsilon < math.inf else None

    @cached_property
    def charts(self) -> list[Chart]:
        """The pictures, in their order; those of privacy only where there is some."""
        charts = []
        if self.run.private:
            beside = self.ledger.beside(self.run.record) if self.ledger else None
            charts = [privacy_chart(self.run.cost, beside, self.run.delta)]
            charts.append(attack_chart(self.trade_off))
        if self.ledger is not None and (spending := self.ledger.spending.chart()) is not None:
            charts.append(spending)
        if self.plan is not None:
            charts.append(self.plan.chart(self._marked))
        return charts

    def to_bytes(self) -> bytes:
        """The document; the same files give the same bytes."""
        run = self.run
        charts = {chart.name: chart for chart in self.charts}
        title = f"{shortened(run.dataset)}: {shortened(run.algorithm)}"
        return document(
            f"Privacy report of {title}",
            element("p", f"A model of {title}, by dpfit {shortened(run.program)}", class_="soft"),
            *self._head(),
            *self._promise(),
            *_shown(charts.get("privacy-curve"), charts.get("trade-off"), heading="How much"),
            *self._spent(charts.get("spending")),
            *self._largest(),
            *self._expected(charts.get("plan")),
            *self._settings(),
        )

    def _head(self) -> list[Element]:
        run = self.run
        if not run.private:
            text = element("strong", "NOT PRIVATE")
            return [element("div", text, not_private(run), class_="alarm", role="alert")]
        delta = "pure" if run.delta == 0.0 else f"at delta {run.delta:g}"
        cards = [
            (at_most(run.epsilon), f"epsilon, {delta}"),
            (
                percent_at_most(self.trade_off.success),
                "right guesses of the best attacker, of 50 % by chance",
            ),
        ]
        if self.ledger is not None:
            cards += _spent_card(self.ledger.spending, run.record)
        items = (element("li", element("strong", value), said) for value, said in cards)
        return [element("ul", *items, class_="facts")]

    def _promise(self) -> list[Element]:
        run = self.run
        parts: list[Element] = []
        if run.private:
            parts.append(element("h2", "What is promised"))
            parts += [element("p", text) for text in promise(run, self.trade_off)]
            parts.append(element("p", group_note(run)))
        rows = [(fact.name, fact.value, fact.origin) for fact in run.facts]
        parts += [
            element("h2", "Under which assumptions" if run.private else "Public facts"),
            element("p", assumptions(run)),
            table("Public facts", ("fact", "value", "whose word"), rows),
        ]
        if run.private:
            parts += [
                element("h2", "What is outside the promise"),
                element("ul", *(element("li", text) for text in OUTSIDE)),
            ]
        return parts

    def _spent(self, chart: Chart | None) -> list[Element]:
        if self.ledger is None:
            return []
        spending, number_of_run = self.ledger.spending, self.ledger.run
        said: list[Child] = [f"In the ledger {spending.sentence()}. "]
        if number_of_run is None:
            said.append(element("strong", "No run of this ledger released this very model file."))
        else:
            said.append(f"This model was released by run {number_of_run}.")
        said.append(" Every entry was verified against the chain of hashes.")
        before = element("p", *said)
        if shares := spending.shares():
            listed = element("ul", *(element("li", f"{share}.") for share in shares))
            before = element("div", before, listed)
        return _shown(chart, heading="Budget spent over time", before=before)

    def _largest(self) -> list[Element]:
        largest = self.largest
        top = max((abs(value) for _, value in largest.rows), default=0.0)
        rows = [
            (name, f"{value:.4g}", bar(value / top) if top else None)
            for name, value in largest.rows
        ]
        shown = table(largest.title, (*largest.head, None), rows)
        return [element("h2", largest.title), element("p", largest.note), shown]

    def _expected(self, chart: Chart | None) -> list[Element]:
        if chart is None or self.plan is None:
            return []
        before = element("p", f"For {self.plan.sentence()}. {_PLAN_TEXT}")
        return _shown(chart, heading="What another epsilon would do", before=before)

    def _settings(self) -> list[Element]:
        released = [(event.label, event.mechanism, f"{event.count:,}") for event in self.run.events]
        settings = list(self.run.settings.items())
        return [
            element("h2", "Settings and releases"),
            element(
                "div",
                table("Settings", _PAIR, settings),
                table("Released", ("what", "mechanism", "times"), released),
                class_="pair",
            ),
        ]


def _spent_card(spending: Spending, record: str) -> list[tuple[str, str]]:
    """What was spent on those whom the model protects; against the cap where all runs count."""
    counted, runs = spending.on_each.on(record), spending.on_each.total.runs
    if counted is None:
        return [("no run", f"of the ledger protects a {record}")]
    of_cap, by = "", f" on a {record}, by {counted.runs} of {runs} runs"
    if counted.runs == runs:
        of_cap, by = "" if spending.cap is None else f" of {spending.cap:g}", ""
    spent = at_most(counted.cost.epsilon(spending.delta))
    return [(f"{spent}{of_cap}", f"epsilon spent in the ledger{by}, at delta {spending.delta:g}")]


def plan_page(plan: Plan, marked: float | None) -> bytes:
    """The page of a plan."""
    return document(
        PLAN_TITLE,
        element("p", plan.sentence(), class_="soft"),
        element("p", _PLAN_TEXT),
        *_shown(plan.chart(marked), heading="Error against epsilon"),
        element("p", plan.formulas()),
        footer="Computed from the public numbers above. No data was read, nothing was charged.",
    )


def document(title: str, *parts: Element, footer: str = _NOTHING_NEW) -> bytes:
    """A page with a title; its style is its own, and nothing else is let in."""
    sheet = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{sheet}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"dpfit {__version__}"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        _style(),
    )
    first, *rest = parts
    body = element(
        "body",
        element("header", element("h1", title), first),
        element("main", *rest),
        element("footer", element("p", footer)),
    )
    return serialised(element("html", head, body, lang="en"))


def _style() -> Element:
    made = Element("style")
    made.text = STYLE
    return made


def _shown(*charts: Chart | None, heading: str, before: Element | None = None) -> list[Element]:
    """Pictures under a heading, each with the table that says the same."""
    panels = [
        element(
            "section",
            element("h3", chart.title) if len(charts) > 1 else None,
            figure(chart),
            table(f"{chart.title}, in numbers", chart.head, chart.rows),
        )
        for chart in charts
        if chart is not None
    ]
    if not panels and before is None:
        return []
    row = None
    if panels:
        row = element("div", *panels, class_="pair" if len(panels) > 1 else "single")
    parts = [element("h2", heading), before, row]
    return [part for part in parts if part is not None]
