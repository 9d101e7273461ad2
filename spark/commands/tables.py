"""Prints rows: as a table on a terminal, as lines with tabs between the fields to a pipe or file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header."""
    head = [name.replace("_", " ").upper() for name in names]
    if not sys.stdout.isatty():
        for row in (head, *rows):
            typer.echo("\t".join(map(_text, row)))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, name in enumerate(head):
        is_number = all(isinstance(row[index], int) for row in rows)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    Console(highlight=False, markup=False, emoji=False).print(table)


def _text(value: Any) -> str:
    return "-" if value == "" else str(value)
