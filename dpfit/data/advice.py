"""What to do about a cell that is not what its column promises: one wording for all readers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import Enum, auto

from dpfit.data.schema import one_line


class Cause(Enum):
    """Why a cell was refused, as far as there is advice about it."""

    MISSING = auto()
    LEVEL = auto()
    LABEL = auto()
    ATTRIBUTE = auto()


def advice(cause: Cause | None, column: str, *, predicting: bool) -> str | None:
    """The hint for a faulty cell.

    Parameters
    ----------
    cause : Cause, optional
    column : str
        Name of the column; it stands in the hint.
    predicting : bool
        Whether a model rules the columns, so that no schema can.
    """
    if cause is None:
        return None
    return (_BY_MODEL if predicting else _BY_SCHEMA)[cause].format(
        name=one_line(column), key=_toml_key(column)
    )


_NEEDED = "every record needs its own; --missing zero is for features"
_BY_SCHEMA = {
    Cause.MISSING: "see --missing zero",
    Cause.LEVEL: "add it to the levels of column {name}, or give it other = true",
    Cause.LABEL: "correct --labels or the schema (case and blanks matter)",
    Cause.ATTRIBUTE: _NEEDED,
}
_BY_MODEL = {
    Cause.MISSING: "see --missing zero",
    Cause.LEVEL: "only a model fitted with other = true for column {name} takes other levels",
    Cause.LABEL: "compare the classes in the model file (case and blanks matter)",
    Cause.ATTRIBUTE: _NEEDED,
}


def text_advice(columns: Sequence[str], *, predicting: bool) -> str:
    """The hint where columns hold text instead of numbers.

    Parameters
    ----------
    columns : sequence of str
        Their names; one stands in the hint.
    predicting : bool
        Whether a model rules the columns.
    """
    if len(columns) > 1:
        if predicting:
            return "they held numbers when the model was fitted"
        return (
            'in a --schema file give each under [columns] its levels, or role = "hashed" (with '
            '--hash-bits 10) or "ignore"'
        )
    if predicting:
        return f"column {one_line(columns[0])} held numbers when the model was fitted"
    return (
        f'in a --schema file: [columns.{_toml_key(columns[0])}] role = "ignore", or give it '
        'levels, or role = "hashed" with --hash-bits 10'
    )


def unknown_label(*, predicting: bool) -> str:
    """The message about a label outside the label set; reads on after 'the label'."""
    return f"is not one of {'the classes of the model' if predicting else 'those declared'}"


def _toml_key(name: str) -> str:
    """A column's name as the schema file writes it."""
    name = one_line(name)
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", name)
    return name if bare else json.dumps(name, ensure_ascii=False)
