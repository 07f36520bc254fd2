"""The man pages and completion files of dpfit, from its command tree and the texts in sections/.

``python man/generate.py`` writes them beside this file. ``python man/generate.py --check`` writes
nothing, names what is out of date and then exits 1.

What the program knows of itself (names, options, exit statuses, version) is taken from it; a new
command gets its page without a change here. ``sections/NAME.roff`` holds the rest of the page of
that name, one man(7) section after the other; its place in the page follows from its heading.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import typer
from typer.completion import get_completion_script
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from dpfit import __version__
from dpfit.cli.app import build_app
from dpfit.cli.exit_status import ExitStatus

Command: TypeAlias = TyperCommand | TyperGroup

HERE: Final = Path(__file__).resolve().parent
SECTIONS: Final = HERE / "sections"
CHANGELOG: Final = HERE.parent / "CHANGELOG.md"

DATE_BEFORE_CHANGELOG: Final = "2026-11-29"  # of the pages, until a changelog dates a release
MANUALS: Final = {1: "User Commands", 5: "File Formats", 7: "Miscellanea"}
COMPLETIONS: Final = {"bash": "dpfit.bash", "zsh": "_dpfit", "fish": "dpfit.fish"}

_FIRST: Final = ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS")
_LAST: Final = ("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO")
_PLACEHOLDERS: Final = {"str": "TEXT", "int": "N", "float": "X"}
_GENERATED: Final = '.\\" Written by man/generate.py; edit that or man/sections instead.\n'


# --- man(7) text ---------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """``text`` as man(7) prints it literally; its hyphens can be copied into a shell."""
    if not text.isascii():
        raise ValueError(f"a page holds ASCII only, not {text!r}")
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def bold(text: str) -> str:
    return f"\\fB\\%{escaped(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI\\%{escaped(text)}\\fR"


def prose(text: str) -> str:
    """A sentence of the program's help: options in bold, hyphens within words as they are."""
    option = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")
    parts = [
        bold(part) if number % 2 else escaped(part).replace("\\-", "-")
        for number, part in enumerate(option.split(text))
    ]
    return "".join(parts)


def tagged(tag: str, text: str) -> str:
    return f".TP\n{tag}\n{text}\n"


# --- what the program says of itself -------------------------------------------------------------


def command_tree() -> TyperGroup:
    """The program, as Typer built it."""
    return get_command(build_app())


def context_of(command: Command, name: str, parent: typer.Context | None = None) -> typer.Context:
    """A context in which ``command`` knows its help option."""
    return typer.Context(command, info_name=name, parent=parent, **command.context_settings)


def options_of(context: typer.Context) -> list[TyperOption]:
    """The options that help shows, by name."""
    parameters = context.command.get_params(context)
    options = [p for p in parameters if isinstance(p, TyperOption) and not p.hidden]
    return sorted(options, key=long_name)


def operands_of(context: typer.Context) -> list[TyperArgument]:
    """The operands that help shows, in their order."""
    parameters = context.command.get_params(context)
    return [p for p in parameters if isinstance(p, TyperArgument) and not p.hidden]


def long_name(option: TyperOption) -> str:
    return next(name for name in option.opts if name.startswith("--"))


def value_of(option: TyperOption, context: typer.Context) -> str:
    """What stands for the option's value: its choices, or a name."""
    if option.is_flag or option.count:
        return ""
    choices = option.type_descriptor.choices if option.type_descriptor.is_choice else None
    if choices:
        return " " + "|".join(bold(str(choice)) for choice in choices)
    kind = option.display_type(context).strip("<>")
    names = (option.metavar or _PLACEHOLDERS.get(kind, kind.upper())).split(" ")
    return " " + " ".join(italic(name) for name in names)


def default_of(option: TyperOption) -> str:
    """The default that the help text does not state itself; empty for what merely is not set."""
    if option.default is None or option.count:
        return ""
    if option.is_flag:
        names = option.opts if option.default else option.secondary_opts
        return names[0] if option.secondary_opts else ""
    default = option.default
    return f"{default:g}" if isinstance(default, float) else str(default)


def option_entry(option: TyperOption, context: typer.Context) -> str:
    """One option with its names, value, help and default."""
    value = value_of(option, context)
    names = [*sorted(option.opts, key=len), *option.secondary_opts]
    tag = ", ".join(bold(name) + value for name in names)
    help_text, _, stated = option.help.partition(" [default: ")
    stated, _, rest = stated.partition("]")
    text = help_text if help_text.endswith(".") else help_text + "."
    default = stated or default_of(option)
    if default:
        text += f" Default: {default}."
    return tagged(tag, prose(text + rest.removeprefix(".")))


def operand(argument: TyperArgument) -> str:
    """An operand as the synopsis shows it."""
    name = (argument.metavar or argument.name.upper()).removesuffix("...").strip("[]")
    shown = italic(name) + ("..." if argument.nargs != 1 else "")
    return shown if argument.required else f"[{shown}]"


def first_sentence(command: Command) -> str:
    """The command in one line, as NAME shows it."""
    text = " ".join(command.help.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
    return text[0].lower() + text[1:]


# --- generated sections --------------------------------------------------------------------------


def program_sections(context: typer.Context) -> dict[str, str]:
    """What can be said of the program as a whole."""
    commands = context.command.commands
    synopsis = f"{bold('dpfit')} {italic('COMMAND')} [{italic('OPTION')}]... [{italic('OPERAND')}]"
    lines = [f"{synopsis}...", f"{bold('dpfit')} {bold('--version')} [{bold('--json')}]"]
    entries = (
        tagged(f".BR \\%dpfit\\-{escaped(name)} (1)", prose(command.help.split("\n\n")[0]))
        for name, command in commands.items()
        if not command.hidden
    )
    return {
        "NAME": f"dpfit \\- {prose(first_sentence(context.command))}\n",
        "SYNOPSIS": "\n.br\n".join(lines) + "\n",
        "COMMANDS": "".join(entries),
        "OPTIONS": options_text(context),
    }


def command_sections(context: typer.Context) -> dict[str, str]:
    """What can be said of one command."""
    name, command = context.info_name, context.command
    operands = [operand(argument) for argument in operands_of(context)]
    synopsis = " ".join([bold("dpfit"), bold(name), f"[{italic('OPTION')}]...", *operands])
    paragraphs = [prose(" ".join(part.split())) for part in command.help.split("\n\n")]
    return {
        "NAME": f"dpfit\\-{escaped(name)} \\- {prose(first_sentence(command))}\n",
        "SYNOPSIS": synopsis + "\n",
        "DESCRIPTION": "\n.PP\n".join(paragraphs) + "\n",
        "OPTIONS": options_text(context),
    }


def options_text(context: typer.Context) -> str:
    return "".join(option_entry(option, context) for option in options_of(context))


def exit_status_text() -> str:
    """Every member of the program's own enumeration, with the sentence written for it."""
    written = tomllib.loads((SECTIONS / "exit-status.toml").read_text(encoding="ascii"))
    entries = (tagged(bold(str(int(s))), prose(written.pop(s.name))) for s in ExitStatus)
    text = "".join(entries)
    if written:
        raise ValueError(f"exit-status.toml speaks of statuses that do not exist: {[*written]}")
    return text


def references(own: str, pages: list[tuple[str, int]]) -> str:
    others = [f".BR \\%{escaped(name)} ({section})" for name, section in pages if name != own]
    return " ,\n".join(others) + "\n"


# --- pages ---------------------------------------------------------------------------------------


def written_sections(name: str) -> dict[str, str]:
    """The hand-written sections of a page by heading; none if it has no file."""
    path = SECTIONS / f"{name}.roff"
    if not path.exists():
        return {}
    _, *parts = re.split(r"^\.SH ", path.read_text(encoding="ascii"), flags=re.MULTILINE)
    return {head.strip('"'): body for head, _, body in (part.partition("\n") for part in parts)}


def release_date() -> str:
    """The newest date in a heading of the changelog; the clock is never asked."""
    if not CHANGELOG.exists():
        return DATE_BEFORE_CHANGELOG
    headings = re.findall(r"^#+ .*$", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
    dates = re.findall(r"\b\d{4}-\d{2}-\d{2}\b", "\n".join(headings))
    return max(dates, default=DATE_BEFORE_CHANGELOG)


def assembled(name: str, section: int, parts: dict[str, str]) -> str:
    """A page with its parts in the customary order."""
    middle = [heading for heading in parts if heading not in _FIRST + _LAST]
    title = f'.TH {escaped(name.upper())} {section} {release_date()} "dpfit {__version__}"'
    lines = [f'{_GENERATED}{title} "{MANUALS[section]}"\n']
    for heading in (*_FIRST, *middle, *_LAST):
        if heading in parts:
            lines.append(f".SH {heading}\n{parts[heading]}")
    return "".join(lines)


def command_pages() -> Iterator[tuple[str, dict[str, str]]]:
    """Name and generated sections of the program's page and of each command's."""
    root = context_of(command_tree(), "dpfit")
    common = {
        "EXIT STATUS": exit_status_text(),
        "ENVIRONMENT": (SECTIONS / "environment.roff").read_text(encoding="ascii"),
    }
    yield "dpfit", common | program_sections(root)
    for name, command in root.command.commands.items():
        if not command.hidden:
            yield f"dpfit-{name}", common | command_sections(context_of(command, name, root))


def pages() -> dict[str, str]:
    """All pages by file name."""
    commands = dict(command_pages())
    written = [path.name.split(".") for path in sorted(SECTIONS.glob("*.[57].roff"))]
    others = sorted((int(section), name) for name, section, _ in written)
    every = [*((name, 1) for name in commands), *((name, section) for section, name in others)]
    result = {}
    for name, section in every:
        source = name if section == 1 else f"{name}.{section}"
        parts = commands.get(name, {}) | written_sections(source)
        parts["SEE ALSO"] = references(name, every)
        result[f"{name}.{section}"] = assembled(name, section, parts)
    return result


# --- completion files ----------------------------------------------------------------------------


def completions() -> dict[str, str]:
    """Typer's completion scripts by file name: they ask the program, so they hold no option."""
    return {
        f"completion/{file}": completion_script(shell) + "\n" for shell, file in COMPLETIONS.items()
    }


def completion_script(shell: str) -> str:
    """The script for a shell, fit to be installed as a file that the shell finds by itself."""
    script = get_completion_script(prog_name="dpfit", complete_var="_DPFIT_COMPLETE", shell=shell)
    if shell != "zsh":
        return script
    # zsh runs the whole file at the first Tab; that Tab must already get its answer.
    register = "compdef _dpfit_completion dpfit"
    if not script.endswith(register):
        raise ValueError("Typer's zsh script does not end by registering its function")
    return script.removesuffix(register) + (
        'if [[ "${zsh_eval_context[-1]}" == loadautofunc ]]; then\n'
        '  _dpfit_completion "$@"\n'
        f"else\n  {register}\nfi"
    )


def main(arguments: list[str]) -> int:
    """Write every file, or with ``--check`` name those that differ."""
    wanted = pages() | completions()
    present = {path.relative_to(HERE).as_posix() for path in HERE.glob("*.[157]")}
    stale = sorted(present - wanted.keys())
    for name, text in wanted.items():
        path = HERE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if arguments != ["--check"]:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if arguments != ["--check"]:
        for name in present - wanted.keys():
            (HERE / name).unlink()
        return 0
    for name in stale:
        sys.stderr.write(f"man/{name} is out of date: run python man/generate.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
