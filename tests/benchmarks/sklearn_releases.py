"""scikit-learn's checks of the estimators, on its oldest supported release and on the newest.

usage: python tests/benchmarks/sklearn_releases.py [RELEASE ...]

Installs each release into an environment of its own, the oldest with the oldest numpy and scipy,
and prints what passed and what failed there, with the reason if it was expected. Exit status 1 if
anything else fails. ``--here`` uses the release that is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from usage import answer_help

ROOT = Path(__file__).resolve().parents[2]
OLDEST = "1.6.0"
NEWEST = "newest"
BESIDE = {OLDEST: ["numpy==2.0.*", "scipy==1.13.*", "pandas<3"]}


def in_environment(release: str, folder: Path) -> int:
    """Install a release with what dpfit needs, and check there."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    wanted = "scikit-learn" if release == NEWEST else f"scikit-learn=={release}"
    others = BESIDE.get(release, ["pandas"])
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT), wanted, *others], check=True)
    # Away from the sources, so that what was installed is what is checked.
    command = [python, Path(__file__).resolve(), "--here"]
    return subprocess.run(command, check=False, cwd=folder).returncode


def here() -> int:
    """Print the outcome of every check that did not pass."""
    sys.path.insert(0, str(ROOT / "tests"))
    import numpy
    import scipy
    import sklearn
    from sklearn.utils.estimator_checks import check_estimator

    from sklearn_contracts import FITS, KINDS, estimator, expected_failures

    warnings.simplefilter("ignore")
    versions = f"numpy {numpy.__version__}, scipy {scipy.__version__}"
    print(f"\nscikit-learn {sklearn.__version__}, {versions}")
    unexpected = 0
    for kind in KINDS:
        for fit in FITS:
            results = check_estimator(
                estimator(kind, fit),
                expected_failed_checks=expected_failures(kind, fit),
                on_fail=None,
                on_skip=None,
            )
            counts = Counter(result["status"] for result in results)
            unexpected += counts["failed"]
            shown = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
            print(f"{kind.__name__}, {fit}: {shown}")
            for result in results:
                if result["status"] != "passed":
                    why = result["expected_to_fail_reason"] or result["exception"]
                    print(f"    {result['status']} {result['check_name']}: {str(why)[:160]}")
    return min(unexpected, 1)


def main(releases: list[str]) -> int:
    if releases == ["--here"]:
        return here()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for release in releases or [OLDEST, NEWEST]:
            worst = max(worst, in_environment(release, Path(folder, release)))
    return worst


if __name__ == "__main__":
    answer_help(__doc__)
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    sys.exit(main(sys.argv[1:]))
