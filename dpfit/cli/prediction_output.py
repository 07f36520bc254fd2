"""Where predictions go: lines or JSON on stdout, or a file that appears when it is complete."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfit.cli.streams import printable, require_standard_output
from dpfit.cli.targets import check_target
from dpfit.files.atomic import written_atomically

if TYPE_CHECKING:
    from dpfit.cli.predict import PredictOptions

Columns: TypeAlias = dict[str, NDArray[np.float64] | NDArray[np.object_]]
Writer: TypeAlias = Callable[[Columns], None]


def check_output(options: PredictOptions, reads: Iterable[str]) -> None:
    """Refuse an output that is closed, among what is read, or must not be replaced."""
    if options.output is None or options.output == "-":
        require_standard_output()
    else:
        check_target(options.output, force=options.force, reads=reads, replaces_models_only=False)


@contextlib.contextmanager
def prediction_writer(options: PredictOptions, *, separator: str = " ") -> Iterator[Writer]:
    """A function that writes the next predictions, by name of their columns.

    Parameters
    ----------
    options : PredictOptions
        Where to, and how.
    separator : str
        Between the columns of a line.
    """
    path = options.output
    if path is None or path == "-":
        yield _line_writer(sys.stdout.write, separator, as_json=options.json)
        sys.stdout.flush()
        return
    with written_atomically(path, overwrite=options.force) as stream:
        kind = os.path.splitext(path)[1].lower()
        if kind == ".parquet":
            with _parquet_writer(stream) as write:
                yield write
        elif kind == ".csv":
            yield _csv_writer(stream)
        else:
            yield _line_writer(
                lambda text: stream.write(text.encode()), separator, as_json=options.json
            )


def _line_writer(write: Callable[[str], object], separator: str, *, as_json: bool) -> Writer:
    def write_lines(columns: Columns) -> None:
        if as_json:
            names, lists = list(columns), [column.tolist() for column in columns.values()]
            rows = zip(*lists, strict=True)
            text = [json.dumps(dict(zip(names, map(_plain, row), strict=True))) for row in rows]
        else:
            text = [separator.join(row) for row in _texts(columns)]
        if text:
            write("\n".join(text) + "\n")

    return write_lines


def _csv_writer(stream: object) -> Writer:
    import csv
    import io

    started = False

    def write(columns: Columns) -> None:
        nonlocal started
        buffer = io.StringIO()
        rows = csv.writer(buffer, lineterminator="\n")
        if not started:
            rows.writerow(columns)
            started = True
        rows.writerows(_texts(columns))
        stream.write(buffer.getvalue().encode())  # type: ignore[attr-defined]

    return write


@contextlib.contextmanager
def _parquet_writer(stream: object) -> Iterator[Writer]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None

    def write(columns: Columns) -> None:
        nonlocal writer
        table = pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})
        if writer is None:
            writer = pq.ParquetWriter(stream, table.schema)
        writer.write_table(table)

    try:
        yield write
    except BaseException:
        if writer is not None:  # unclosed, it would complain of the closed stream when collected
            with contextlib.suppress(Exception):
                writer.close()
        raise
    if writer is not None:
        writer.close()


def show_evaluation(values: Mapping[str, float], source: str, *, as_json: bool) -> None:
    """Asked for, so shown however quiet the run is; on stderr, beside the predictions.

    What left the range of numbers on targets such as 1e200 is left out; ``source`` says from what
    the values are.
    """
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    if as_json:
        named = {name.replace(" ", "_"): value for name, value in finite.items()}
        evaluation = {"schema_version": 1, "private": False, **named}
        sys.stderr.write(json.dumps({"evaluation": evaluation}) + "\n")
        return
    text = ", ".join(f"{name} {value:.6g}" for name, value in finite.items())
    sys.stderr.write(f"dpfit: evaluation (from {source}, not private): {text}\n")


def _texts(columns: Columns) -> Iterator[tuple[str, ...]]:
    lists = [[text_of(value) for value in column.tolist()] for column in columns.values()]
    return zip(*lists, strict=True)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(value: object) -> str:
    """A number or label in one line, whole numbers without a fraction."""
    plain = _plain(value)
    return repr(plain) if isinstance(plain, float) else printable(str(plain))
