"""Write the sample files beside this script, the same bytes on every machine.

Run as ``python sample_data/make_samples.py [FOLDER]``. Everything is made up; nothing is drawn from
real people. Numbers come from a small generator of our own, since numpy's distributions may change
between versions.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS, TEST_ROWS, COLUMNS, PER_ROW = 2000, 500, 1000, 14
FILMS = 60
JOBS = ("clerk", "engineer", "farmer", "nurse", "teacher")
REGIONS = ("east", "north", "south", "west")
JOB_EFFECT = (-0.4, 0.9, -0.8, 0.1, 0.3)


class Stream:
    """splitmix64: uniform numbers that any language can reproduce."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def uniform(self) -> float:
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def bell(self) -> float:
        """Roughly normal: sums of uniforms need no libm, whose last digits differ."""
        return sum(self.uniform() for _ in range(12)) - 6.0

    def below(self, n: int) -> int:
        return int(self.uniform() * n)


def text_rows(stream: Stream, n: int) -> list[str]:
    """LIBSVM lines: unit rows of skewed words; twenty frequent words decide the label."""
    lines = []
    while len(lines) < n:
        weights: dict[int, float] = {}
        topic = 1 if stream.uniform() < 0.5 else -1
        while len(weights) < PER_ROW:
            if stream.uniform() < 0.4:
                # Odd words below 20 belong to one class, even ones to the other, mostly.
                sign = topic if stream.uniform() < 0.85 else -topic
                word = 2 * stream.below(10) + (1 if sign > 0 else 2)
            else:
                u = stream.uniform()
                word = 21 + int((COLUMNS - 20) * u * u)
            weights[word] = 0.3 + stream.uniform()
        score = sum(w if i % 2 else -w for i, w in weights.items() if i <= 20)
        if abs(score) < 0.2:
            continue
        label = "+1" if (score > 0) != (stream.uniform() < 0.04) else "-1"
        lines.append(f"{label} {unit_entries(weights)}")
    return lines


def unit_entries(weights: dict[int, float]) -> str:
    """Entries scaled to norm 1 and cut, not rounded, to four decimals: the norm stays below 1."""
    norm = math.sqrt(math.fsum(w * w for w in weights.values()))
    return " ".join(f"{i}:{int(weights[i] / norm * 10**4) / 10**4:.4f}" for i in sorted(weights))


def income_rows(stream: Stream, n: int) -> list[str]:
    """CSV lines: numeric columns scaled to [0, 1] by public ranges, two categorical ones."""
    lines = ["age,education,hours,job,region,income"]
    for _ in range(n):
        age, hours = 18 + stream.below(60), 10 + stream.below(51)
        education, job = stream.below(17), stream.below(len(JOBS))
        region = REGIONS[stream.below(len(REGIONS))]
        score = 0.35 * (education - 8) + 0.05 * (hours - 40) + 0.03 * (age - 45) + JOB_EFFECT[job]
        income = "over50k" if score + 0.6 * stream.bell() > 0.2 else "upto50k"
        cells = f"{(age - 18) / 60:.3f},{education / 16:.4f},{hours / 60:.3f}"
        lines.append(f"{cells},{JOBS[job]},{region},{income}")
    return lines


STARS_SCHEMA = """\
# What is public about ratings.csv, for a model of the stars that a film gets.
label = "stars"
target_range = [1, 5]

[columns]
user = { role = "unit" }        # all ratings of a user are protected together
film = { role = "hashed" }"""

INCOME_SCHEMA = f"""\
# What is publicly known about income.csv: the data are not needed to say it.
rows = 1500
label = "income"
labels = ["upto50k", "over50k"]   # the second is the positive one
row_norm = 2.3                    # three numbers in [0, 1] and two ones: at most sqrt(5)

[columns.job]
role = "categorical"
levels = [{", ".join(f'"{job}"' for job in JOBS)}]

[columns.region]
role = "categorical"
levels = [{", ".join(f'"{region}"' for region in REGIONS)}]
"""


def sensor_table(stream: Stream, n: int) -> pa.Table:
    """Regression in [0, 1]: twenty sensors, five of which matter."""
    sensors = [[round(stream.uniform(), 4) for _ in range(n)] for _ in range(20)]
    truth = {2: 0.35, 7: -0.25, 11: 0.2, 19: 0.3, 16: -0.15}
    yields = []
    for i in range(n):
        signal = 0.3 + sum(effect * sensors[j][i] for j, effect in truth.items())
        yields.append(round(min(1.0, max(0.0, signal + 0.03 * stream.bell())), 4))
    columns = {f"s{j + 1:02d}": column for j, column in enumerate(sensors)}
    return pa.table({**columns, "yield": yields})


def rating_rows(stream: Stream, users: int) -> tuple[list[str], list[str]]:
    """CSV lines to fit to and lines held out: halves from 1 to 5, two hidden tastes, some noise."""
    tastes = [(stream.bell(), stream.bell()) for _ in range(FILMS)]
    liked = [0.35 * stream.bell() for _ in range(FILMS)]
    train, test = ["user,film,stars"], ["user,film,stars"]
    for user in range(users):
        first, second, mood = stream.bell(), stream.bell(), 0.4 * stream.bell()
        seen: list[int] = []
        while len(seen) < 16 + user % 13:
            u = stream.uniform()
            film = int(FILMS * u * (0.5 + 0.5 * u))  # early films are seen more often
            if film not in seen:
                seen.append(film)
        for place, film in enumerate(seen):
            match = first * tastes[film][0] + second * tastes[film][1]
            score = 3.2 + liked[film] + mood + 0.45 * match + 0.35 * stream.bell()
            stars = min(10, max(2, int(2 * score + 0.5))) / 2
            (test if place < 4 else train).append(f"u{user + 1:03d},film{film + 1:02d},{stars}")
    return train, test


def write_all(folder: Path) -> None:
    """Write every sample file into ``folder``."""
    text = Stream(1)
    for name, n in (("text.svm", ROWS), ("text.test.svm", TEST_ROWS)):
        write_lines(folder / name, text_rows(text, n))
    write_lines(folder / "income.csv", income_rows(Stream(2), 1500))
    write_lines(folder / "income.toml", INCOME_SCHEMA.splitlines())
    train, test = rating_rows(Stream(4), 400)
    write_lines(folder / "ratings.csv", train)
    write_lines(folder / "stars.toml", STARS_SCHEMA.splitlines())
    write_lines(folder / "ratings.test.csv", test)
    write_lines(folder / "films.txt", [f"film{film + 1:02d}" for film in range(FILMS)])
    pq.write_table(sensor_table(Stream(3), 1000), folder / "sensors.parquet", compression="zstd")


def write_lines(path: Path, lines: list[str]) -> None:
    """Write lines with plain newlines on every system."""
    path.write_bytes(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
