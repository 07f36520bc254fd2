"""Budget spent over time in the characters of a terminal."""

from __future__ import annotations

import math
from typing import Final

from dpfit.report.chart import Axis, Chart

HEIGHT: Final = 12
_LEAST_WIDTH, _LARGEST_WIDTH = 24, 120
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"


def drawn(chart: Chart, *, width: int, ascii_only: bool) -> list[str]:
    """Lines of a picture: columns for the first series, a dashed line for the second.

    Parameters
    ----------
    chart : Chart
        Its first series is one of steps.
    width : int
        Characters of a line.
    ascii_only : bool
        Whether the terminal may know nothing else.
    """
    labels = {_row_of(chart.y.place(at)): text for at, text in chart.y.ticks}
    margin = max(len(text) for text in labels.values()) + 2
    across = min(max(width, _LEAST_WIDTH), _LARGEST_WIDTH) - margin
    heights = [chart.y.place(value) * HEIGHT for value in _sampled(chart, across)]
    rule = None
    if len(chart.series) > 1:
        rule = _row_of(chart.y.place(chart.series[1].points[0][1]))
    edge, dash = ("|", "-") if ascii_only else ("│", "╌")
    lines = [chart.y.label]
    for row in range(HEIGHT):
        cells = (_cell(height - (HEIGHT - 1 - row), ascii_only=ascii_only) for height in heights)
        drawn_row = "".join(dash if cell == " " and row == rule else cell for cell in cells)
        said = labels.get(row, "")
        end = f" {chart.series[1].name}" if row == rule else ""
        line = f"{said:>{margin - 2}} {edge}{drawn_row}"
        lines.append(line[: len(line) - len(end)] + end if end else line)
    corner, floor = ("+", "-") if ascii_only else ("└", "─")
    lines.append(" " * (margin - 1) + corner + floor * across)
    lines.append(" " * margin + _below(chart.x, across))
    return [line.rstrip() for line in lines]


def _row_of(share: float) -> int:
    """The row from above where a column of that height ends; no lower column is above it."""
    return HEIGHT - max(1, math.ceil(share * HEIGHT - 1e-9))


def _sampled(chart: Chart, across: int) -> list[float]:
    """What was spent at the middle of each column."""
    corners = chart.series[0].points
    values, place = [], 0
    for column in range(across):
        middle = (column + 0.5) / across
        while place + 1 < len(corners) and chart.x.place(corners[place + 1][0]) <= middle:
            place += 1
        values.append(corners[place][1])
    return values


def _cell(filled: float, *, ascii_only: bool) -> str:
    """One character of a column, of which so much is filled."""
    if ascii_only:
        return "#" if filled >= 0.5 else " "
    return _EIGHTHS[min(max(math.ceil(8 * filled - 1e-9), 0), 8)]


def _below(axis: Axis, across: int) -> str:
    """The first and the last tick, and what they count."""
    first, last = axis.ticks[0][1], axis.ticks[-1][1]
    gap = across - len(first) - len(last)
    if gap < len(axis.label) + 2:
        return f"{first} {last}" if gap > 0 else last
    return first + axis.label.center(gap) + last
