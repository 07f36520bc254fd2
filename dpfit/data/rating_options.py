"""What the caller declares about an input of ratings."""

from __future__ import annotations

from dataclasses import dataclass

from dpfit.data.options import check_choice, check_within, numbered_name
from dpfit.data.schema import one_line
from dpfit.data.transcode import is_utf8
from dpfit.errors import UsageError

ROLES = ("user", "item", "value")
DUPLICATES = ("error", "last")


@dataclass(frozen=True)
class RatingOptions:
    """Declared facts and choices for reading ratings; checked when made.

    Attributes
    ----------
    format : str
        ``auto`` (by extension), ``csv``, ``tsv``, ``parquet``, ``libsvm`` or ``mtx``.
    user, item, value : str, optional
        Columns of a table by name, or by number from 1 when there is no header.
    values : bool
        Whether values are read; a table then needs the value column.
    delimiter : str, optional
        Field separator of CSV; ``tab`` is understood.
    header : bool
        Whether the first record names the columns; else they are ``c1``, ``c2``, ...
    encoding : str
        Of CSV and TSV.
    duplicates : str
        A user's second rating of an item: ``error``, or ``last``, which keeps the later one.
    ignore_new_items : bool
        Leave out ratings of items that a fixed table of items does not hold.
    predicting : bool
        Whether the items are a model's; for the wording of errors.
    threads : int
        The ratings do not depend on it.
    """

    format: str = "auto"
    user: str | None = None
    item: str | None = None
    value: str | None = None
    values: bool = True
    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"
    duplicates: str = "error"
    ignore_new_items: bool = False
    predicting: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        check_choice("--duplicates", self.duplicates, DUPLICATES)
        check_within("--threads", self.threads, 1, 4096)
        is_utf8(self.encoding)
        names: dict[str, str] = {}
        for role, name in self._columns().items():
            if name in names:
                message = f"column '{one_line(name)}' cannot be both the {names[name]} and the"
                raise UsageError(f"{message} {role}")
            names[name] = role

    def _columns(self) -> dict[str, str]:
        named = {role: getattr(self, role) for role in ROLES}
        return {
            role: name if self.header else numbered_name(name)
            for role, name in named.items()
            if name is not None
        }

    @property
    def table_columns(self) -> dict[str, str]:
        """Names of the columns to read from a table, by role.

        Raises
        ------
        UsageError
            One that is needed is not named.
        """
        columns = self._columns()
        needed = ROLES if self.values else ROLES[:2]
        for role in needed:
            if role not in columns:
                raise UsageError(f"the {role} column is not named", hint=f"name it with --{role}")
        return {role: columns[role] for role in needed}

    def refuse_columns(self, kind: str) -> None:
        """Nothing that names columns may be declared for a format without names."""
        for role in ROLES:
            if getattr(self, role) is not None:
                raise UsageError(
                    f"--{role} names a column of a table; {kind} has no named columns",
                    hint="leave it out, or see --format",
                )
