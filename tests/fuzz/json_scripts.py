"""JSON documents changed by a script of bytes: the fuzzer's way past the syntax and the hashes.

Three bytes are one change: two choose a value anywhere in the document, the third what takes its
place: an odd value, a copy of another value of the document, or nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

ODD: Final[tuple[Any, ...]] = (
    None, True, False, -1, 0, 1, 2, 0.5, -0.5, 1 << 31, (1 << 53) + 1, 1 << 63, 10**400, -(10**400),
    1e308, -1e308, 5e-324, 1e-300, "", "a", "\ud800", "\x1b[2J", "x" * 10000, "1", "item", [], {},
    [[]], [0], [0, 1], [1, 0], [0.0, 1e308], ["a", "b"], [1.0, 2.0, 3.0], {"a": 1}, [None] * 3,
    "normalize", "clip", "logistic", "squared", "absolute", "poisson", "multinomial", "reserved",
    "released", "aborted", "gaussian", "laplace", "replace-one", "add-remove", 64, 30, 1e100, 1e99,
)  # fmt: skip
_COPY, _REMOVE = 128, 255


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a document."""
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in keys:
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


def changed(document: Any, script: bytes) -> Any:
    """The document after all changes of the script."""
    root = [copy.deepcopy(document)]
    for at in range(0, min(len(script), 30) - 2, 3):
        found = list(places(root))
        number, choice = int.from_bytes(script[at : at + 2]), script[at + 2]
        container, key = found[number % len(found)]
        if choice == _REMOVE and container is not root:
            del container[key]
        elif choice >= _COPY:
            other, place = found[(number * 31 + choice) % len(found)]
            container[key] = copy.deepcopy(other[place])
        else:
            container[key] = copy.deepcopy(ODD[choice % len(ODD)])
    return root[0]
