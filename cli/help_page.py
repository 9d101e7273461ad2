"""``python -m ottla.cli.help_page`` prints the reference page of every command, read from the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

from .app import app

_HEAD = """\
# Command reference

Every command of `ottla` with its options, as `--help` prints them. `make docs` generates this page from the source, and a test
compares it with the source and the commands. [The command line](command-line.md) shows the commands in use.
"""

_CODE = re.compile(r"'(ottla[^']*)'|(?<![^ ])(--?[a-z][a-z-]*|\w*_\w*)(?![^ ,.;:)])")


class Declared(NamedTuple):
    """A command or a group of commands: the words that call it, and click's object for it."""

    words: tuple[str, ...]
    command: Any

    @property
    def is_group(self) -> bool:
        return hasattr(self.command, "list_commands")


def commands() -> list[Declared]:
    """Every command and every group, in the order of the help, a group before what is in it."""
    return list(_below((), typer.main.get_command(app)))


def _below(words: tuple[str, ...], group: Any) -> Iterator[Declared]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        declared = Declared((*words, name), group.get_command(context, name))
        yield declared
        if declared.is_group:
            yield from _below(declared.words, declared.command)


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join([_HEAD, *(line for declared in commands() for line in _section(declared))])


def _section(declared: Declared) -> Iterator[str]:
    yield f"{'#' * (len(declared.words) + 1)} ottla {' '.join(declared.words)}"
    yield ""
    for paragraph in declared.command.help.split("\n\n"):
        if paragraph.startswith("\b"):
            _, _, *examples = paragraph.splitlines()
            yield from ["```sh", *(example.strip() for example in examples), "```"]
        else:
            yield _prose(" ".join(paragraph.split()))
        yield ""
    shown = [parameter for parameter in declared.command.params if not parameter.hidden]
    if shown and not declared.is_group:
        yield from [*(f"- {_spelling(parameter)}: {' '.join(_meaning(parameter))}" for parameter in shown), ""]


def _spelling(parameter: Any) -> str:
    """How the option is written: its names, longest first, and what stands behind them."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    names = sorted(parameter.opts, key=len, reverse=True) + parameter.secondary_opts
    metavar = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return ", ".join(f"`{name}{metavar}`" for name in names)


def _meaning(parameter: Any) -> Iterator[str]:
    yield _prose(parameter.help)
    if parameter.required:
        yield "*Required.*"
    elif parameter.default not in (None, "", False, True):
        yield f"Default: `{parameter.default}`."
    if parameter.envvar:
        yield f"Environment: `{parameter.envvar}`."


def _prose(text: str) -> str:
    """Text of a help as Markdown: commands, options and names with an underscore are code."""
    marked = _CODE.sub(lambda found: f"`{found[1] or found[2]}`", text)
    return marked.replace("*", r"\*").replace("<", "&lt;")


if __name__ == "__main__":
    print(page(), end="")
