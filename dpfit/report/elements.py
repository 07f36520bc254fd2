"""A page as a tree of elements, so that no text in it can become markup.

Names, labels and levels come from files of anybody. Here they are only ever the text or attribute
of an element, which the serialiser escapes; no markup is put together from texts.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final, TypeAlias
from xml.etree.ElementTree import Element

Child: TypeAlias = "Element | str"

_POWER: Final = re.compile(r"(?<=\de)-(?=\d)")  # no line ends within 1e-06
_LONGEST: Final = 120  # characters of a name; a hostile one may have a million


def element(tag: str, *children: Child | None, **attributes: object) -> Element:
    """An element; ``class_`` is its class, other underscores are hyphens, None is left out.

    Parameters
    ----------
    tag : str
    *children : Element, str or None
        In their order; texts become text whatever they hold.
    **attributes : object
        Numbers as three decimals.
    """
    made = Element(tag)
    for name, value in attributes.items():
        key = "viewBox" if name == "viewBox" else name.rstrip("_").replace("_", "-")
        made.set(key, clean(f"{value:.3f}" if isinstance(value, float) else str(value)))
    for child in children:
        if isinstance(child, str):
            _append_text(made, _POWER.sub("\N{NON-BREAKING HYPHEN}", clean(child)))
        elif child is not None:
            made.append(child)
    return made


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def serialised(root: Element) -> bytes:
    """The document of an ``html`` element."""
    text: str = ET.tostring(root, encoding="unicode", method="html")
    return f"<!DOCTYPE html>\n{text}\n".encode()


def clean(text: str) -> str:
    """The text without control characters, and without those that turn its direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def shortened(text: str) -> str:
    """A name that is fit to be shown."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def table(
    caption: str, head: Sequence[str | None], rows: Sequence[tuple[Child | None, ...]]
) -> Element:
    """A table that scrolls by itself where the screen is narrower.

    Parameters
    ----------
    caption : str
    head : sequence of str or None
        Names of the columns; None of one that speaks for itself.
    rows : sequence of tuples of Element, str or None
        Cells; the first names the row.
    """
    names = (element("th", name, scope="col") if name else element("td") for name in head)
    body = (
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in rows
    )
    shown = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *names)),
        element("tbody", *body),
    )
    return element("div", shown, class_="scroll", role="region", tabindex=0, aria_label=caption)
