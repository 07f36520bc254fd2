"""Charts as a PNG file, drawn by matplotlib where that is installed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

from dpfit.errors import UsageError
from dpfit.report.chart import Axis, Chart

_STYLES: Final = (("#0b57a4", "-"), ("#a34700", "--"), ("#5b2a86", ":"))  # as on the page
_DPI: Final = 150
_PANEL: Final = (5.2, 3.6)  # inches


def require_matplotlib() -> None:
    """Refuse early, before anything is read.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            "--png needs matplotlib, which is not installed", hint="pip install 'dpfit[plot]'"
        ) from None


def png(charts: Sequence[Chart], title: str) -> bytes:
    """One picture of all charts, two beside each other.

    Parameters
    ----------
    charts : sequence of Chart
        At least one.
    title : str
        Above them; in large letters, since a picture is passed on without its page.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(len(charts), 2)
    down = -(-len(charts) // 2)
    figure = Figure(figsize=(_PANEL[0] * across, _PANEL[1] * down + 0.5), layout="constrained")
    FigureCanvasAgg(figure)  # no display is asked for
    figure.suptitle(title, fontsize="x-large", parse_math=False)
    panels = figure.subplots(down, across, squeeze=False).flat
    for panel, chart in zip(panels, charts, strict=False):
        _draw(panel, chart)
    for panel in list(panels)[len(charts) :]:
        panel.set_axis_off()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()


def _draw(panel: Any, chart: Chart) -> None:
    for (colour, dashes), series in zip(_STYLES, chart.series, strict=False):
        xs, ys = zip(*series.corners(), strict=True)
        marker = "o" if len(xs) == 1 else None
        panel.plot(xs, ys, color=colour, linestyle=dashes, marker=marker, label=series.name)
    panel.set_title(chart.title, loc="left")
    _set_axis(panel, "x", chart.x)
    _set_axis(panel, "y", chart.y)
    panel.grid(color="#d4d9df")
    panel.legend(fontsize="small")


def _set_axis(panel: Any, name: str, axis: Axis) -> None:
    getattr(panel, f"set_{name}scale")("log" if axis.log else "linear")
    getattr(panel, f"set_{name}lim")(axis.low, axis.high)
    places, labels = [place for place, _ in axis.ticks], [label for _, label in axis.ticks]
    getattr(panel, f"set_{name}ticks")(places, labels)
    getattr(panel, f"set_{name}label")(axis.label)
    getattr(panel, f"{name}axis").minorticks_off()
