"""Which rows of a unit take part, where it has more than the public number.

Each row draws a ticket and the lowest win. The ticket is a public hash of the unit's identifier,
of the row's content and, among rows with the same content, of a count. So it depends on the unit's
own rows alone, whatever the other units are, and the rows that win are the same in whatever order
the records were read. Rows that are alike have different tickets: a value that is frequent among a
unit's rows is as frequent, on average, among those chosen. The hash keeps nothing secret: nothing
of the guarantee rests on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.design.mixing import Words, bits_of, mixed

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_KEY: Final = b"dpfit rows of a unit"
_WORD: Final = 8


def chosen_rows(owners: Integers, contents: Words, most: int) -> Integers:
    """The rows that take part, those of a unit together.

    Parameters
    ----------
    owners : int64 array, shape (n,)
        Number of each row's unit.
    contents : uint64 array, shape (n,)
        Of each row, together with its unit's identifier.
    most : int
        Rows of a unit.

    Returns
    -------
    int64 array
        Positions, by unit and then by ticket.
    """
    alike = np.lexsort((contents, owners))
    number = _place_in_run(owners[alike], contents[alike])
    tickets = np.empty_like(contents)
    tickets[alike] = mixed(mixed(contents[alike]) + number.astype(np.uint64))
    order = np.lexsort((tickets, owners))
    place = _place_in_run(owners[order])
    return order[place < most]


def _place_in_run(*keys: NDArray[np.generic]) -> Integers:
    """How many neighbours before each place have equal keys, shape (n,)."""
    places = np.arange(len(keys[0]))
    begins = np.ones(len(places), np.bool_)
    begins[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return places - np.maximum.accumulate(np.where(begins, places, 0))


def contents_of(
    digests: Words,
    attributes: Sequence[Floats | None],
    owners: Integers,
    identifiers: Sequence[str],
) -> Words:
    """A number of each record's row, target, offset and weight, and of its unit's identifier.

    Parameters
    ----------
    digests : uint64 array, shape (n,)
        Of the rows.
    attributes : sequence of float64 arrays of shape (n,), or None
        What else a record has.
    owners : int64 array, shape (n,)
        Places of the units in the next argument.
    identifiers : sequence of str
        Of the units.
    """
    contents = mixed(digests ^ words_of(identifiers)[owners])
    for attribute in attributes:
        if attribute is not None:
            contents = mixed(contents ^ bits_of(attribute))
    return contents


def words_of(texts: Sequence[str]) -> Words:
    """A public number of each identifier, shape (m,)."""
    hashed = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_WORD, key=_KEY).digest()
        for text in texts
    )
    return np.frombuffer(hashed, "<u8").astype(np.uint64)
