"""``dpfit fit`` as the user meets it: files, words, and the promise of equal bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

ISSUE = ("--algo", "dp-ight", "--eps", "4", "--delta", "0.01", "--sparsity", "500")
ASSUMED = "dpfit: assumed from the data and taken as public: "


# --- the main job --------------------------------------------------------------------------------


def test_writes_model_and_ledger_and_says_what_it_assumed(dpfit: Any) -> None:
    """The line of the issue works as written; of ten columns it cannot keep its 500."""
    outcome = dpfit("fit", *ISSUE, dpfit.svm("rcv1.svm"))
    assert (outcome.status, outcome.out) == (0, "")
    assumed, warned = outcome.err.splitlines()
    assert assumed.startswith(ASSUMED)
    assert warned == "dpfit: warning: --sparsity 500 is above the 10 features: all are kept"
    assert dpfit.names() == {"rcv1.svm", "rcv1.model.json", "rcv1.ledger.json"}
    for fact in ("rows=60", "features=10", "index_base=1", "labels=[-1, 1]", "loss=logistic"):
        assert fact in assumed


def test_declared_facts_make_it_silent(dpfit: Any) -> None:
    """With every fact declared a run says nothing at all."""
    outcome = dpfit("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_quiet_changes_words_only(dpfit: Any) -> None:
    """--quiet silences warnings and notes and changes no bit; -vv adds words only."""
    args = ("fit", dpfit.svm(), *dpfit.budget, "--seed", "5", "--force")
    outcomes = []
    for words in ([], ["-q"], ["-vv"]):
        outcome = dpfit.here(*args, *words)
        assert outcome.status == 0
        outcomes.append((outcome.err, dpfit.read("tiny.model.json")))
    assert outcomes[1][0] == ""
    assert "read 60 rows" in outcomes[2][0]
    assert len({model for _, model in outcomes}) == 1


def test_ledger_names_the_model_by_hash(dpfit: Any) -> None:
    """The released entry carries the SHA-256 of the model file."""
    dpfit.fit()
    entry = dpfit.json("tiny.ledger.json")["entries"][-1]
    assert entry["model_sha256"] == hashlib.sha256(dpfit.read("tiny.model.json")).hexdigest()


def test_squared_loss_by_the_targets_values(dpfit: Any) -> None:
    """A target of more than two values is fitted by squared loss, and that is said."""
    Path("real.svm").write_text("1.5 1:1\n2.5 2:1\n0.5 1:1 2:1\n", encoding="utf-8")
    outcome = dpfit.here("fit", "real.svm", *dpfit.budget)
    assert outcome.status == 0
    assert "loss=squared" in outcome.err
    assert "target_range=[0.5, 2.5] (--target-range)" in outcome.err
    assert dpfit.json("real.model.json")["link"] == "identity"


@pytest.mark.parametrize("budget", [["--rho", "0.5"], ["--mu", "1"]])
def test_other_budgets(dpfit: Any, budget: list[str]) -> None:
    """--rho and --mu stand in for eps and delta, and the charge never exceeds them."""
    plan = dpfit.here("fit", dpfit.svm(), *budget, "--sparsity", "3", "--dry-run", "--json")
    charge = json.loads(plan.out)["charge"]
    assert 0.999 < charge["mu"] <= 1.0
    assert charge["rho"] <= 0.5


def test_non_private_is_marked_everywhere(dpfit: Any) -> None:
    """A run without noise says so in the model, the ledger and the budget report."""
    dpfit.svm()
    outcome = dpfit.here("fit", "tiny.svm", "--sparsity", "3", "--non-private", *dpfit.facts)
    assert outcome.status == 0
    assert dpfit.json("tiny.model.json")["private"] is False
    assert dpfit.json("tiny.ledger.json")["entries"][0]["private"] is False
    assert "NOT PRIVATE" in dpfit.here("budget", "tiny.ledger.json").out


# --- machine output ------------------------------------------------------------------------------


def test_json_everywhere(dpfit: Any) -> None:
    """With --json each command prints one object, versioned, its keys in a fixed order."""
    dpfit.svm()
    fit = ["fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "--json"]
    commands = [
        [*fit, "--dry-run"],
        [*fit, "--force"],
        ["budget", "tiny.ledger.json", "--json"],
        ["budget", "--eps", "1", "--delta", "1e-6", "--json"],
        ["--version", "--json"],
    ]
    for args in commands:
        once, twice = dpfit.here(*args), dpfit.here(*args)
        assert (once.status, once.err) == (0, "")
        assert once.out.count("\n") == 1
        keys = list(json.loads(once.out))
        assert keys[0] == "schema_version"
        assert keys == list(json.loads(twice.out))


def test_errors_are_json_with_json(dpfit: Any) -> None:
    """With --json an error is one JSON object on stderr and nothing is on stdout."""
    outcome = dpfit.here("fit", "absent.svm", *dpfit.budget, "--json")
    assert outcome.out == ""
    error = json.loads(outcome.err)
    assert error["exit_status"] == outcome.status == 5
    assert "absent.svm" in error["error"]


# --- dry run -------------------------------------------------------------------------------------


def test_dry_run_touches_nothing(dpfit: Any) -> None:
    """A dry run prints charge and noise and leaves no file, ledger or lock behind."""
    outcome = dpfit.here("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts, "--dry-run")
    assert outcome.status == 0
    assert "epsilon 4" in outcome.out
    assert "noise" in outcome.out
    assert [path.name for path in dpfit.folder.iterdir()] == ["tiny.svm"]


def test_dry_run_spends_nothing_on_a_ledger(dpfit: Any) -> None:
    """A dry run does not change the bytes of an existing ledger, and tells the true charge."""
    dpfit.fit()
    before = dpfit.read("tiny.ledger.json")
    args = ("fit", "tiny.svm", *dpfit.budget, *dpfit.facts, "-o", "new.json", "--json")
    plan = json.loads(dpfit.here(*args, "--ledger", "tiny.ledger.json", "--dry-run").out)
    assert dpfit.read("tiny.ledger.json") == before
    assert plan["events"] == dpfit.json("tiny.ledger.json")["entries"][0]["events"]


# --- inputs and outputs --------------------------------------------------------------------------


def test_model_to_standard_output(dpfit: Any) -> None:
    """``-o -`` writes the model's bytes to stdout, nothing else; the ledger has its hash."""
    outcome = dpfit("fit", dpfit.svm(), *dpfit.budget, *dpfit.facts, "-o", "-")
    assert (outcome.status, outcome.err) == (0, "")
    entry = dpfit.json("tiny.ledger.json")["entries"][-1]
    assert entry["model_sha256"] == hashlib.sha256(outcome.out.encode()).hexdigest()
    assert dpfit.names() == {"tiny.svm", "tiny.ledger.json"}


def test_standard_input_equals_the_file(dpfit: Any) -> None:
    """Rows from stdin give the model that the file gives; ``-o -`` with --ledger works too."""
    args = [*dpfit.budget, *dpfit.facts, "--seed", "1", "--dataset", "d"]
    dpfit.svm()
    assert dpfit.here("fit", "tiny.svm", *args).status == 0
    stdin = dpfit.read("tiny.svm")
    piped = ("fit", "-", "--format", "libsvm", *args)
    first = dpfit(*piped, "-o", "in.model.json", input=stdin)
    assert first.status == 0
    assert dpfit.read("in.model.json") == dpfit.read("tiny.model.json")
    assert dpfit.kinds("in.ledger.json") == ["reserved", "released"]
    second = dpfit(*piped, "-o", "-", "--ledger", "other.json", input=stdin)
    assert second.out.encode() == dpfit.read("tiny.model.json")


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_standard_input_needs_names(dpfit: Any, output: list[str]) -> None:
    """From stdin nothing tells where to write, so it must be said, before anything is read."""
    outcome = dpfit.here("fit", "-", "--format", "libsvm", *dpfit.budget, *output)
    assert outcome.status == 2
    assert "hint: give -o MODEL" in outcome.err


def test_no_operand_is_never_a_read_of_stdin(dpfit: Any) -> None:
    """Without an operand a command is a usage error, whatever stdin holds."""
    dpfit.fit()
    for args in (["fit", *dpfit.budget], ["predict", "tiny.model.json"]):
        assert dpfit(*args, input=dpfit.read("tiny.svm")).status == 2


def test_parts_equal_the_whole(dpfit: Any) -> None:
    """Several files, or a folder of parts, give the model of their rows in that order."""
    args = [*dpfit.budget, *dpfit.facts, "--seed", "1", "--dataset", "d", "--force", "-o", "m"]
    lines = (dpfit.folder / dpfit.svm()).read_bytes().splitlines(keepends=True)
    Path("parts").mkdir()
    Path("parts/_SUCCESS").touch()
    for name, part in (("b", lines[25:]), ("a", lines[:25])):
        Path(f"parts/{name}.svm").write_bytes(b"".join(part))
    models = []
    for inputs in (["tiny.svm"], ["parts/a.svm", "parts/b.svm"], ["parts"]):
        assert dpfit.here("fit", *inputs, *args).status == 0
        models.append(dpfit.read("m"))
    assert models[0] == models[1] == models[2]


def test_existing_model_is_refused_before_reading(dpfit: Any) -> None:
    """A model is not replaced without --force; that is found before the data, and costs nothing."""
    Path("tiny.svm").write_text("this is no record\n", encoding="utf-8")
    Path("tiny.model.json").write_text("mine", encoding="utf-8")
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget)
    assert (outcome.status, outcome.out) == (5, "")
    assert "tiny.model.json: exists" in outcome.err
    assert "--force" in outcome.err
    assert dpfit.names() == {"tiny.svm", "tiny.model.json"}
    Path("tiny.model.json").unlink()
    dpfit.fit()
    dpfit.fit("--force")
    assert dpfit.kinds() == ["reserved", "released"] * 2


def test_model_and_ledger_are_two_files(dpfit: Any) -> None:
    """A model never takes the ledger's name, by --force or by a link: the charges would be gone."""
    dpfit.fit()
    before = dpfit.read("tiny.ledger.json")
    Path("link.json").symlink_to("tiny.ledger.json")
    for output in ("tiny.ledger.json", "link.json", "./tiny.ledger.json"):
        outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, "-o", output, "--force")
        assert outcome.status == 2
        assert dpfit.read("tiny.ledger.json") == before


def test_strict_refuses_assumptions(dpfit: Any) -> None:
    """--strict exits 4, names fact and option, spends nothing; declared facts satisfy it."""
    dpfit.svm()
    facts = list(dpfit.facts)
    for missing in range(0, 6, 2):
        declared = facts[:missing] + facts[missing + 2 :]
        outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, "--strict", *declared)
        assert outcome.status == 4
        assert facts[missing] in outcome.err
    outcome = dpfit.here("fit", "tiny.svm", *dpfit.budget, "--strict", *facts[:-1])
    assert outcome.status == 4
    assert dpfit.names() == {"tiny.svm"}
    dpfit.fit("--strict")


# --- the same bytes ------------------------------------------------------------------------------


def test_seed_gives_equal_bytes(dpfit: Any) -> None:
    """The same input, options and seed give the same bytes; the model holds no clock and no run."""
    models, ledgers = [], []
    for name in ("a", "b"):
        folder = dpfit.folder / name
        folder.mkdir()
        dpfit.svm(f"{name}/tiny.svm")
        outcome = dpfit("fit", "tiny.svm", *dpfit.budget, "--seed", "7", cwd=folder)
        assert outcome.status == 0
        assert "not private" in outcome.err
        models.append((folder / "tiny.model.json").read_bytes())
        ledgers.append(json.loads((folder / "tiny.ledger.json").read_bytes())["entries"][0])
    assert models[0] == models[1]
    assert ledgers[0]["run"] != ledgers[1]["run"]
    for entry in ledgers:
        assert (entry["private"], entry["reproducible"]) == (False, True)
        assert entry["run"].encode() not in models[0]
        assert entry["time"].encode() not in models[0]
    assert json.loads(models[0])["private"] is False


def test_no_seed_gives_fresh_noise(dpfit: Any) -> None:
    """Without a seed two runs differ."""
    dpfit.fit()
    first = dpfit.json("tiny.model.json")["coefficients"]
    Path("tiny.model.json").unlink()
    dpfit.fit()
    dpfit.fit("--force")
    assert dpfit.json("tiny.model.json")["coefficients"] != first


def test_threads_change_no_bit(dpfit: Any) -> None:
    """Any number of threads gives the same bytes, also on an input of several blocks."""
    text = dpfit.read(dpfit.svm(rows=2000, features=300))
    Path("tiny.svm").write_bytes(text * 20)
    assert len(text) * 20 > 2 << 20
    args = ("fit", "tiny.svm", *dpfit.budget, "--seed", "1", "--force", "-q")
    models = set()
    for threads in ("1", "2", "5"):
        assert dpfit.here(*args, "--threads", threads).status == 0
        models.add(dpfit.read("tiny.model.json"))
    assert len(models) == 1


# --- configuration -------------------------------------------------------------------------------


def test_precedence(dpfit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option wins over the environment, that over the file, that over the default."""

    def sparsity(*args: str) -> str:
        outcome = dpfit.here("fit", "x.svm", "--print-config", *args)
        (line,) = (line for line in outcome.out.splitlines() if "sparsity " in line)
        return line

    assert sparsity() == "# sparsity is not set"
    Path("c.toml").write_text("[fit]\nsparsity = 1\n", encoding="utf-8")
    monkeypatch.setenv("DPFIT_CONFIG", "c.toml")
    assert sparsity() == "sparsity = 1  # configuration"
    monkeypatch.setenv("DPFIT_SPARSITY", "2")
    assert sparsity() == "sparsity = 2  # environment"
    assert sparsity("--sparsity", "3") == "sparsity = 3  # option"


def test_configuration_takes_effect(dpfit: Any) -> None:
    """Options from a file do what they do on the command line."""
    dpfit.svm()
    facts = '"n-rows" = 60\nn-features = 10\nindex-base = "1"\nlabels = "-1,1"\n'
    budget = "algo = 'dp-ight'\neps = 4.0\ndelta = 0.001\nsparsity = 3\nseed = 1\n"
    budget += "dataset = 'd'\nquiet = true\n"
    Path("c.toml").write_text(f"[fit]\n{facts}{budget}\n[budget]\neps = 1.0\n", encoding="utf-8")
    outcome = dpfit.here("fit", "tiny.svm", "--config", "c.toml", "-o", "a")
    assert (outcome.status, outcome.err) == (0, "")
    args = [*dpfit.budget, *dpfit.facts, "--seed", "1", "--dataset", "d", "-q", "-o", "b"]
    assert dpfit.here("fit", "tiny.svm", *args).status == 0
    assert dpfit.read("a") == dpfit.read("b")


def test_print_config_is_a_config(dpfit: Any) -> None:
    """What --print-config prints is read back to the same values, and nothing is run."""
    args = [
        *dpfit.budget,
        "--target-range",
        "0",
        "1.5",
        "--dataset",
        'a "b" \\ c',
        "-vv",
        "--force",
    ]
    first = dpfit.here("fit", "x.svm", "y.svm", *args, "--print-config")
    assert first.status == 0
    Path("c.toml").write_text(first.out, encoding="utf-8")
    second = dpfit.here("fit", "x.svm", "y.svm", "--config", "c.toml", "--print-config")

    def values(text: str) -> list[str]:
        return [line.rsplit("  # ", 1)[0] for line in text.splitlines()]

    assert values(second.out) == values(first.out)
    assert dpfit.names() == {"c.toml"}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("[fit]\nepsilon = 1.0\n", 2),
        ("[fit]\nconfig = 'other'\n", 2),
        ("[fitt]\neps = 1.0\n", 2),
        ("eps = 1.0\n", 2),
        ("[fit]\neps = 'much'\n", 2),
        ("[fit\n", 2),
        ("[fit]\nx = \xff\n", 2),
        (None, 5),
    ],
)
def test_bad_configuration(dpfit: Any, text: str | None, status: int) -> None:
    """An unknown key or table, or a file that is no TOML, ends the run before it begins."""
    if text is not None:
        Path("c.toml").write_bytes(text.encode("latin-1"))
    outcome = dpfit.here("fit", dpfit.svm(), *dpfit.budget, "--config", "c.toml")
    if text is None or "much" not in text:  # an option on the command line stands in for that one
        assert outcome.status == status
        assert outcome.err.startswith("dpfit: error: c.toml")
    else:
        assert dpfit.here("fit", "tiny.svm", "--config", "c.toml").status == status
    assert "Traceback" not in outcome.err


def test_no_folder_is_searched(dpfit: Any) -> None:
    """A stray file in the working directory changes nothing."""
    for name in ("dpfit.toml", ".dpfit.toml", "pyproject.toml", "config.toml"):
        Path(name).write_text("[fit]\nsparsity = 9\n", encoding="utf-8")
    outcome = dpfit.here("fit", "x.svm", "--print-config")
    assert "# sparsity is not set" in outcome.out


def test_version_of_the_installed_script(dpfit: Any) -> None:
    """``--version`` prints the name and the version, one line."""
    outcome = dpfit("--version")
    assert outcome.out.startswith("dpfit ")
    assert outcome.out.count("\n") == 1
    assert (outcome.status, outcome.err) == (0, "")
