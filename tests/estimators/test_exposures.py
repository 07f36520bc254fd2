"""Counts with exposures: the same bits on both faces, in fits and in predictions."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from dpfit import AssumedFactWarning, SparseRegressor, load_model
from dpfit.errors import PrivacyError
from labelled_rows import BUDGET, labelled_rows

X = labelled_rows().X.toarray()
CHANCE = np.random.Generator(np.random.PCG64(3))
COUNTS = CHANCE.integers(0, 6, 80)
EXPOSURE, OFFSET = CHANCE.integers(1, 40, 80) / 8, CHANCE.integers(-8, 8, 80) / 8
SAID: dict[str, Any] = {"n_rows": 80, "n_features": 12, "target_range": (0.0, 5.0)}


def unfitted(**others: Any) -> SparseRegressor:
    asked = {"loss": "poisson", "ledger": False, "max_exposure": 4.0, **SAID, **BUDGET}
    return SparseRegressor(**{**asked, **others})


def write_table(path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["y", "offset", "exposure", *(f"x{j}" for j in range(12))])
        columns = (COUNTS.tolist(), OFFSET.tolist(), EXPOSURE.tolist(), X.tolist())
        for count, offset, exposure, row in zip(*columns, strict=True):
            writer.writerow([count, repr(offset), repr(exposure), *map(repr, row)])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
@pytest.mark.parametrize("roles", [("exposure",), ("offset",), ("offset", "exposure")])
def test_a_seeded_fit_is_that_of_the_command_line(dpfit: Any, roles: tuple[str, ...]) -> None:
    """And so are the predictions of a model of either."""
    write_table("t.csv")
    Path("t.toml").write_text("".join(
        f"[columns]\n{role} = {{ role = 'ignore' }}\n"
        for role in ("offset", "exposure") if role not in roles
    ))  # fmt: skip
    asked = ("--loss", "poisson", "--max-exposure", "4", "--target-range", "0", "5", "--seed", "7")
    asked += ("--eps", "4", "--delta", "0.001", "--n-rows", "80", "--n-features", "12")
    named = [word for role in roles for word in (f"--{role}", role)]
    dpfit("fit", "t.csv", "--label", "y", "--schema", "t.toml", *asked, *named)
    wanted = json.loads(Path("t.model.json").read_text())
    given = {role: {"offset": OFFSET, "exposure": EXPOSURE}[role] for role in roles}
    fitted = unfitted(seed=7, dataset="t").fit(X, COUNTS, **given)
    found = json.loads(fitted.model_.to_bytes())
    assert found["features"]["exposure"] == wanted["features"]["exposure"]
    assert found["features"]["offset"] == wanted["features"]["offset"]
    for model in (found, wanted):
        model["features"] = None
        for name in ("index_base", "features"):
            model["provenance"]["public_facts"][name] = None
    assert found == wanted
    said = np.array([float(line) for line in dpfit("predict", "t.model.json", "t.csv").split()])
    loaded = load_model("t.model.json")
    np.testing.assert_array_equal(fitted.predict(X, **given), said)
    np.testing.assert_array_equal(loaded.predict(X, **given), said)


def test_a_count_is_its_rate_times_its_exposure() -> None:
    """The logarithm of an exposure is an offset; without one it is 1."""
    fitted = unfitted().fit(X, COUNTS, exposure=EXPOSURE)
    rates = fitted.predict(X, exposure=np.ones(80))
    np.testing.assert_allclose(fitted.predict(X, exposure=EXPOSURE), rates * EXPOSURE, rtol=1e-12)
    both = fitted.predict(X, exposure=EXPOSURE, offset=OFFSET)
    np.testing.assert_allclose(both, rates * EXPOSURE * np.exp(OFFSET), rtol=1e-12)
    plain = unfitted(max_exposure=None).fit(X, COUNTS)
    np.testing.assert_array_equal(plain.predict(X, exposure=np.ones(80)), plain.predict(X))


@pytest.mark.parametrize("roles", [("exposure",), ("offset",), ("offset", "exposure")])
def test_what_a_model_was_fitted_with_it_predicts_with(
    roles: tuple[str, ...], tmp_path: Path
) -> None:
    """As the command line wants the column: an exposure of 1 would be taken without a word."""
    given = {role: {"offset": OFFSET, "exposure": EXPOSURE}[role] for role in roles}
    fitted = unfitted().fit(X, COUNTS, **given)
    fitted.save(tmp_path / "a.model.json")
    for one in (fitted, load_model(tmp_path / "a.model.json")):
        for missing in roles:
            some = {role: given[role] for role in roles if role != missing}
            for call in (one.predict, lambda X, one=one, **others: one.score(X, COUNTS, **others)):
                with pytest.raises(ValueError, match=f"fitted with {missing}, .* {missing}=;"):
                    call(X, **some)
        wanted = r2_score(COUNTS, one.predict(X, **given), sample_weight=EXPOSURE)
        assert one.score(X, COUNTS, EXPOSURE, **given) == wanted


@pytest.mark.filterwarnings("ignore::dpfit.PrivacyWarning")
def test_exposures_make_a_difference() -> None:
    """Counts that are nothing but exposure have one rate; without it they seem to differ."""
    exposure = np.where(X[:, 0] > 0.0, 4.0, 1.0)
    one = unfitted(non_private=True, eps=None, delta=None, target_range=(0.0, 4.0))
    with_exposure = one.fit(X, exposure, exposure=exposure)
    with_exposure = with_exposure.predict(X, exposure=np.ones(80))
    assert with_exposure.max() - with_exposure.min() < 0.2
    without = one.set_params(max_exposure=None).fit(X, exposure).predict(X)
    assert without.max() - without.min() > 1.0


def test_what_is_no_exposure_is_refused() -> None:
    """By fits and by predictions; other losses have none."""
    with pytest.raises(ValueError, match="exposure that is not positive"):
        unfitted().fit(X, COUNTS, exposure=EXPOSURE - EXPOSURE.min())
    with pytest.raises(ValueError, match="contains NaN"):
        unfitted(max_exposure=None).fit(X, COUNTS, offset=np.where(OFFSET > 0, np.nan, 1.0))
    with pytest.raises(ValueError, match="loss='squared' has no offset or exposure"):
        unfitted(loss="squared", max_exposure=None).fit(X, COUNTS, exposure=EXPOSURE)
    plain = unfitted(loss="squared", max_exposure=None).fit(X, COUNTS)
    with pytest.raises(ValueError, match="loss='squared' has no offset or exposure"):
        plain.predict(X, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        unfitted().fit(X, COUNTS, exposure=EXPOSURE).predict(X, exposure=EXPOSURE[1:])


def test_the_bound_of_exposures_is_a_fact() -> None:
    """Assumed with a warning, or refused under strict."""
    with pytest.warns(AssumedFactWarning, match="max_exposure"):
        unfitted(max_exposure=None).fit(X, COUNTS, exposure=EXPOSURE)
    with pytest.raises(PrivacyError, match=r"not declared: max_exposure$"):
        unfitted(max_exposure=None, strict=True).fit(X, COUNTS, exposure=EXPOSURE)


def test_names_of_series_are_columns(dpfit: Any) -> None:
    """A file with the label, the exposure and the people beside the features can be predicted."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    series = {"claims": COUNTS, "years": EXPOSURE, "person": np.arange(80) % 20}
    series = {name: pandas.Series(values, name=name) for name, values in series.items()}
    fitted = unfitted(max_rows_per_unit=3, n_units=20).fit(
        frame, series["claims"], exposure=series["years"], unit=series["person"]
    )
    assert fitted.model_.provenance["unit"] == "person"
    fitted.save("frame.model.json")
    frame.assign(**series).to_csv("frame.csv", index=False)
    said = [float(line) for line in dpfit("predict", "frame.model.json", "frame.csv").split()]
    np.testing.assert_array_equal(fitted.predict(frame, exposure=EXPOSURE), said)
    # A series made of a feature has its name, which is not that of the exposure.
    plain = unfitted().fit(frame, COUNTS, exposure=frame["x11"] + 1.0)
    assert plain.model_.exposure_column == "exposure"
