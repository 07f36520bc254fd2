"""One fit by another's program, run in an environment of its own by peers.py.

usage: python peer_models.py NAME TRAIN.svm TEST.svm SEED EPSILON DELTA

Prints a JSON object: test error, share of coefficients that are not zero, and seconds of the fit
alone. Rows are scaled to length one. The private loops are as short as they can honestly be:
bounded adjacency (a record replaced), logistic loss, and a charge by Gaussian differential privacy
or, for selections, zero-concentrated. Imports nothing of dpfit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_files
from sklearn.preprocessing import normalize
from usage import answer_help

_DENSE = 100  # columns of a random projection where the dense rows would not fit
_GAUSS = NormalDist()


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu whose curve passes through (epsilon, delta), by bisection."""
    low, high = 1e-6, 10.0
    for _ in range(200):
        mu = (low + high) / 2
        spent = _GAUSS.cdf(mu / 2 - epsilon / mu)
        spent -= np.exp(epsilon) * _GAUSS.cdf(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if spent <= delta else (low, mu)
    return low


def slopes(scores: Any, y: Any) -> Any:
    """Derivatives of the logistic loss; no larger than one."""
    return -y / (1 + np.exp(np.clip(y * scores, -50, 50)))


class Task:
    """The rows, and what a private fit may cost."""

    def __init__(self, X: Any, y: Any, seed: int, epsilon: float, delta: float) -> None:
        self.X, self.y, self.seed = X, y, seed
        self.epsilon, self.delta = epsilon, delta
        self.rng = np.random.default_rng()  # the noise of a private loop repeats for no seed

    def sgd(self) -> Any:
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier(loss="log_loss", alpha=1e-5, random_state=self.seed).fit(
            self.X, self.y
        )

    def saga(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(
            solver="saga", max_iter=200, tol=1e-3, random_state=self.seed
        ).fit(self.X, self.y)

    def diffprivlib(self) -> Any:
        """Pure epsilon, dense: many columns are projected first, by a matrix of no data."""
        from diffprivlib.models import LogisticRegression

        d = self.X.shape[1]
        self.projection = None
        rows = self.X
        if d > 500:
            signs = np.random.default_rng(self.seed).standard_normal((d, _DENSE))
            self.projection = signs / np.sqrt(_DENSE)
            rows = normalize(rows @ self.projection)
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return LogisticRegression(epsilon=self.epsilon, data_norm=1.0).fit(rows, self.y)

    def descent(self, noise: Callable[[int, float], Any]) -> Any:
        """Noisy gradient descent on all rows."""
        steps, rate = 50, 4.0
        n, d = self.X.shape
        sigma = 2 * np.sqrt(steps) / gaussian_mu(self.epsilon, self.delta)
        w = np.zeros(d)
        for _ in range(steps):
            gradient = self.X.T @ slopes(self.X @ w, self.y) + noise(d, sigma)
            w -= rate * gradient / n
        return w

    def opendp(self) -> Any:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

        def noise(d: int, sigma: float) -> Any:
            return np.asarray(dp.m.make_gaussian(*space, scale=sigma)([0.0] * d))

        return self.descent(noise)

    def numpy_gd(self) -> Any:
        return self.descent(lambda d, sigma: sigma * self.rng.standard_normal(d))

    def numpy_sgd(self) -> Any:
        """Two passes of disjoint batches: each record is charged once a pass."""
        passes, batches, rate = 2, 20, 4.0
        n, d = self.X.shape
        sigma = 2 * np.sqrt(passes) / gaussian_mu(self.epsilon, self.delta)
        w = np.zeros(d)
        order = np.random.default_rng(self.seed).permutation(n)
        for part in np.array_split(order, batches) * passes:
            X, y = self.X[part], self.y[part]
            gradient = X.T @ slopes(X @ w, y) + sigma * self.rng.standard_normal(d)
            w -= rate * gradient / len(part)
        return w

    def numpy_fw(self) -> Any:
        """Frank-Wolfe in a ball of the 1-norm; a vertex a step by the exponential mechanism."""
        steps, radius = 40, 30.0
        d = self.X.shape[1]
        log = np.log(1 / self.delta)
        rho = (np.sqrt(log + self.epsilon) - np.sqrt(log)) ** 2
        scale = 2 * 2 / np.sqrt(8 * rho / steps)  # of the sum's entries, which change by two
        w = np.zeros(d)
        for step in range(steps):
            gradient = self.X.T @ slopes(self.X @ w, self.y)
            scores = np.concatenate([-gradient, gradient]) + self.rng.gumbel(0, scale, 2 * d)
            best = int(np.argmax(scores))
            share = 2 / (step + 2)
            w *= 1 - share
            w[best % d] += share * radius * (1 if best < d else -1)
        return w


def main(name: str, train: str, test: str, *numbers: str) -> None:
    X, y, X_test, y_test = load_svmlight_files([train, test], zero_based=False)
    X, X_test = normalize(X), normalize(X_test)
    y, y_test = (np.where(labels > 0, 1.0, -1.0) for labels in (y, y_test))
    task = Task(X, y, int(numbers[0]), float(numbers[1]), float(numbers[2]))
    started = time.perf_counter()
    model = getattr(task, name)()
    seconds = time.perf_counter() - started
    if isinstance(model, np.ndarray):
        predicted, coefficients = np.where(X_test @ model > 0, 1.0, -1.0), model
    else:
        projection = getattr(task, "projection", None)
        rows = X_test if projection is None else normalize(X_test @ projection)
        if name == "diffprivlib" and projection is None:
            rows = rows.toarray()
        predicted, coefficients = model.predict(rows), model.coef_
    error = float(np.mean(predicted != y_test))
    share = float(np.mean(coefficients != 0))
    print(json.dumps({"error": error, "used": share, "fit": seconds}))


if __name__ == "__main__":
    answer_help(__doc__)
    main(*sys.argv[1:])
