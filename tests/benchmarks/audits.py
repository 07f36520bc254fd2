"""Audited against claimed, for every algorithm, with a confidence of 0.95.

usage: python tests/benchmarks/audits.py [--quick]

``--quick`` runs a twentieth of the trials.
"""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from usage import answer_help

sys.path.insert(0, str(Path(__file__).parents[1]))

from attacks.configurations import BUDGET, TABLE, Configuration
from dpfit.audit.audit import Finding

SEED = 1
_QUICK, _FEWEST = 20, 20


def row(configuration: Configuration, trials: int) -> list[str]:
    """Of the table."""
    start = time.perf_counter()
    one_run = "one-run" in configuration.asked
    audit = configuration.audit(seed=SEED, **({} if one_run else {"trials": trials}))
    found = audit.run(lambda done: None)
    seconds = f"{time.perf_counter() - start:.0f}"
    asked = configuration.asked.split(" --attack ")[0]
    head = [f"`--algo {asked}`", audit.attack, str(audit.trials)]
    claimed = found.claimed.mu()
    claims = f"{found.claimed_epsilon:.2f}", f"{claimed:.2f}" if math.isfinite(claimed) else ""
    if not isinstance(found, Finding):
        tail = "", "", f"{found.tightness:.0%}", seconds
        return [*head, claims[0], f"{found.epsilon:.2f}", claims[1], *tail]
    by_mu = found.epsilon_by_mu
    epsilon = found.epsilon.value if by_mu is None else max(found.epsilon.value, by_mu)
    tightness = f"{found.tightness:.0%}"
    tail = f"{found.mu.value:.2f}", f"{found.estimate.value:.2f}", tightness, seconds
    return [*head, claims[0], f"{epsilon:.2f}", claims[1], *tail]


def main(arguments: list[str]) -> None:
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return
    if unknown := {*arguments} - {"--quick"}:
        raise SystemExit(f"no such argument: {min(unknown)}")
    print(f"{BUDGET}, or --eps 8 alone where it is given; bounds hold with a confidence of 0.95\n")
    names = ["configuration", "attack", "trials", "epsilon claimed", "audited, at least"]
    names += ["mu claimed", "audited, at least", "estimate", "tightness", "seconds"]
    print("|", " | ".join(names), "|")
    print("|", " | ".join(["---"] * len(names)), "|", flush=True)
    divisor = _QUICK if "--quick" in arguments else 1
    trials = [max(_FEWEST, one.trials // divisor) for one in TABLE]
    with ProcessPoolExecutor() as pool:
        for cells in pool.map(row, TABLE, trials):
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    answer_help(__doc__)
    main(sys.argv[1:])
