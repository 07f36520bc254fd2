"""Files larger than the memory that a fit may take: the same model, within the bound.

usage: python tests/benchmarks/out_of_core.py [--gigabytes G] [--memory SIZE] [--algo NAME]
                                              [--folder DIR] [FORMAT ...]

Each format's file of about G gigabytes is fitted with the rows held in memory and with the rows on
disk within a bound. The peak is the kernel's (VmHWM) of each process. Files are deleted at once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from sparse_rows import WRITERS

sys.path.append(str(Path(__file__).parents[1]))

from measured import Measured, measured

SHAPES = {".svm": (3_200_000, 115), ".parquet": (3_200_000, 115), ".csv": (200, 200)}
BYTES_OF_ENTRY = {".svm": 11.2, ".parquet": 12.1, ".csv": 5.9}


def fit(path: Path, algo: str, *args: str) -> tuple[Measured, bytes]:
    command = ["fit", path.name, "--algo", algo, "--eps", "1", "--delta", "1e-7", "--seed", "1"]
    command += ["--labels=-1,1", "--force", "-q", "-o", "m.json", *args]
    command += ["--sparsity", "100"] if algo != "dp-gd" else ["--iterations", "5"]
    if path.suffix == ".svm":
        command += ["--index-base", "1", "--n-features", str(SHAPES[".svm"][0])]
    else:
        command += ["--label", "label"]
    done = measured(*command, folder=path.parent)
    if done.status != 0:
        raise SystemExit("\n".join(done.told))
    return done, (path.parent / "m.json").read_bytes()


def compare(path: Path, memory: str, algo: str) -> None:
    """Print a line for each way to hold the rows."""
    size = path.stat().st_size
    held, model = fit(path, algo)
    cached, same = fit(path, algo, "--cache", ".", "--memory", memory)
    for name, run, bound in (("held", held, "-"), ("cached", cached, memory)):
        print(f"{path.suffix[1:]:<8} {size / 2**20:>9,.0f} {name:<7} {bound:>8}", end=" ")
        print(f"{run.peak:>9,} {run.seconds:>8.1f}", "" if name == "held" else model == same)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="*", default=["svm", "csv", "parquet"])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--memory", default="700MiB")
    parser.add_argument("--algo", default="dp-ight")
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    print(
        f"{'format':<8} {'file MiB':>9} {'rows':<7} {'--memory':>8} {'peak MiB':>9} {'s':>8}",
        end=" ",
    )
    print("same bits")
    for name in arguments.formats:
        suffix = f".{name}"
        columns, per_row = SHAPES[suffix]
        rows = int(arguments.gigabytes * 1e9 / BYTES_OF_ENTRY[suffix] / per_row)
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder) / f"rows{suffix}"
            WRITERS[suffix](path, rows, columns, per_row)
            compare(path, arguments.memory, arguments.algo)


if __name__ == "__main__":
    main()
