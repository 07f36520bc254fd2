"""Test error of private sparse text classification by default settings.

usage: python tests/benchmarks/text_error.py TRAIN.svm TEST.svm [SPARSITY] [RUNS] [ALGORITHM]

Every private run is unseeded. Beside it stand the non-private fit of the same algorithm and
scikit-learn's logistic regression (dense, C = 1 and C chosen best of four on the test file).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import answer_help

DPFIT = str(Path(sys.executable).parent / "dpfit")


def error(train: Path, test: Path, folder: Path, *options: str) -> float:
    """Test error in per cent of one fit."""
    model = folder / "model.json"
    fit = [DPFIT, "fit", "-q", "--force", "-o", str(model), *options, str(train)]
    subprocess.run(fit, cwd=folder, check=True)
    lines = subprocess.run(
        [DPFIT, "predict", "--json", str(model), str(test)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    predicted = [json.loads(line)["prediction"] for line in lines]
    truth = [float(line.split(None, 1)[0]) for line in test.read_text().splitlines()]
    wrong = sum(float(p) != t for p, t in zip(predicted, truth, strict=True))
    return 100.0 * wrong / len(truth)


def peer_errors(train: Path, test: Path) -> list[float]:
    from sklearn.datasets import load_svmlight_files
    from sklearn.linear_model import LogisticRegression

    x, y, x_test, y_test = load_svmlight_files([str(train), str(test)])
    models = (LogisticRegression(C=c, max_iter=1000).fit(x, y) for c in (1.0, 10.0, 100.0, 1000.0))
    return [100.0 * float((model.predict(x_test) != y_test).mean()) for model in models]


def main(
    train: Path, test: Path, sparsity: str = "500", runs: str = "5", algorithm: str = "dp-ight"
) -> None:
    size = ["--algo", algorithm, "--sparsity", sparsity]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for epsilon in ("0.5", "1", "2", "4"):
            budget = ["--eps", epsilon, "--delta", "1e-6", *size]
            found = [error(train, test, folder, *budget) for _ in range(int(runs))]
            print(
                f"eps {epsilon:<4} mean {statistics.mean(found):6.2f} %  "
                f"sd {statistics.stdev(found):.2f}  runs {' '.join(f'{e:.2f}' for e in found)}"
            )
        plain = error(train, test, folder, "--non-private", *size)
        print(f"non-private, same algorithm: {plain:.2f} %")
    peers = peer_errors(train, test)
    print(f"scikit-learn logistic, dense: C = 1 {peers[0]:.2f} %, best C {min(peers):.2f} %")


if __name__ == "__main__":
    answer_help(__doc__)
    paths = [Path(argument) for argument in sys.argv[1:3]]
    main(*paths, *sys.argv[3:])
