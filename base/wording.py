"""Wordings that messages of several layers share."""

from __future__ import annotations

from collections.abc import Collection


def plural(number: int, noun: str, several: str | None = None) -> str:
    """The noun as it stands behind this number: ``record`` behind 1, else ``records``, or ``several`` where given."""
    return noun if number == 1 else several or f"{noun}s"


def how_to_install(extra: str) -> str:
    """What brings an optional part of the package. It is on no index, so that its name alone installs nothing."""
    return f"pip install '.[{extra}]' in a checkout of Ottla, or 'WHEEL[{extra}]' with the file of a wheel"


def meant(name: str, known: Collection[str]) -> str:
    """The end of a mistake's line: which of the known names it may be."""
    import difflib  # rarely needed, and by commands that start quickly

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
