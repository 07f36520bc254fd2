"""Models and ledgers for the tests of reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpfit.privacy.ledger_document import LedgerDocument

SAMPLES = Path(__file__).resolve().parents[1] / "sample_data"
PLAN = ("report", "--plan", "--n-rows", "2000", "--n-features", "100", "--delta", "1e-6")
ATTACKS = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "</title></style></svg><script>window.pwned=1</script>",
    "&lt;b&gt; &amp; ' \" `",
    "javascript:alert(1)",
)


def ratings(dpfit: Any) -> str:
    """A model of ratings."""
    args = ("--eps", "5", "--delta", "1e-4", "--user", "user", "--item", "film", "--value", "stars")
    facts = ("--range", "1", "5", "--items", str(SAMPLES / "films.txt"), "--n-users", "400")
    outcome = dpfit.here("complete-matrix", *args, *facts, str(SAMPLES / "ratings.csv"))
    assert outcome.status == 0, outcome.err
    return "ratings.factors.parquet"


def income(dpfit: Any) -> str:
    """A model with names of columns."""
    schema, data = str(SAMPLES / "income.toml"), str(SAMPLES / "income.csv")
    outcome = dpfit.here("fit", "--eps", "1", "--delta", "1e-6", "--schema", schema, data)
    assert outcome.status == 0, outcome.err
    return "income.model.json"


def hostile(dpfit: Any) -> tuple[str, str]:
    """A model and its ledger with an attack in every text that a file can hold."""
    model = dpfit.json(income(dpfit))
    first = ATTACKS[0]
    model["classes"] = [ATTACKS[1], ATTACKS[2]]
    for place, column in enumerate(model["features"]["columns"]["columns"]):
        column["name"] = f"{ATTACKS[place % len(ATTACKS)]}{place}"
        if "levels" in column:
            column["levels"] = [f"{ATTACKS[2]}{level}" for level in column["levels"]]
    told = model["provenance"]
    told |= {"dpfit": first, "dataset": first + "\u202e\x1b", "algorithm": ATTACKS[1]}
    told["settings"] |= {ATTACKS[2]: ATTACKS[3], "many": [first] * 1000, "long": "y" * 100_000}
    told["public_facts"][ATTACKS[4]] = {"value": ATTACKS[2], "origin": first}
    told["events"][0]["label"] = first
    told["record"] = ATTACKS[1]
    Path("bad.model.json").write_text(json.dumps(model), encoding="utf-8")
    document = LedgerDocument.start()
    entry = {"kind": "reserved", "time": first, "adjacency": "replace-one", "dataset": first}
    entry |= {"events": told["events"], "run": ATTACKS[1]}
    Path("bad.ledger.json").write_bytes(document.append(entry).data)
    return "bad.model.json", "bad.ledger.json"
