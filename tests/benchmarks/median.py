"""Mean absolute error of median regressions against epsilon, beside squared loss and an oracle.

usage: python tests/benchmarks/median.py [RUNS] [CALIFORNIA.csv] [BIKE.csv]

Data: heavy tails (2,000 and 20,000 training rows of ten normal columns, five of them with
coefficient 1; errors of Student's t with two degrees of freedom, and one target in twenty replaced
by 50 or -50; declared range -20 to 20) and, where their files are given, california_housing and
bike_hour with declared ranges and every fifth row held out. `delta` rows have delta 1e-6, the
others none. A cell holds the mean of the unseeded runs and their standard deviation, in the
target's units; then the median time of a whole `dpfit fit`. `quantile regression` is
scikit-learn's, without privacy, on the columns as the schema maps them; `median of y` predicts one
number. Rows are brought to norm 1 but in the line that says K = 2, where longer ones are cut to 2.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import QuantileRegressor
from usage import answer_help

from dpfit.data.options import ReadOptions
from dpfit.data.reader import Reader
from dpfit.data.schema import ColumnRole, Schema

Floats: TypeAlias = NDArray[np.float64]

DPFIT = str(Path(sys.executable).parent / "dpfit")
EPSILONS = ("0.5", "1", "2", "4", "8")
DELTA = ["--delta", "1e-6"]
LONGER = ["--clip-rows", "--row-norm", "2"]
METHODS: tuple[tuple[str, list[str]], ...] = (
    ("median-objective", ["--algo", "median-objective"]),
    ("median-objective, delta", ["--algo", "median-objective", *DELTA]),
    ("objective, delta, K = 2", ["--algo", "median-objective", *DELTA, *LONGER]),
    ("median-irls", ["--algo", "median-irls"]),
    ("median-irls, delta", ["--algo", "median-irls", *DELTA]),
    ("median-cd", ["--algo", "median-cd"]),
    ("median-cd, delta", ["--algo", "median-cd", *DELTA]),
    ("dp-gd squared, delta", ["--algo", "dp-gd", "--loss", "squared", *DELTA]),
    ("dp-screen squared, delta", ["--algo", "dp-screen", "--loss", "squared", *DELTA]),
)

TAILS = "\n".join(
    ['label = "y"', "target_range = [-20, 20]", "[columns]"]
    + [f"x{j} = {{ range = [-4, 4] }}" for j in range(10)]
)
CALIFORNIA = """\
label = "median_house_value"
target_range = [0, 500001]
[columns]
longitude = { range = [-125, -114] }
latitude = { range = [32, 42] }
housing_median_age = { range = [0, 52] }
total_rooms = { range = [0, 10000] }
total_bedrooms = { range = [0, 2000] }
population = { range = [0, 5000] }
households = { range = [0, 2000] }
median_income = { range = [0, 15] }
ocean_proximity = { levels = ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"] }
"""
BIKE = "\n".join(
    ['label = "cnt"', "target_range = [0, 1000]", "[columns]"]
    + [f'{name} = {{ role = "ignore" }}' for name in ("instant", "dteday", "casual", "registered")]
    + [
        f"{name} = {{ levels = {json.dumps([str(level) for level in levels])} }}"
        for name, levels in (
            ("season", range(1, 5)),
            ("mnth", range(1, 13)),
            ("hr", range(24)),
            ("weekday", range(7)),
            ("weathersit", range(1, 5)),
        )
    ]
)


@dataclass(frozen=True)
class Data:
    """A table in two files."""

    name: str
    train: Path
    test: Path
    schema: Path


def heavy_tails(n_rows: int, folder: Path) -> Data:
    """Training and as many test rows, from one fixed seed."""
    random = np.random.default_rng(5)
    x = random.normal(size=(2 * n_rows, 10))
    y = x[:, :5].sum(axis=1) + 1.0 + random.standard_t(2, 2 * n_rows)
    wild = random.random(2 * n_rows) < 0.05
    y[wild] = random.choice([-50.0, 50.0], wild.sum())
    header = [*(f"x{j}" for j in range(10)), "y"]
    rows = np.column_stack([x, y]).round(6).tolist()
    return write(f"tails-{n_rows}", header, rows[:n_rows], rows[n_rows:], TAILS, folder)


def real(name: str, path: str, schema: str, folder: Path) -> Data:
    """A real table; rows are shuffled by a fixed seed and every fifth is held out."""
    with open(path, newline="") as stream:
        header, *rows = csv.reader(stream)
    order = np.random.default_rng(1).permutation(len(rows))
    train = [rows[i] for i in order if i % 5]
    test = [rows[i] for i in order if not i % 5]
    return write(name, header, train, test, schema, folder)


def write(
    name: str,
    header: list[str],
    train: list[list[str]] | list[list[float]],
    test: list[list[str]] | list[list[float]],
    schema: str,
    folder: Path,
) -> Data:
    data = Data(name, *(folder / f"{name}{end}" for end in (".csv", ".test.csv", ".toml")))
    data.schema.write_text(schema)
    for path, rows in ((data.train, train), (data.test, test)):
        with open(path, "w", newline="") as stream:
            csv.writer(stream).writerows([header, *rows])
    return data


def fitted(data: Data, options: list[str], folder: Path) -> tuple[float, float]:
    """Mean absolute error on the test file, and the seconds of the fit."""
    model = str(folder / "model.json")
    reading = ["--missing", "zero"]
    fit = [DPFIT, "fit", "-q", "--force", "-o", model, "--schema", str(data.schema)]
    start = time.perf_counter()
    done = subprocess.run([*fit, *reading, *options, str(data.train)], cwd=folder, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        return float("nan"), seconds
    predict = [DPFIT, "predict", "--json", "--evaluate", *reading, model, str(data.test)]
    report = subprocess.run(predict, capture_output=True, text=True, check=True).stderr
    return float(json.loads(report)["evaluation"]["MAE"]), seconds


def mapped(data: Data, path: Path) -> tuple[Floats, Floats]:
    """Columns as the schema maps them, dense, and the target."""
    schema = Schema.from_file(str(data.schema))
    assert schema.label is not None
    columns = {**schema.columns, schema.label: ColumnRole("label")}
    reader = Reader([str(path)], ReadOptions(columns=columns, missing="zero"))
    blocks = list(reader)
    assert reader.feature_map is not None
    x = np.zeros((sum(block.n_rows for block in blocks), reader.feature_map.n_features))
    first = 0
    for block in blocks:
        rows = first + np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
        x[rows, block.indices] = block.values
        first += block.n_rows
    y = np.concatenate([np.asarray(block.target, np.float64) for block in blocks])
    return x, y


def oracle(data: Data) -> Iterator[str]:
    """Lines about models without privacy."""
    (x, y), (fresh, truth) = mapped(data, data.train), mapped(data, data.test)
    one_number = float(np.abs(truth - np.median(y)).mean())
    yield f"{'median of y':<26}{one_number:9.4g}"
    start = time.perf_counter()
    model = QuantileRegressor(quantile=0.5, alpha=0.0).fit(x, y)
    seconds = time.perf_counter() - start
    error = float(np.abs(truth - model.predict(fresh)).mean())
    yield f"{'quantile regression':<26}{error:9.4g}{seconds:9.2f} s"


def main(arguments: list[str]) -> None:
    runs, *files = arguments or ["3"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = [heavy_tails(n, folder) for n in (2_000, 20_000)]
        tables = zip(("california", "bike"), files, (CALIFORNIA, BIKE), strict=False)
        sets += [real(table, path, schema, folder) for table, path, schema in tables]
        for data in sets:
            print(f"\n{data.name:<26}" + "".join(f"{'eps ' + e:>19}" for e in EPSILONS))
            for line in oracle(data):
                print(line, flush=True)
            for label, options in METHODS:
                cells, times = [], []
                for epsilon in EPSILONS:
                    found = [
                        fitted(data, [*options, "--eps", epsilon], folder) for _ in range(int(runs))
                    ]
                    errors = [error for error, _ in found]
                    times += [seconds for _, seconds in found]
                    spread = statistics.stdev(errors) if len(errors) > 1 else 0.0
                    cells.append(f"{statistics.mean(errors):10.4g} ({spread:.2g})")
                line = "".join(f"{cell:>19}" for cell in cells)
                print(f"{label:<26}{line}{statistics.median(times):9.2f} s", flush=True)


if __name__ == "__main__":
    answer_help(__doc__)
    main(sys.argv[1:])
