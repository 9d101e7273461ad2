"""Plain tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be, the first and the last to the left, numbers between them to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def cell(text: str, column: int) -> str:
        is_number = text.replace(".", "", 1).isdigit()
        return text.rjust(widths[column]) if is_number else text.ljust(widths[column])

    return "\n".join("  ".join(cell(text, column) for column, text in enumerate(line)).rstrip() for line in lines)


def minutes(seconds: float) -> str:
    """Minutes with one digit behind the point."""
    return f"{seconds / 60:.1f}"
