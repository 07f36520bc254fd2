"""``dpfit report``: what stands on the page, that nothing else does, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dpfit.files.factor_model import parse_factor_model
from dpfit.privacy import ledger as ledger_module
from dpfit.report.chart import at_most
from dpfit.report.style import STYLE
from html_page import HtmlPage
from report_scenes import ATTACKS, PLAN, SAMPLES, hostile, income, ratings

PAGE = {"html", "head", "meta", "title", "style", "body", "header", "main", "footer"}
TEXT = {"section", "div", "h1", "h2", "h3", "p", "ul", "li", "strong", "span"}
TABLE = {"table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"}
TAGS = PAGE | TEXT | TABLE | {"svg", "desc", "rect", "line", "polyline", "circle", "text"}


def page_of(dpfit: Any, *args: str, name: str = "report.html") -> HtmlPage:
    """Write a report, and read it."""
    outcome = dpfit.here("report", *args)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    return HtmlPage(dpfit.read(name).decode())


# --- what stands on the page ---------------------------------------------------------------------


def test_a_linear_model_with_its_ledger(dpfit: Any) -> None:
    """The promise, the curves, what was spent, coefficients by name, settings."""
    dpfit.here("budget", "income.ledger.json", "--cap-eps", "8", "--cap-delta", "1e-6")
    model = income(dpfit)
    before = dpfit.names(), dpfit.read("income.ledger.json")
    page = page_of(dpfit, model, "income.ledger.json")
    for said in (
        "epsilon 1 at delta 1e\N{NON-BREAKING HYPHEN}06",
        "Exchange any one row for any other",
        "at most 2.72",
        "guesses right with a chance of at most 54.8 %",
        "None of them was read off the data",
        "the cap is 8",
        "released by run 1",
        "speaks for the class over50k",
        "job=engineer",
        "budget parts",
        "nothing was charged",
    ):
        assert said in page.text, said
    assert "NOT PRIVATE" not in page.text
    assert len([a for a in page.attributes if a[0] == "svg" and a[1].get("role") == "img"]) == 4
    assert dpfit.names() == before[0] | {"report.html"}
    assert dpfit.read("income.ledger.json") == before[1]
    first = dpfit.read("report.html")
    page_of(dpfit, model, "income.ledger.json", "--force")
    assert dpfit.read("report.html") == first


def test_a_model_without_a_ledger(dpfit: Any) -> None:
    """LIBSVM columns by their numbers; no word of a ledger's sum."""
    page = page_of(dpfit, dpfit.fit())
    assert re.search(r"column \d+", page.text)
    assert "Budget spent" not in page.text


def test_assumed_facts_are_named(dpfit: Any) -> None:
    """Those read off the data are a condition of the promise, in words."""
    dpfit.svm()
    assert dpfit.here("fit", "tiny.svm", *dpfit.budget).status == 0
    page = page_of(dpfit, "tiny.model.json")
    assert re.search(
        "were read off the data.*: rows, index_base, features, loss, labels", page.text
    )


def test_a_model_of_ratings(dpfit: Any) -> None:
    """Whole users, zeroed out; items by name."""
    page = page_of(dpfit, ratings(dpfit), "ratings.ledger.json")
    assert "Leave what any one user contributes out" in page.text
    assert "released by run 1" in page.text
    assert "Items furthest from the mean" in page.text
    assert "film" in page.text


def test_a_promise_to_units(dpfit: Any) -> None:
    """All rows of one together; the error of noise for single rows is not shown as theirs."""
    schema, data = str(SAMPLES / "stars.toml"), str(SAMPLES / "ratings.csv")
    args = ("--unit", "user", "--max-rows-per-unit", "32", "--hash-bits", "8")
    budget = ("--eps", "4", "--delta", "1e-4", "--n-units", "400")
    assert dpfit.here("fit", "--schema", schema, *args, *budget, data).status == 0
    page = page_of(dpfit, "ratings.model.json")
    assert "Exchange any one unit for any other" in page.text
    assert "A unit is protected with all records of that unit." in page.text
    assert "minimax" not in page.text


def of_rows_and_units(dpfit: Any) -> None:
    """On one ledger: a model for rows ``r.json``, then one for units, ``u.json``."""
    rows = [f"{i % 40},{i / 200},{i % 2}" for i in range(200)]
    Path("d.csv").write_text("\n".join(["user,x,y", *rows]) + "\n", encoding="utf-8")
    args = ("fit", "d.csv", "--label", "y", "--eps", "1", "--delta", "1e-6", "--ledger", "l.json")
    unit = ("--unit", "user", "--max-rows-per-unit", "5")
    for more in (("-o", "r.json"), (*unit, "-o", "u.json")):
        assert dpfit.here(*args, *more).status == 0


def test_what_was_spent_is_on_whom_the_model_protects(dpfit: Any) -> None:
    """Runs for rows are not among those for a unit; for a row all count. As ``dpfit budget``."""
    of_rows_and_units(dpfit)
    page = page_of(dpfit, "u.json", "l.json")
    assert "1epsilon spent in the ledger on a unit, by 1 of 2 runs, at delta" in page.text
    assert "spent on a unit: user: epsilon 1 at delta" in page.text
    assert "this sum protects a single row, by all runs" in page.text
    assert "epsilon of all runs" not in page.text  # for a unit this is the only one
    told = json.loads(dpfit.here("budget", "l.json", "--delta", "1e-6", "--json").out)
    both = at_most(told["total"]["epsilon"][0]["epsilon"])
    assert f"{both}epsilon spent" not in page.text
    page = page_of(dpfit, "r.json", "l.json", "--force")
    assert f"{both}epsilon spent in the ledger, at delta" in page.text
    assert "epsilon of all runs of the ledger" in page.text


def test_a_ledger_without_a_run_for_whom_the_model_protects(dpfit: Any) -> None:
    """It is not said that nothing was spent on them."""
    of_rows_and_units(dpfit)
    page = page_of(dpfit, "u.json", Path(dpfit.fit()).name.replace("model", "ledger"))
    assert "no runof the ledger protects a unit" in page.text


def test_a_pure_promise(dpfit: Any) -> None:
    """No delta is spoken of where none is needed."""
    data = str(SAMPLES / "sensors.parquet")
    args = ("--loss", "absolute", "--eps", "1", "--target-range", "0", "1", "--label", "yield")
    assert dpfit.here("fit", *args, data).status == 0
    page = page_of(dpfit, "sensors.model.json", "sensors.ledger.json")
    assert "epsilon 1 without a delta" in page.text


def test_a_search_is_promised_as_a_whole(dpfit: Any) -> None:
    """The best of a secret number of runs has no rho, and is private all the same."""
    args = ("--eps", "4", "--delta", "1e-4", "--algo", "dp-ight", "--tune", "sparsity=2,4")
    dpfit.svm()
    assert dpfit.here("fit", "tiny.svm", *dpfit.facts, *args).status == 0
    page = page_of(dpfit, "tiny.model.json", "tiny.ledger.json")
    assert "NOT PRIVATE" not in page.text
    assert "What is promised" in page.text
    chance = re.search(r"guesses right with a chance of at most ([\d.]+) %", page.text)
    assert chance is not None
    assert float(chance[1]) < 98.3  # what epsilon 4 alone allows
    assert "grid sparsity 2, 4" in page.text


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (("--non-private",), "made without noise"),
        (("--seed", "1", "--eps", "4", "--delta", "0.001"), "made with --seed"),
    ],
)
def test_what_is_not_private_says_so(dpfit: Any, how: tuple[str, ...], why: str) -> None:
    """In large letters, and without a promise, a curve or an attacker's chance."""
    dpfit.svm()
    args = ("fit", "tiny.svm", "--algo", "dp-ight", "--sparsity", "3", *dpfit.facts, *how)
    assert dpfit.here(*args).status == 0
    page = page_of(dpfit, "tiny.model.json", "tiny.ledger.json")
    assert "NOT PRIVATE" in page.texts
    assert why in page.text
    assert "spent without bound" in page.text
    assert "What is promised" not in page.text
    assert "best attacker" not in page.text
    assert ("div", "alarm") in [(tag, a.get("class")) for tag, a in page.attributes]


def test_a_model_that_claims_more_than_its_events(dpfit: Any) -> None:
    """``private: true`` over releases without noise is no promise."""
    model = dpfit.json(dpfit.fit())
    model["provenance"]["events"] = [{"mechanism": "non-private", "label": "x", "count": 1}]
    Path("bold.json").write_text(json.dumps(model), encoding="utf-8")
    assert "NOT PRIVATE" in page_of(dpfit, "bold.json").texts


def test_a_search_keeps_its_promise(dpfit: Any) -> None:
    """It has no rho of its own, but an epsilon, and that is what is told."""
    dpfit.svm()
    args = ("--eps", "2", "--delta", "1e-4", "--algo", "dp-ight", "--tune", "sparsity=2,5")
    assert dpfit.here("fit", "tiny.svm", *args, *dpfit.facts).status == 0
    page = page_of(dpfit, "tiny.model.json", "tiny.ledger.json")
    assert "NOT PRIVATE" not in page.text
    assert "epsilon 2 at delta 0.0001" in page.text
    assert "random-stopping" in page.text


def test_an_epsilon_that_promises_nothing(dpfit: Any) -> None:
    """Its sentence is one."""
    dpfit.svm()
    assert dpfit.here("fit", "tiny.svm", "--eps", "800", "--delta", "1e-4").status == 0
    page = page_of(dpfit, "tiny.model.json")
    assert "which is no protection to speak of, except with a chance" in page.text


def test_another_file_than_the_ledger_knows(dpfit: Any) -> None:
    """A model changed by a byte was released by no run."""
    model = dpfit.fit()
    Path("other.json").write_bytes(dpfit.read(model) + b"\n")
    page = page_of(dpfit, "other.json", "tiny.ledger.json")
    assert "No run of this ledger released this very model file." in page.texts


def test_a_ledger_in_parts(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts are added up, and a run in an earlier one is found."""
    dpfit.fit()
    Path("tiny.model.json").rename("first.model.json")
    monkeypatch.setattr(ledger_module, "LARGEST_PART", 1)
    for _ in range(3):
        dpfit.fit("--force")
    page = page_of(dpfit, "first.model.json", "tiny.ledger.json")
    assert "4 runs spent" in page.text
    assert "released by run 1" in page.text


def test_a_plan_reads_nothing(dpfit: Any) -> None:
    """From options alone; an epsilon is marked; as JSON too."""
    page = page_of(dpfit, *PLAN[1:], "--sparsity", "5", "--eps", "3")
    assert "2,000 rows, 100 columns, 5 coefficients" in page.text
    assert "this epsilon" in page.text
    assert dpfit.names() == {"report.html"}
    told = json.loads(dpfit.here(*PLAN, "--json", "--force").out)["plan"]
    assert [set(point) for point in told] == [{"epsilon", "expected", "minimax"}] * 7


# --- nothing else stands on it -------------------------------------------------------------------


def test_hostile_names_stay_text(dpfit: Any) -> None:
    """Whatever a file calls its columns, classes, items and runs, the elements are ours."""
    model, ledger = hostile(dpfit)
    page = page_of(dpfit, model, ledger)
    assert set(page.tags) <= TAGS
    for tag, attributes in page.attributes:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "href", "style"} & set(attributes), tag
    for attack in ATTACKS[:3]:
        assert attack in page.text
    assert "Exchange any one record for any other" in page.text
    assert page.style == STYLE
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    assert len(dpfit.read("report.html")) < 100_000


def test_hostile_items_stay_text(dpfit: Any) -> None:
    """The names of a factor model's items as well."""
    model = parse_factor_model(dpfit.read(ratings(dpfit)), "")
    names = tuple(f"{ATTACKS[i % 3]}{i}" for i in range(len(model.items)))
    object.__setattr__(model, "items", names)
    Path("bad.parquet").write_bytes(model.to_bytes())
    assert pq.ParquetFile("bad.parquet").metadata.num_rows == len(names)
    page = page_of(dpfit, "bad.parquet")
    assert set(page.tags) <= TAGS
    assert ATTACKS[0] in page.text


def test_the_policy_lets_nothing_in(dpfit: Any) -> None:
    """No source but the one style sheet, by its hash; no address of anything in the file."""
    income(dpfit)
    page = page_of(dpfit, "income.model.json")
    (policy,) = [
        str(a["content"])
        for _, a in page.attributes
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    sheet = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{sheet}'" in policy
    assert "unsafe" not in policy
    document = dpfit.read("report.html").decode()
    for word in ("http:", "https:", "url(", "@import", "//"):
        assert word not in document.replace(sheet, "")


def test_pictures_have_words(dpfit: Any) -> None:
    """Each has a title, a description and a table; what is mere decoration is hidden."""
    income(dpfit)
    page = page_of(dpfit, "income.model.json", "income.ledger.json")
    identifiers = {str(a["id"]) for _, a in page.attributes if "id" in a}
    assert len(identifiers) == len([a for _, a in page.attributes if "id" in a])
    for tag, attributes in page.attributes:
        if tag != "svg":
            continue
        if attributes.get("role") == "img":
            assert set(str(attributes["aria-labelledby"]).split()) <= identifiers
        else:
            assert attributes["aria-hidden"] == "true"
    assert page.tags.count("figure") <= page.tags.count("table")
    assert all("scope" in a for tag, a in page.attributes if tag == "th")
    assert [a["lang"] for tag, a in page.attributes if tag == "html"] == ["en"]
    assert page.tags.count("h1") == 1


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2) of ``#rgb`` or ``#rrggbb``."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast() -> None:
    """Text has a contrast of 4.5 or more with what is behind it, lines 3, light and dark."""
    schemes = [dict(re.findall(r"--([a-z-]+):(#\w+)", part)) for part in STYLE.split("@media")[:2]]
    pairs = [("ink", "back"), ("ink", "panel"), ("soft", "back"), ("on-alarm", "alarm")]
    pairs += [(line, "back") for line in ("first", "second", "third", "alarm")]
    for scheme in schemes:
        for front, back in pairs:
            high, low = sorted((luminance(scheme[front]), luminance(scheme[back])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        ((), 2, "a MODEL is needed"),
        (("none.json",), 5, "none.json: cannot be read"),
        (("tiny.svm",), 3, "tiny.svm: is not a model file"),
        (("tiny.model.json", "none.json"), 5, "none.json: no such file"),
        (("tiny.model.json", "tiny.svm"), 4, "tiny.svm: damaged ledger"),
        (("tiny.model.json", "--eps", "1"), 2, "--eps has a meaning with --plan only"),
        (("tiny.model.json", "-o", "tiny.model.json", "--force"), 2, "is a file of this run"),
        (("tiny.model.json", "l", "-o", "l", "--force"), 2, "is a file of this run"),
        (("tiny.model.json", "-o", "tiny.ledger.json", "--force"), 5, "is a ledger"),
        (("tiny.model.json", "-o", "tiny.svm"), 5, "tiny.svm: exists"),
        (("tiny.model.json", "-o", "no/report.html"), 5, "no/report.html: cannot be written"),
        (
            ("tiny.model.json", "-o", "report.pdf"),
            2,
            "--output report.pdf: what is written is an HTML",
        ),
        (("tiny.model.json", "-o", "report"), 2, "end in .html or .htm"),
        (("tiny.model.json", "-o", "-", "--json"), 2, "-o - and --json exclude each other"),
        (("--plan", "tiny.model.json"), 2, "--plan takes no MODEL"),
        (("--plan",), 2, "--plan needs --n-rows"),
        ((*PLAN[1:-2],), 2, "--plan needs --delta"),
        ((*PLAN[1:], "--sparsity", "101"), 2, "--sparsity is above --n-features"),
        ((*PLAN[1:], "--sparsity", "0"), 2, "--sparsity must be at least 1"),
        ((*PLAN[1:], "--eps", "nan"), 2, "--eps must be"),
        ((*PLAN[1:-1], "2"), 2, "--delta must lie"),
    ],
)
def test_refused(dpfit: Any, args: tuple[str, ...], status: int, said: str) -> None:
    """In one line, with its exit status, and nothing is written."""
    dpfit.fit()
    before = {name: dpfit.read(name) for name in dpfit.names()}
    outcome = dpfit.here("report", *args)
    assert outcome.status == status, outcome.err
    assert said in outcome.err
    assert outcome.out == ""
    assert {name: dpfit.read(name) for name in dpfit.names()} == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("events", None),
        ("events", [{"mechanism": "magic"}]),
        ("adjacency", "none"),
        ("public_facts", []),
        ("public_facts", {"rows": 3}),
        ("settings", "fast"),
    ],
)
def test_a_provenance_of_something_else(dpfit: Any, key: str, value: object) -> None:
    """Exit status 3: no promise is made up for what is not understood."""
    model = dpfit.json(dpfit.fit())
    model["provenance"][key] = value
    Path("odd.json").write_text(json.dumps(model), encoding="utf-8")
    outcome = dpfit.here("report", "odd.json")
    assert outcome.status == 3
    assert "odd.json: is not a model's provenance document" in outcome.err
    assert not Path("report.html").exists()


def test_a_provenance_without_end(dpfit: Any) -> None:
    """Nesting that the parser bears is refused where it is shown."""
    content = dpfit.read(dpfit.fit())
    deep = b'"settings": {"deep": ' + 600 * b"[" + 600 * b"]" + b", "
    Path("odd.json").write_bytes(content.replace(b'"settings": {', deep))
    outcome = dpfit.here("report", "odd.json")
    assert (outcome.status, "nested too deeply" in outcome.err) == (3, True)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("public_facts", "rows", "value"), 10**400),
        (("public_facts", "features", "value"), 10**400),
        (("budget", "delta"), 5e-324),
        (("budget", "delta"), 0.9999),
    ],
)
def test_numbers_that_no_plan_is_for(dpfit: Any, place: tuple[str, ...], value: object) -> None:
    """The page is made all the same, with a plan where one can be."""
    model = dpfit.json(dpfit.fit())
    part = model["provenance"]
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    Path("odd.json").write_text(json.dumps(model), encoding="utf-8")
    page = page_of(dpfit, "odd.json")
    assert "What is promised" in page.text
    assert ("What another epsilon would do" in page.text) == (value == 0.9999)


def test_a_page_on_standard_output(dpfit: Any) -> None:
    """The same document."""
    model = dpfit.fit()
    page_of(dpfit, model)
    assert dpfit("report", model, "-o", "-").out.encode() == dpfit.read("report.html")


# --- pictures ------------------------------------------------------------------------------------


def test_png_without_matplotlib(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is written, with what to install."""
    model = dpfit.fit()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = dpfit.here("report", model, "--png", "x.png")
    assert outcome.status == 2
    assert "pip install 'dpfit[plot]'" in outcome.err
    assert not Path("report.html").exists()


def test_png(dpfit: Any) -> None:
    """A picture beside the page; never over it, nor over what is read."""
    pytest.importorskip("matplotlib")
    model = dpfit.fit()
    for name in ("report.html", model, "tiny.ledger.json"):
        outcome = dpfit.here("report", model, "tiny.ledger.json", "--png", name, "--force")
        assert outcome.status in (2, 5), outcome.err
    page_of(dpfit, model, "tiny.ledger.json", "--png", "x.png")
    assert dpfit.read("x.png").startswith(b"\x89PNG\r\n\x1a\n")
    assert dpfit.here(*PLAN, "--png", "x.png", "--force").status == 0
    outcome = dpfit.here(*PLAN, "--png", "x.jpg", "--force")
    assert (outcome.status, "let its name end in .png" in outcome.err) == (2, True)


def test_budget_plot(dpfit: Any) -> None:
    """As wide as the terminal, in the characters of the locale, without colour."""
    dpfit.fit()
    for locale, dash in (("C", "-"), ("C.UTF-8", "\N{BOX DRAWINGS LIGHT HORIZONTAL}")):
        env = {**os.environ, "COLUMNS": "50", "LC_ALL": locale}
        outcome = dpfit("budget", "tiny.ledger.json", "--plot", env=env)
        assert (outcome.status, outcome.err) == (0, "")
        *picture, sentence = outcome.out.splitlines()
        assert max(map(len, picture)) == 50
        assert f"{dash * 40}" in outcome.out
        assert "\x1b" not in outcome.out
        assert sentence.startswith("1 run spent epsilon ")
    assert dpfit.here("budget", "--eps", "1", "--delta", "1e-6", "--plot").status == 2
    assert dpfit.here("budget", "tiny.ledger.json", "--plot", "--json").status == 2
