"""Output of rows and sizes: a table on a terminal, tab-separated lines without a header into a pipe, or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class OutputColumn(NamedTuple):
    """A column of a table, and a key of its JSON."""

    name: str
    """The key in JSON; in capitals, the head of the column on a terminal."""
    is_number: bool = False
    is_size: bool = False


Row = Sequence[Any]


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """One JSON document; indented, because jq does not mind and people do."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(columns: Sequence[OutputColumn], rows: Sequence[Row], *, as_json: bool = False) -> None:
    """All rows, in one of the three forms. A value that is not known is None, and shown as a dash."""
    if as_json:
        print_json([as_object(columns, row) for row in rows])
    elif is_terminal():
        _print_table(columns, rows)
    else:
        for row in rows:
            print("\t".join(text(value) for value in row))


def tell_of_execute() -> None:
    """Tell who sees what would be done, or has a script see it, that it is not; on the standard error."""
    sys.stdout.flush()
    print("Nothing is changed: --execute does it.", file=sys.stderr)


def as_object(columns: Sequence[OutputColumn], row: Row) -> dict[str, Any]:
    """A row as JSON has it."""
    return {column.name: value for column, value in zip(columns, row, strict=True)}


def text(value: Any) -> str:
    """A value as one field of a line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def size_text(size: int | None) -> str:
    """Bytes for people: 999 B, 1.2 KiB, 34.5 MiB."""
    if size is None:
        return "-"
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def _print_table(columns: Sequence[OutputColumn], rows: Sequence[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_right = column.is_number or column.is_size
        head = column.name.replace("_", " ").upper()
        table.add_column(head, justify="right" if is_right else "left", overflow="fold")
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(size_text(value) if column.is_size else text(value) for column, value in cells))
    console().print(table)


def console(file: TextIO | None = None) -> Console:
    """Where to print for people, by default standard output: what is printed is taken literally."""
    from rich.console import Console

    # NO_COLOR means no escapes at all here: a bold head is no more welcome in a recording.
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(file=file, highlight=False, markup=False, emoji=False, color_system=None if plain else "auto")


@contextmanager
def progress(label: str, total: int | None, *, is_wanted: bool = True) -> Iterator[Any]:
    """Call what this gives with the steps done so far; a bar on stderr, while that is a terminal and it is wanted."""
    if not is_wanted or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
