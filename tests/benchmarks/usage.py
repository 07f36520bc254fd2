"""What every benchmark answers to --help: its own docstring, which says how it is run."""

from __future__ import annotations

import sys


def answer_help(text: str | None) -> None:
    """Print ``text`` and end, if help was asked for."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(text)
        sys.exit(0)
