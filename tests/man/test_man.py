"""The laws of the man pages and completion files."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from dpfit.cli.app import build_app, run
from dpfit.cli.exit_status import ExitStatus
from dpfit.privacy.accountant import compose
from dpfit.privacy.adjacency import Adjacency, PerAdjacency
from dpfit.privacy.events import Event, GaussianEvent
from dpfit.privacy.ledger_document import LedgerDocument, parse_ledger
from dpfit.privacy.ledger_frame import Cap

ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "man"
PAGES = sorted(MAN.glob("*.[157]"))
PROGRAM = get_command(build_app())
COMMANDS = {"dpfit": PROGRAM, **{f"dpfit-{n}": c for n, c in PROGRAM.commands.items()}}


def plain(page: Path) -> str:
    """A page's text without font changes and escapes of man(7)."""
    text = re.sub(r"\\f.|\\%|\\&", "", page.read_text(encoding="ascii"))
    return text.replace("\\-", "-").replace("\\e", "\\")


def parameters(name: str) -> list[typer.core.TyperOption | typer.core.TyperArgument]:
    """All that a command takes, its help option included."""
    root = typer.Context(PROGRAM, info_name="dpfit", **PROGRAM.context_settings)
    return COMMANDS[name].get_params(typer.Context(COMMANDS[name], info_name=name, parent=root))


def options(name: str) -> list[typer.core.TyperOption]:
    return [p for p in parameters(name) if p.param_type_name == "option"]


def section(page: Path, heading: str) -> str:
    (body,) = re.findall(rf"^\.SH {heading}\n(.*?)(?=^\.SH |\Z)", plain(page), re.M | re.S)
    return body


def program_in(page: Path) -> str:
    """The Python program in the EXAMPLES of a page."""
    (code,) = re.findall(r"^\.EX\n(import .*?)^\.EE$", section(page, "EXAMPLES"), re.M | re.S)
    return code


def printed(*command: str | Path, **environment: str) -> str:
    """What a command prints; it must succeed and stay silent on standard error."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=MAN,
        env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- pages ---------------------------------------------------------------------------------------


def test_pages_and_completion_files_are_what_the_program_says_now() -> None:
    printed(sys.executable, MAN / "generate.py", "--check")


def test_check_names_a_page_that_differs(tmp_path: Path) -> None:
    shutil.copytree(MAN, tmp_path / "man")
    page = tmp_path / "man" / "dpfit-fit.1"
    page.write_text(page.read_text().replace("sparse", "dense"))
    (tmp_path / "man" / "dpfit-gone.1").touch()
    command = [sys.executable, tmp_path / "man" / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.findall(r"man/(\S+) is out of date", done.stderr) == ["dpfit-gone.1", "dpfit-fit.1"]
    assert "dense" in page.read_text()


def test_every_command_has_a_page_and_no_page_lacks_its_command() -> None:
    assert {page.stem for page in PAGES if page.suffix == ".1"} == set(COMMANDS)


def test_a_new_command_gets_its_page_without_a_change_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MAN))
    generate = importlib.import_module("generate")
    app = build_app()

    @app.command("count-rows")
    def count_rows(folder: str, depth: Annotated[int, typer.Option("--depth", help="How")] = 3):
        """Count rows.

        Sub-folders too.
        """

    monkeypatch.setattr(generate, "build_app", lambda: app)
    pages = generate.pages()
    assert set(pages) == {page.name for page in PAGES} | {"dpfit-count-rows.1"}
    expected = "dpfit-count-rows - count rows\n", "dpfit count-rows [OPTION]... FOLDER\n"
    text = re.sub(r"\\f.|\\%", "", pages["dpfit-count-rows.1"]).replace("\\-", "-")
    for part in (*expected, ".PP\nSub-folders too.\n", "--depth N\nHow. Default: 3.\n"):
        assert part in text
    assert "dpfit\\-count\\-rows (1)" in pages["dpfit.1"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_name_of_every_option_stands_in_options(name: str) -> None:
    tags = re.findall(r"^\.TP\n(.*)$", section(MAN / f"{name}.1", "OPTIONS"), re.M)
    documented = {word for tag in tags for word in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", tag)}
    assert documented == {
        o for option in options(name) for o in option.opts + option.secondary_opts
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_choice_and_metavar_stands_beside_its_option(name: str) -> None:
    text = section(MAN / f"{name}.1", "OPTIONS")
    for option in options(name):
        value = option.metavar or "|".join(map(str, option.type_descriptor.choices or ()))
        assert f"{option.opts[0]} {value}".strip() in text


def test_environment_variables_follow_the_rule_that_the_pages_state() -> None:
    for option in (o for name in set(COMMANDS) - {"dpfit"} for o in options(name)):
        long_name = next(name for name in option.opts if name.startswith("--"))
        if long_name in ("--help", "--print-config"):
            assert option.envvar is None
        else:
            assert option.envvar == f"DPFIT_{long_name[2:].replace('-', '_').upper()}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_exit_status_is_documented(name: str) -> None:
    text = section(MAN / f"{name}.1", "EXIT STATUS")
    assert [int(s) for s in re.findall(r"^\.TP\n(\d+)$", text, re.M)] == sorted(ExitStatus)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_mandoc_finds_nothing_to_warn_of(page: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    assert printed("mandoc", "-T", "lint", "-W", "warning", page) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_groff_finds_nothing_to_warn_of(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    printed("groff", "-man", "-ww", "-Tascii", "-z", page)


def test_every_reference_leads_to_a_page() -> None:
    for page in PAGES:
        found = re.findall(r"(dpfit[a-z-]*) \(?([15])\)", plain(page))
        assert {f"{name}.{number}" for name, number in found} <= {p.name for p in PAGES}


# --- what the file format pages claim ------------------------------------------------------------


def test_the_program_in_the_ledger_page_recomputes_the_total(tmp_path: Path) -> None:
    pair = PerAdjacency(replace_one=4 * 3**41, add_remove=3**41)
    first = GaussianEvent(label="gradient", count=7, squared_sensitivity=pair, scale=1 << 40)
    second = GaussianEvent(label="screen", squared_sensitivity=pair, scale=3**20)
    path, document = written_ledger(tmp_path, [first], [second, first])
    total = compose([first, second, first], Adjacency.REPLACE_ONE)
    printed_total = printed(sys.executable, "-c", program_in(MAN / "dpfit-ledger.5"), path)
    assert Fraction(printed_total) == total.gaussian
    assert parse_ledger(path.read_bytes(), str(path)) == document


def test_the_program_in_the_ledger_page_takes_all_parts(tmp_path: Path) -> None:
    pair = PerAdjacency(replace_one=4, add_remove=1)
    event = GaussianEvent(label="gradient", count=7, squared_sensitivity=pair, scale=8)
    first, document = written_ledger(tmp_path, [event])
    last = tmp_path / "last"
    run = {"kind": "reserved", "run": "later", "events": [event.to_json()]}
    last.write_bytes(document.next_part().append(run).data)
    program = [sys.executable, "-c", program_in(MAN / "dpfit-ledger.5")]
    total = compose([event] * 2, Adjacency.REPLACE_ONE)
    assert Fraction(printed(*program, first, last)) == total.gaussian
    for wrong in ([last], [last, first]):
        assert subprocess.run([*program, *wrong], capture_output=True, check=False).returncode == 1


def test_the_program_in_the_ledger_page_refuses_a_changed_entry(tmp_path: Path) -> None:
    pair = PerAdjacency(replace_one=4, add_remove=1)
    event = GaussianEvent(label="gradient", count=7, squared_sensitivity=pair, scale=8)
    path, _ = written_ledger(tmp_path, [event], [event])
    path.write_text(path.read_text().replace('"count":7', '"count":6', 1))
    command = [sys.executable, "-c", program_in(MAN / "dpfit-ledger.5"), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "damaged\n")


def written_ledger(folder: Path, *runs: list[Event]) -> tuple[Path, LedgerDocument]:
    document = LedgerDocument.start(Cap(8.0, 1e-6, Adjacency.REPLACE_ONE))
    for number, events in enumerate(runs):
        head = {"kind": "reserved", "run": f"run {number}", "dataset": "Größe \x1f\u2028"}
        document = document.append({**head, "events": [event.to_json() for event in events]})
        document = document.append({"kind": "aborted", "run": f"run {number}", "reason": "SIGINT"})
    path = folder / "some.ledger.json"
    path.write_bytes(document.data)
    return path, document


KEPT = ["--sparsity", "2"]


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (["--normalize-rows", *KEPT], {}),
        (["--clip-rows", "--row-norm", "2", *KEPT], {"norm": 2.0}),
        (["--algo", "dp-iht", *KEPT], {"entry_clip": 0.5}),
        (["--algo", "dp-fw", "--entry-clip", "0.5", "--row-norm", "3"], {"entry_clip": 0.5}),
        (["--algo", "dp-screen", *KEPT], {"centring": True}),
        (["--algo", "dp-screen", "--row-norm", "0.5"], {"centring": True, "norm": 0.5}),
        (["--algo", "dp-screen", "--loss", "squared"], {"centring": True}),
        (["--algo", "dp-screen", "--loss", "huber"], {"centring": True}),
        (["--algo", "dp-ight", "--loss", "poisson", "--target-range", "0", "1", *KEPT], {}),
        (["--loss", "poisson", "--target-range", "0", "1"], {"centring": True}),
        (["--algo", "dp-gd", "--loss", "multinomial", "--labels=-1,1,2"], {}),
        (["--loss", "multinomial", "--labels=-1,1,2", *KEPT], {"centring": True}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_program_in_the_model_page_computes_the_scores(
    settings: list[str], rule: dict[str, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:0.5 3:2\n-1 2:0.25\n1 1:3 2:0.01 3:-1\n-1 3:0.125\n-1\n" * 200)
    model = tmp_path / "rows.model.json"
    ledger = tmp_path / "rows.ledger.json"
    fit = ["fit", "-q", "--eps", "50", "--delta", "0.1", *settings]
    assert run([*fit, "-o", str(model), "--ledger", str(ledger), str(rows)]) == 0
    written = json.loads(model.read_text(encoding="ascii"))
    found = {**written["row_map"], "centring": written["centring"] is not None}
    assert {name: found[name] for name in rule} == rule
    assert any(written["coefficients"]["values"])
    assert not written["centring"] or any(written["centring"]["centre"])
    assert run(["predict", "--margin", str(model), str(rows)]) == 0
    shown = [float(line) for line in capfd.readouterr().out.split()]
    scores = printed(sys.executable, "-c", program_in(MAN / "dpfit-model.5"), model, rows)
    assert [float(line) for line in scores.split()] == pytest.approx(shown, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_program_in_the_factors_page_predicts(
    loss: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chance, lines = random.Random(1), ["who,what,stars"]
    for user in range(40):
        for item in chance.sample(range(8), 5):
            taste = 1.2 if (user + item) % 2 else -1.2
            lines.append(f"{user},i{item},{3 + taste + chance.uniform(-1.5, 1.5):.2f}")
    ratings, pairs = tmp_path / "r.csv", tmp_path / "p.csv"
    ratings.write_text("\n".join(lines) + "\n")
    pairs.write_text("who,what,stars\n" + "".join(f"{u},i{u % 8},0\n" for u in range(45)))
    model, ledger = tmp_path / "r.parquet", tmp_path / "r.ledger.json"
    columns = ["--user", "who", "--item", "what", "--value", "stars", "--range", "1", "5"]
    fit = ["complete-matrix", "-q", "--non-private", "--loss", loss, "--rank", "2", *columns]
    assert run([*fit, "-o", str(model), "--ledger", str(ledger), str(ratings)]) == 0
    assert run(["predict", str(model), str(ratings), "--pairs", str(pairs)]) == 0
    shown = [float(line.split("\t")[2]) for line in capfd.readouterr().out.splitlines()]
    code = program_in(MAN / "dpfit-factors.5")
    told = printed(sys.executable, "-c", code, model, ratings, pairs)
    assert len(set(shown)) > 20
    assert [float(line) for line in told.split()] == pytest.approx(shown, rel=1e-9)


# --- completion and installation -----------------------------------------------------------------

BASH = (
    "source completion/dpfit.bash; COMP_WORDS=({words}); COMP_CWORD={last}; "
    'complete -p dpfit | grep -q "F _dpfit_completion " && _dpfit_completion dpfit; '
    'printf "%s\\n" "${{COMPREPLY[@]}}"'
)
ZSH = (
    "compdef() {{ false }}; _arguments() {{ print -r -- $@ }}; words=({words}); CURRENT={last}; "
    "fpath=($PWD/completion $fpath); autoload -Uz _dpfit; (( CURRENT++ )); _dpfit"
)
FISH = 'source completion/dpfit.fish; complete -C "{line}"'


@pytest.mark.parametrize(
    ("shell", "start", "script"),
    [("bash", ["--norc"], BASH), ("zsh", ["-f"], ZSH), ("fish", ["--no-config"], FISH)],
)
def test_a_shell_completes_commands_options_and_choices(
    shell: str, start: list[str], script: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def completed(*words: str) -> set[str]:
        line = " ".join(words)
        quoted = " ".join(f"'{word}'" for word in words)
        code = script.format(words=quoted, last=len(words) - 1, line=line)
        text = printed(shell, *start, "-c", code, PATH=path, HOME=str(tmp_path))
        return set(re.findall(r"(?:^|[\"(])((?:--)?[a-z][a-z-]*)(?=[\"\t\n])", text, re.M))

    assert {"fit", "complete-matrix", "predict", "budget"} <= completed("dpfit", "")
    assert {"--step-size", "--strict"} <= completed("dpfit", "fit", "--st")
    assert {"replace-one", "add-remove"} <= completed("dpfit", "fit", "--adjacency", "")


def test_the_wheel_installs_every_page_and_completion_file_where_programs_look() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    pages = {f"man/{p.name}": f"share/man/man{p.suffix[1:]}/{p.name}" for p in PAGES}
    assert installed == pages | {
        "man/completion/dpfit.bash": "share/bash-completion/completions/dpfit",
        "man/completion/_dpfit": "share/zsh/site-functions/_dpfit",
        "man/completion/dpfit.fish": "share/fish/vendor_completions.d/dpfit.fish",
    }
