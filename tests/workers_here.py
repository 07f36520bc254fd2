"""A cluster's workers in this process: laws over them need no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpfit.privacy.workers import Workers


class WorkersHere(Workers):
    """A task runs when it is asked for; its future is its result."""

    def __init__(self, number: int) -> None:
        self.addresses = [f"here:{place}" for place in range(number)]

    def _on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def results(self, futures: Sequence[Any]) -> list[Any]:
        return list(futures)
