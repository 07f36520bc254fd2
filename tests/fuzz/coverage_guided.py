"""Coverage-guided fuzzing of one target of `targets.py`, by Atheris (libFuzzer).

    pip install atheris                       # not among the project's dependencies
    python tests/fuzz/coverage_guided.py libsvm --seconds 120

Inputs that reach new code are kept in ``--corpus`` (default: a temporary folder), so that a later
run continues from them. Only code of dpfit and of tomllib is instrumented. A finding stops the run:
an exception that is not documented, an input over 10 seconds or 1 GiB of memory. Its input is
written beside, as ``crash-...``; write a short file like it to ``findings/TARGET/``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))
with atheris.instrument_imports(include=["dpfit", "tomllib"]):
    from fuzz.targets import TARGETS, TOKENS, refused


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage-guided fuzzing of one reader.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--corpus", type=Path)
    asked = parser.parse_args()
    target = TARGETS[asked.target]
    with tempfile.TemporaryDirectory() as folder:
        corpus = asked.corpus or Path(folder, "corpus")
        corpus.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target.seeds()):
            refused(target.read, seed)  # what it makes once is no part of an input's time
            (corpus / f"seed-{number}").write_bytes(seed)
        tokens = Path(folder, "tokens")
        tokens.write_text("".join(f'"{_escaped(token)}"\n' for token in TOKENS), "ascii")
        limits = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=16384", "-print_final_stats=1"]
        options = [f"-max_total_time={asked.seconds}", f"-dict={tokens}", str(corpus)]
        atheris.Setup([sys.argv[0], *limits, *options], lambda data: refused(target.read, data))
        atheris.Fuzz()


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token[:64])


if __name__ == "__main__":
    main()
