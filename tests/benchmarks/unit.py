"""Test metric of guarantees for units that own several rows, against the clip of a unit's sum.

usage: python tests/benchmarks/unit.py FOLDER [DATA ...] [-- EPSILON ...]

FOLDER holds the public data sets; DATA are some of the names below. Every guarantee is for a whole
unit at the same epsilon, delta is 1e-5, replace-one. Compared are

* one row: all other rows of a unit are dropped, and the guarantee for rows is one for units; by
  dp-gd, and by dp-screen, the default for rows;
* group: m rows of a unit take part, at the price of m changed rows, which is a clip of m;
* C: m rows of a unit take part, and their summed part is clipped to C rows.

Test rows are of other units. The metric is the error rate in per cent for classes and R2 for a real
target; runs are unseeded, and the mean of three is printed.
"""

from __future__ import annotations

import csv
import gzip
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from usage import answer_help
from utility import metric

RUNS = 3
DELTA = "1e-5"
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Data:
    """Files of one data set.

    Attributes
    ----------
    train, test : Path
        The first with the units.
    one_row : Path
        One row of each unit, drawn at random.
    options : list of str
        How to read them, and what is public.
    unit : str
        Their column.
    caps : tuple of int
        Numbers of rows to try.
    """

    train: Path
    test: Path
    one_row: Path
    options: list[str]
    unit: str
    caps: tuple[int, ...]


def frappe(source: Path, folder: Path) -> Data:
    """App use by 957 people, who are no features here; 30 rows each in the mean."""
    rows = []
    for line in _lines(source / "frappe.zero-based.svm.gz"):
        label, first, *rest = line.split()
        user = first.split(":")[0]
        rows.append((user, f"{label} qid:{user} {' '.join(rest)}\n"))
    options = ["--labels", "-1,1", "--n-features", "5382", "--index-base", "0"]
    return _divided(folder, "frappe.svm", rows, options, (8, 32, 128))


def jester(source: Path, folder: Path) -> Data:
    """Ratings of 100 jokes by 5,000 people, 73 each in the mean; the joke is the feature."""
    with gzip.open(source / "jester5k.csv.gz", "rt") as stream:
        rows = [
            (row["user"], f"{row['rating']} qid:{row['user']} {row['item']}:1\n")
            for row in csv.DictReader(stream)
        ]
    options = ["--loss", "squared", "--target-range", "-10", "10", "--n-features", "100"]
    return _divided(folder, "jester.svm", rows, options, (8, 32, 100))


def bike(source: Path, folder: Path) -> Data:
    """Rented bikes by the hour; the unit is a day of 24 rows."""
    with gzip.open(source / "bike_hour.csv.gz", "rt") as stream:
        table = list(csv.DictReader(stream))
    days = {day: n for n, day in enumerate(dict.fromkeys(row["dteday"] for row in table))}
    rows = [
        (
            row["dteday"],
            f"{row['cnt']} qid:{days[row['dteday']]} {1 + int(row['hr'])}:1 "
            f"{25 + int(row['workingday'])}:0.5 27:{row['temp']} 28:{row['hum']}"
            f" {29 + int(row['season'])}:0.5 34:{row['yr']}\n",
        )
        for row in table
    ]
    options = ["--loss", "squared", "--target-range", "0", "1000", "--n-features", "40"]
    return _divided(folder, "bike.svm", rows, options, (8, 24))


def census(source: Path, folder: Path) -> Data:
    """Census rows that fall to units of geometric sizes, 10 in the mean, by chance."""
    return _census(source, folder, alike=False)


def census_alike(source: Path, folder: Path) -> Data:
    """The same, where all rows of a unit have the same label: the worst there is."""
    return _census(source, folder, alike=True)


def _census(source: Path, folder: Path, *, alike: bool) -> Data:
    chance = random.Random(1)
    lines = _lines(source / "a9a.svm.gz")
    chance.shuffle(lines)
    if alike:
        lines.sort(key=lambda line: line.split()[0])
    rows, unit = [], 0
    for line in lines:
        label, rest = line.split(maxsplit=1)
        rows.append((str(unit), f"{label} qid:{unit} {rest}"))
        unit += chance.random() < 0.1
    options = ["--labels", "-1,1", "--n-features", "123", "--index-base", "1"]
    return _divided(folder, "a9a.svm", rows, options, (4, 16, 64))


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt") as stream:
        return stream.readlines()


def _divided(
    folder: Path,
    name: str,
    rows: Iterable[tuple[str, str]],
    options: list[str],
    caps: tuple[int, ...],
) -> Data:
    chance = random.Random(0)
    of_unit: dict[str, list[str]] = {}
    for unit, line in rows:
        of_unit.setdefault(unit, []).append(line)
    units = sorted(of_unit)
    chance.shuffle(units)
    cut = int(_TEST_SHARE * len(units))
    paths = [folder / f"{part}-{name}" for part in ("train", "test", "one")]
    for path, chosen in zip(paths[:2], (units[cut:], units[:cut]), strict=True):
        path.write_text("".join(line for unit in chosen for line in of_unit[unit]))
    paths[2].write_text("".join(chance.choice(of_unit[unit]) for unit in units[cut:]))
    train = [len(of_unit[unit]) for unit in units[cut:]]
    print(f"\n{name}: {len(train)} units, {sum(train)} rows, {max(train)} of the largest unit")
    return Data(*paths, options, "qid", caps)


DATA: dict[str, Callable[[Path, Path], Data]] = {
    one.__name__: one for one in (frappe, jester, bike, census, census_alike)
}


def configurations(data: Data) -> Iterable[tuple[str, Path, list[str]]]:
    """What is compared: its name, its training file and its options."""
    for algorithm in ("dp-gd", "dp-screen"):
        yield f"one row, {algorithm}", data.one_row, ["--algo", algorithm]
    for cap in data.caps:
        clips = {1.0, math.sqrt(cap) / 2, math.sqrt(cap), 2 * math.sqrt(cap), cap / 2, float(cap)}
        for clip in sorted(clip for clip in clips if 1 <= clip <= cap):
            name = f"m {cap}, C {clip:.3g}" + (" (group)" if clip == cap else "")
            by_unit = ["--unit", data.unit, "--max-rows-per-unit", str(cap)]
            yield name, data.train, [*by_unit, "--unit-clip", str(clip)]


def main(arguments: list[str]) -> None:
    epsilons = ["1", "4"]
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, epsilons = arguments[:cut], arguments[cut + 1 :]
    source, names = Path(arguments[0]), arguments[1:] or list(DATA)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            data = DATA[name](source, Path(folder))
            print(f"{'':<22}" + "".join(f"{'eps ' + e:>18}" for e in epsilons))
            for what, train, options in configurations(data):
                cells = []
                for epsilon in epsilons:
                    asked = [*data.options, *options, "--eps", epsilon, "--delta", DELTA]
                    found = [
                        metric(str(train), str(data.test), asked, Path(folder)) for _ in range(RUNS)
                    ]
                    cells.append(f"{statistics.mean(found):10.3f} ({statistics.stdev(found):.3f})")
                print(f"{what:<22}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    answer_help(__doc__)
    main(sys.argv[1:])
