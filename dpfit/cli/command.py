"""Commands whose options are a dataclass: one place for options, environment and configuration.

Precedence: option, then environment ``DPFIT_<OPTION>``, then the configuration file, then default.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.models import OptionInfo

from dpfit.errors import UsageError
from dpfit.files.toml_document import read_toml
from dpfit.memory import LIBRARIES, require_memory

COMMANDS: Final = ("fit", "complete-matrix", "predict", "evaluate", "budget", "report", "audit")

Options = TypeVar("Options")


def register(
    app: typer.Typer, name: str, options: type[Options], body: Callable[[Options], None]
) -> None:
    """Add ``body`` to ``app`` as a command with the fields of ``options`` as its parameters.

    Parameters
    ----------
    app : typer.Typer
        The program.
    name : str
        Verb on the command line.
    options : dataclass type
        Fields annotated with ``typer.Option`` or ``typer.Argument``.
    body : callable
        Receives an instance of ``options``; its docstring is the help text.
    """

    def command(ctx: typer.Context, **values: Any) -> None:
        _refuse_empty(values)
        if values["print_config"]:
            typer.echo(_effective(ctx, values), nl=False)
            return
        if name != "budget":  # which needs no arrays
            require_memory(LIBRARIES)
        gc.freeze()
        gc.enable()
        body(options(**values))

    parameters = [_parameter("ctx", typer.Context), *_fields(options)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = body.__doc__
    app.command(name)(command)


def _parameter(name: str, annotation: object, default: object = inspect.Parameter.empty) -> Any:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _refuse_empty(values: dict[str, Any]) -> None:
    """An empty value is an unset shell variable; taking it for "not given" would drop a wish."""
    for name, value in values.items():
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            option = name.replace("_", "-")
            if part == "":
                raise UsageError(f"--{option} is empty", hint="is a shell variable not set?")
            if isinstance(part, str) and "\0" in part:
                raise UsageError(f"--{option} holds a NUL character")


def _fields(options: type[Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(options, include_extras=True)
    parameters = []
    by_name = {field.name: field for field in dataclasses.fields(options)}
    # A command's own options come first, then the shared groups in the order of its bases.
    own_first = [name for owner in options.__mro__ for name in inspect.get_annotations(owner)]
    for field in (by_name[name] for name in dict.fromkeys(own_first)):
        for extra in typing.get_args(hints[field.name])[1:]:
            if isinstance(extra, OptionInfo) and field.name != "print_config":
                extra.envvar = f"DPFIT_{field.name.upper()}"
                extra.show_envvar = False
        default = field.default
        if default is dataclasses.MISSING:
            default = inspect.Parameter.empty
        parameters.append(_parameter(field.name, hints[field.name], default))
    return parameters


def _load_configuration(ctx: typer.Context, value: str | None) -> str | None:
    if value is None:
        return None
    section = _section(value, str(ctx.info_name))
    known = {parameter.name for parameter in ctx.command.params} - {"config", "print_config"}
    defaults = {key.replace("-", "_"): entry for key, entry in section.items()}
    unknown = sorted(defaults.keys() - known)
    if unknown:
        option = unknown[0].replace("_", "-")
        raise UsageError(f"{value}: [{ctx.info_name}] has an unknown key {option}")
    ctx.default_map = defaults
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConfigurationOptions:
    """Where defaults come from."""

    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=_load_configuration,
            help="Take defaults for options from this TOML file, from the table named as the "
            "command. No folder is ever searched for one.",
        ),
    ] = None
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config", help="Print every option's value and where it came from, then end."
        ),
    ] = False


def _section(path: str, command: str) -> dict[str, Any]:
    document = read_toml(path)
    for key, table in document.items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {key} must stand in a table, such as [{command}]")
        if key not in COMMANDS:
            raise UsageError(f"{path}: [{key}] is the table of no command")
    section = document.get(command, {})
    assert isinstance(section, dict)
    return section


_SOURCES = {
    "COMMANDLINE": "option",
    "ENVIRONMENT": "environment",
    "DEFAULT_MAP": "configuration",
    "DEFAULT": "default",
}


def _effective(ctx: typer.Context, values: dict[str, Any]) -> str:
    lines = [f"[{ctx.info_name}]"]
    for name, value in values.items():
        if name in ("config", "print_config"):
            continue
        source = ctx.get_parameter_source(name)
        origin = _SOURCES.get(source.name if source else "DEFAULT", "default")
        key = name.replace("_", "-")
        unset = f"# {key} is not set"
        lines.append(unset if value is None else f"{key} = {_toml(value)}  # {origin}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
