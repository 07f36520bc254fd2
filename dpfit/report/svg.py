"""A chart as an SVG element within a page.

Drawn small, so that its text stays readable on a phone; colours and widths are the style sheet's.
"""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element

from dpfit.report.chart import Chart, Series, Ticks
from dpfit.report.elements import element

WIDTH, HEIGHT = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 24, 42
_LINE: Final = 17  # height of a line of text
_WIDE, _HIGH = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM


def figure(chart: Chart) -> Element:
    """The picture with its legend below."""
    legend = element(
        "figcaption",
        *(
            element("span", _swatch(series, place), " ", series.name, class_="key")
            for place, series in enumerate(chart.series)
        ),
    )
    return element("figure", drawing(chart), legend)


def drawing(chart: Chart) -> Element:
    """The picture; title and description are read to those who do not see it."""
    title, description = f"{chart.name}-title", f"{chart.name}-description"
    return element(
        "svg",
        element("title", chart.title, id=title),
        element("desc", chart.description, id=description),
        *_x_axis(chart.x.ticks, chart),
        *_y_axis(chart.y.ticks, chart),
        element("rect", x=_LEFT, y=_TOP, width=_WIDE, height=_HIGH, class_="frame"),
        *(_line(series, place, chart) for place, series in reversed([*enumerate(chart.series)])),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{title} {description}",
    )


def bar(share: float) -> Element:
    """A bar from the middle, to the left for a negative share of -1 to 1; for a table's cell."""
    length = 50.0 * abs(share)
    return element(
        "svg",
        element("rect", x=50.0 if share > 0 else 50.0 - length, y=1, width=length, height=8),
        element("line", x1=50, y1=0, x2=50, y2=10),
        viewBox="0 0 100 10",
        class_="bar" if share > 0 else "bar negative",
        aria_hidden="true",
    )


def _swatch(series: Series, place: int) -> Element:
    line = element("line", x1=1, y1=5, x2=27, y2=5, class_=f"line line-{place}")
    dot = element("circle", cx=14, cy=5, r=4, class_=f"dot dot-{place}")
    return element(
        "svg",
        dot if len(series.points) == 1 else line,
        viewBox="0 0 28 10",
        class_="swatch",
        aria_hidden="true",
    )


def _across(chart: Chart, value: float) -> float:
    return _LEFT + _WIDE * chart.x.place(value)


def _down(chart: Chart, value: float) -> float:
    return _TOP + _HIGH * (1.0 - chart.y.place(value))


def _x_axis(ticks: Ticks, chart: Chart) -> list[Element]:
    parts = []
    for value, label in ticks:
        x = _across(chart, value)
        parts.append(element("line", x1=x, y1=_TOP, x2=x, y2=_TOP + _HIGH, class_="grid"))
        # A long label at the right edge ends there instead of being cut.
        near_edge = x + 4.0 * len(label) > WIDTH
        anchor = "end" if near_edge else "middle"
        place = float(WIDTH - 1) if near_edge else x
        parts.append(element("text", label, x=place, y=_TOP + _HIGH + _LINE, text_anchor=anchor))
    middle = _LEFT + _WIDE / 2
    return [*parts, element("text", chart.x.label, x=middle, y=HEIGHT - 5, text_anchor="middle")]


def _y_axis(ticks: Ticks, chart: Chart) -> list[Element]:
    parts = []
    for value, label in ticks:
        y = _down(chart, value)
        parts.append(element("line", x1=_LEFT, y1=y, x2=_LEFT + _WIDE, y2=y, class_="grid"))
        parts.append(element("text", label, x=_LEFT - 5, y=y + 4.0, text_anchor="end"))
    return [*parts, element("text", chart.y.label, x=2, y=_TOP - 10, text_anchor="start")]


def _line(series: Series, place: int, chart: Chart) -> Element:
    corners = [f"{_across(chart, x):.1f},{_down(chart, y):.1f}" for x, y in series.corners()]
    if len(corners) == 1:
        x, y = series.points[0]
        dot = {"cx": _across(chart, x), "cy": _down(chart, y), "r": 5}
        return element("circle", class_=f"dot dot-{place}", **dot)
    return element("polyline", points=" ".join(corners), class_=f"line line-{place}")
