"""The rooms and the direction of imports between them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dpfit

ROOT = Path(dpfit.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# Each room may import itself and what is listed; everything may import the shared modules.
SHARED = {"errors", "memory"}
ALLOWED = {
    "cli": {
        "audit",
        "report",
        "estimators",
        "fitting",
        "algorithms",
        "losses",
        "privacy",
        "design",
        "data",
        "files",
    },
    "estimators": {"fitting", "algorithms", "losses", "privacy", "design", "data", "files"},
    "report": {"privacy", "data", "files"},
    "audit": {"fitting", "algorithms", "losses", "privacy", "design", "data"},
    "fitting": {"algorithms", "losses", "privacy", "design", "data", "files"},
    "algorithms": {"privacy", "losses"},
    "privacy": {"design", "data", "files", "losses"},
    "design": {"data", "files", "losses"},
    "data": {"files"},
    "files": set(),
    "losses": set(),
}


def imports_of(path: Path) -> set[str]:
    """Every dpfit module that ``path`` imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    """A room imports only rooms below it."""
    room = room_of(path)
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "dpfit" and len(parts) > 1 and parts[1] not in SHARED and room:
            assert parts[1] == room or parts[1] in ALLOWED[room], f"{path} imports {module}"


def test_algorithms_see_released_values_only() -> None:
    """No algorithm imports the records, the design, a mechanism or the data."""
    for path in (ROOT / "algorithms").glob("*.py"):
        private = {
            "private_records",
            "collected_records",
            "cluster_records",
            "unit_exchange",
            "workers",
            "questions",
            "charged_releases",
            "mechanisms",
            "random_bits",
        }
        for module in imports_of(path):
            assert not private & set(module.split(".")), f"{path} imports {module}"


def test_one_module_makes_randomness() -> None:
    """Random bits come from random_bits.py, and only mechanisms use them."""
    users = set()
    for path in MODULES:
        text = path.read_text()
        name = str(path.relative_to(ROOT))
        if any(word in text for word in ("os.urandom", "import secrets", "default_rng")):
            assert name == "privacy/random_bits.py"
        if "dpfit.privacy.random_bits" in imports_of(path):
            users.add(name.split("/")[0] if "mechanisms" not in name else "mechanisms")
    assert users == {"mechanisms"}


def test_only_the_command_line_prints() -> None:
    """No print and no bare standard stream outside cli/."""
    for path in MODULES:
        if room_of(path) == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "eval", "exec"), f"{path}:{node.lineno}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) != ("sys", "stdout"), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_pickled_or_clicked(path: Path) -> None:
    """No pickle anywhere, and never click: Typer carries its own copy with other classes."""
    assert not {"pickle", "click", "marshal", "shelve"} & imports_of(path)


def test_only_privacy_opens_the_private_records() -> None:
    """No module outside privacy/ and design/ reads the rows or the targets of the records."""
    for path in MODULES:
        if room_of(path) in ("privacy", "design"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "design":
                raise AssertionError(f"{path}:{node.lineno} opens the private design")
            if isinstance(node, ast.Attribute) and node.attr == "target":
                owner = ast.unparse(node.value)
                assert "records" not in owner, f"{path}:{node.lineno} opens the private targets"
