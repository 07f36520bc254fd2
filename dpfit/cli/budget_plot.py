"""``dpfit budget LEDGER --plot``: what was spent over time, in the terminal's characters."""

from __future__ import annotations

import locale
import shutil
from typing import TYPE_CHECKING

from dpfit.report.released_run import USUAL_DELTA
from dpfit.report.spending import Spending
from dpfit.report.text_chart import drawn

if TYPE_CHECKING:
    from dpfit.cli.streams import Streams
    from dpfit.privacy.adjacency import Adjacency
    from dpfit.privacy.ledger_document import LedgerDocument


def show_spending(
    document: LedgerDocument, adjacency: Adjacency, delta: float | None, streams: Streams
) -> None:
    """Draw a ledger, and say its sum in a line; and of different records what was spent on each.

    At the cap's delta if none is given; the cap is drawn at its own delta only. There is no colour,
    and no more than ASCII where the terminal's encoding, which is the locale's, may lack the rest.
    """
    if delta is None:
        delta = document.cap.delta if document.cap is not None else USUAL_DELTA
    spending = Spending.of(document, adjacency, delta)
    chart = spending.chart()
    if chart is not None:
        ascii_only = locale.getencoding().lower() not in ("utf-8", "utf8")
        width = shutil.get_terminal_size().columns
        streams.result("\n".join(drawn(chart, width=width, ascii_only=ascii_only)))
    streams.result("\n".join([spending.sentence(), *spending.shares()]))
