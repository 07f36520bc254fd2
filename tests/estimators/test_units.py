"""Rows that belong to people: the same guarantee, charge and kept rows as on the command line."""

from __future__ import annotations

import csv
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpfit import (
    AssumedFactWarning,
    MedianRegressor,
    PrivacyWarning,
    SparseClassifier,
    SparseRegressor,
    load_model,
)
from dpfit.errors import PrivacyError
from labelled_rows import BUDGET, FACTS, labelled_rows

X, Y = labelled_rows().X, labelled_rows().y
# Of 16 units some have one row, others ten, of which four take part; neighbours stand apart.
WHO = np.sqrt(np.random.Generator(np.random.PCG64(2)).integers(0, 256, 80)).astype(int)
N_UNITS = len(set(WHO.tolist()))
SAID: dict[str, Any] = {"max_rows_per_unit": 4, "n_units": N_UNITS}
ON_THE_LINE = ("--max-rows-per-unit", "4", "--n-units", str(N_UNITS), "--n-rows", "80")
ON_THE_LINE += ("--eps", "4", "--delta", "0.001", "--labels=-1,1", "--n-features", "12")


def unfitted(**others: Any) -> SparseClassifier:
    return SparseClassifier(**{"ledger": False, **BUDGET, **FACTS, **SAID, **others})


def write_queries(path: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        for row, label in enumerate(Y.tolist()):
            part = slice(X.indptr[row], X.indptr[row + 1])
            cells = zip((X.indices[part] + 1).tolist(), X.data[part].tolist(), strict=True)
            features = " ".join(f"{j}:{value!r}" for j, value in cells)
            stream.write(f"{label} qid:{WHO[row]} {features}\n")


def write_table(path: str, names: list[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["y", "unit", *(f"x{j}" for j in range(12))])
        for label, name, row in zip(Y.tolist(), names, X.toarray().tolist(), strict=True):
            writer.writerow([label, name, *map(repr, row)])


def model_of(document: bytes) -> dict[str, Any]:
    """All but how the face of a run calls columns, and the origin of what an array knows."""
    model: dict[str, Any] = json.loads(document)
    model["features"] = None
    facts = model["provenance"]["public_facts"]
    for name in ("index_base", "features"):
        facts[name] = None
    model["provenance"].pop("unit")
    return model


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("told", [{"algo": "dp-gd"}, {"algo": "dp-ight", "sparsity": 4}], ids=str)
def test_a_seeded_fit_is_that_of_the_command_line(dpfit: Any, told: dict[str, Any]) -> None:
    """From ``qid`` and from a column of numbers or of names: hence the same rows were kept."""
    write_queries("a.svm")
    names = [f"person {number:02}" for number in WHO]
    write_table("b.csv", WHO.tolist())
    write_table("c.csv", names)
    options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    asked = (*ON_THE_LINE, *options, "--seed", "7", "--dataset", "d")
    dpfit("fit", "a.svm", *asked, "--unit", "qid", "--index-base", "1")
    of_table = ("--unit", "unit", "--label", "y")
    dpfit("fit", "b.csv", *asked, *of_table)
    dpfit("fit", "c.csv", *asked, *of_table)
    one = unfitted(seed=7, dataset="d", **told)
    found = {
        "a": one.set_params(index_base=1).fit(X, Y, unit=WHO).model_.to_bytes(),
        "b": one.set_params(index_base=0).fit(X, Y, unit=WHO).model_.to_bytes(),
        "c": one.fit(X.toarray(), Y, unit=names).model_.to_bytes(),
    }
    for name, document in found.items():
        assert model_of(document) == model_of(Path(f"{name}.model.json").read_bytes())
    values = {name: model_of(document)["coefficients"] for name, document in found.items()}
    assert values["b"] != values["c"]  # other identifiers, other rows


def test_the_charge_is_that_of_the_command_line(dpfit: Any) -> None:
    """Entry by entry, and it names the unit; the cap holds for both."""
    write_table("b.csv", WHO.tolist())
    dpfit("budget", "b.ledger.json", "--cap-eps", "9", "--cap-delta", "1e-3")
    dpfit("fit", "b.csv", *ON_THE_LINE, "--unit", "unit", "--label", "y", "--algo", "dp-gd")
    one = unfitted(ledger="b.ledger.json")
    fitted = one.fit(X.toarray(), Y, unit=WHO)
    entries = json.loads(Path("b.ledger.json").read_text())["entries"]
    theirs, ours = (entry for entry in entries if entry["kind"] == "reserved")
    facts = {entry["public_facts"].pop("features")["value"] for entry in (ours, theirs)}
    assert facts == {12}
    for name in set(theirs) - {"run", "time", "previous", "hash", "public_facts"}:
        if name in ("events", "record", "unit", "budget", "settings", "algorithm", "dataset"):
            assert ours[name] == theirs[name], name
    assert (ours["record"], ours["unit"]) == ("unit", "unit")
    assert ours["public_facts"] == theirs["public_facts"] | {
        "index_base": ours["public_facts"]["index_base"]
    }
    assert fitted.privacy_.record == "unit"
    assert "for each unit" in str(fitted.privacy_)
    with pytest.raises(PrivacyError):
        one.set_params(eps=9.0).fit(X.toarray(), Y, unit=WHO)


FORMS = {
    "texts": lambda: WHO.astype(str),
    "objects": lambda: WHO.astype(object),
    "text objects": lambda: WHO.astype(str).astype(object),
    "small numbers": lambda: WHO.astype(np.uint8),
    "a list": lambda: WHO.tolist(),
    "blanks": lambda: [f" {number}\t" for number in WHO],
}


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("form", FORMS)
def test_an_identifier_is_its_text(form: str) -> None:
    """As in files: the same model, to the bit, whatever the type."""
    wanted = unfitted(seed=3).fit(X, Y, unit=WHO).coef_
    np.testing.assert_array_equal(unfitted(seed=3).fit(X, Y, unit=FORMS[form]()).coef_, wanted)


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_what_a_unit_has_beyond_its_rows_is_nothing() -> None:
    """Without noise too: which rows take part depends on the unit's own, not on their order."""
    order = np.random.Generator(np.random.PCG64(5)).permutation(80)
    one = unfitted(non_private=True, eps=None, delta=None)
    wanted = one.fit(X, Y, unit=WHO).coef_
    found = one.fit(csr_array(X[order]), Y[order], unit=WHO[order]).coef_
    np.testing.assert_array_equal(found, wanted)
    others = np.flatnonzero(np.bincount(WHO).argmax() != WHO)
    alone = one.set_params(n_units=None, n_rows=None)
    fewer = alone.fit(csr_array(X[others]), Y[others], unit=WHO[others])
    assert fewer.privacy_.assumed["units"] == N_UNITS - 1


WRONG = [
    (WHO.astype(float), "units are neither texts nor whole numbers"),
    (WHO > 3, "units are neither texts nor whole numbers"),
    (np.array([*WHO.astype(str)[:-1], "  "]), "empty identifier"),
    (np.array([*WHO[:-1], None], object), "empty identifier"),
    (np.array([*WHO[:-1], "a"], object), "units are neither texts nor whole numbers"),
    (WHO[:-1], "inconsistent numbers"),
    (WHO.reshape(-1, 1), "^unit must be one identifier for each row"),
    (WHO.astype("S"), "units are neither texts nor whole numbers"),
    ([*WHO.astype(str)[:-1], math.nan], "units are neither texts nor whole numbers"),
    ([*WHO[:-1], "a"], "units are neither texts nor whole numbers"),
    ([*WHO[:-1], 2**70], "units are neither texts nor whole numbers"),
    ([[number] for number in WHO], "units are neither texts nor whole numbers"),
]


@pytest.mark.parametrize(("unit", "said"), WRONG)
def test_what_is_no_identifier_is_refused(unit: Any, said: str, tmp_path: Path) -> None:
    """Before anything is charged, and no identifier is told."""
    ledger = tmp_path / "a.ledger.json"
    with pytest.raises(ValueError, match=said):
        unfitted(ledger=ledger).fit(X, Y, unit=unit)
    assert not ledger.exists()


def test_facts_of_units() -> None:
    """Their number is assumed with a warning, or refused under strict; the cap of rows is asked."""
    with pytest.warns(AssumedFactWarning, match="n_units"):
        unfitted(n_units=None).fit(X, Y, unit=WHO)
    with pytest.raises(PrivacyError, match=r"not declared: n_units$"):
        unfitted(n_units=None, strict=True).fit(X, Y, unit=WHO)
    with pytest.raises(ValueError, match="unit needs max_rows_per_unit"):
        unfitted(max_rows_per_unit=None).fit(X, Y, unit=WHO)
    with pytest.raises(ValueError, match="correct n_units"):
        unfitted(n_units=N_UNITS + 1).fit(X, Y, unit=WHO)
    with pytest.raises(ValueError, match="protects rows, not units"):
        unfitted(algo="dp-screen").fit(X, Y, unit=WHO)
    with pytest.raises(ValueError, match="tune scores rows, and so does not go with unit"):
        unfitted(algo="dp-gd", tune={"iterations": [1, 2]}).fit(X, Y, unit=WHO)
    with pytest.raises(ValueError, match="no algorithm for unit"):
        MedianRegressor(ledger=False, max_rows_per_unit=4, **BUDGET).fit(X, Y, unit=WHO)


def test_delta_is_for_units() -> None:
    """What is too large goes by their number, not by that of rows."""
    with pytest.warns(PrivacyWarning, match="above 1/units"):
        unfitted(delta=2.0 / N_UNITS).fit(X, Y, unit=WHO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unfitted(delta=0.5 / N_UNITS).fit(X, Y, unit=WHO)


def test_regressors_have_units(tmp_path: Path) -> None:
    """The model that was saved tells who is protected."""
    facts: dict[str, Any] = {"n_rows": 80, "n_features": 12, "target_range": (0.0, 2.0), **SAID}
    one = SparseRegressor(
        loss="poisson", ledger=False, unit_clip=2.0, max_exposure=1.0, **facts, **BUDGET
    )
    fitted = clone(one).fit(X, Y + 1.0, unit=WHO, exposure=np.ones(80))
    fitted.save(tmp_path / "a.model.json")
    assert load_model(tmp_path / "a.model.json").privacy_.record == "unit"
    assert fitted.privacy_.declared["unit_clip"] == 2.0


def test_units_are_routed() -> None:
    """By scikit-learn's metadata, or by the name of a pipeline's step."""
    plain = make_pipeline(Normalizer(), unfitted())
    plain.fit(X, Y, sparseclassifier__unit=WHO)
    assert plain[-1].privacy_.record == "unit"
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(Normalizer(), unfitted().set_fit_request(unit=True))
        routed.fit(X, Y, unit=WHO)
        assert routed[-1].privacy_.record == "unit"
        assert clone(routed[-1]).get_metadata_routing().fit.requests["unit"] is True
