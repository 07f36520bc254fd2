"""Every algorithm and law of noise, as configurations to attack, written as for a shell."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from dpfit.audit.audit import Audit
from dpfit.audit.one_run import OneRun
from dpfit.cli.audit import AuditOptions
from dpfit.cli.audit_inputs import audit_of, check, settled

_FEW = "--rank 0 --features 4 --max-per-user 4 --passes 1 --eps 8"  # the l1 norm of few items
BUDGET = "--eps 8 --delta 1e-5"


@dataclass(frozen=True)
class Configuration:
    """What is attacked, and how often in each world."""

    asked: str
    trials: int = 1000

    @property
    def algorithm(self) -> str:
        return self.asked.split()[0]

    def audit(self, **others: Any) -> Audit | OneRun:
        """Ready to run; with a budget of its own if it names one."""
        budget = "" if "--eps" in self.asked else BUDGET
        options = AuditOptions(**{**_arguments(f"--algo {self.asked} {budget}"), **others})
        check(options)
        return audit_of(settled(options))


def _arguments(text: str) -> dict[str, Any]:
    words = text.split()
    types = {field.name: str(field.type) for field in fields(AuditOptions)}
    found: dict[str, Any] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        name = option[2:].replace("-", "_")
        kind = types[name]
        found[name] = float(value) if "float" in kind else int(value) if "int" in kind else value
    return found


TABLE = (
    Configuration("dp-gd --iterations 1"),
    Configuration("dp-gd"),
    Configuration("dp-gd --attack black-box", 500),
    Configuration("dp-gd --attack score", 300),
    Configuration("dp-gd --attack one-run"),
    Configuration("dp-ight --sparsity 2"),
    Configuration("dp-ight --sparsity 2 --attack black-box", 500),
    Configuration("dp-screen"),
    Configuration("dp-screen --sparsity 2"),
    Configuration("dp-screen --attack black-box", 500),
    Configuration("dp-iht --sparsity 2 --features 4 --rows 50", 200),
    Configuration("dp-iht --sparsity 2 --features 4 --rows 50 --selection peeling", 200),
    Configuration("dp-fw --l1-radius 0.5 --rows 50", 400),
    Configuration("two-stage --sparsity 2 --rows 50", 400),
    Configuration("median-objective --features 2 --rows 10"),
    Configuration("median-objective --features 2 --rows 10 --attack black-box", 500),
    Configuration("median-irls --features 2 --rows 10"),
    Configuration("median-irls --features 2 --rows 10 --noise gaussian"),
    Configuration("median-cd --iterations 20"),
    Configuration("complete-matrix --rank 0"),
    Configuration("complete-matrix"),
    Configuration("complete-matrix --rank 0 --attack black-box", 400),
    Configuration(f"complete-matrix --noise laplace {_FEW}"),
    Configuration(f"complete-matrix --noise huber {_FEW}"),
    Configuration("complete-matrix --noise laplace --rank 0 --eps 8", 400),
)
