"""Wording of what people read: numbers with their nouns, names that were meant, errors with what to do about them."""

from __future__ import annotations

import errno
from collections.abc import Collection

from .system_calls import descriptor_limit


def plural(number: int, noun: str, several: str | None = None) -> str:
    """The noun as it stands behind this number: ``record`` behind 1, else ``records``, or ``several`` where given."""
    return noun if number == 1 else several or f"{noun}s"


def counted(number: int, noun: str, several: str | None = None) -> str:
    """The number with its noun: ``1 member``, ``2 members``."""
    return f"{number} {plural(number, noun, several)}"


def explained(error: Exception) -> str:
    """The error in words; where the process or the system is out of descriptors, the limit to raise."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"{error.strerror}: this process may have {descriptor_limit()} open; raise its limit (ulimit -n)"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return f"{error.strerror}: raise the system's limit (sysctl fs.file-max)"
    return str(error)


def how_to_install(extra: str) -> str:
    """What brings an optional part of the package. It is on no index, so that its name alone installs nothing."""
    return f"pip install '.[{extra}]' in a checkout of Ottla, or 'WHEEL[{extra}]' with the file of a wheel"


def meant(name: str, known: Collection[str]) -> str:
    """The end of a mistake's line: which of the known names it may be."""
    import difflib  # rarely needed, and by commands that start quickly

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def shortened(text: str, most: int = 300) -> str:
    """A text of a client as a line of a log has it: of a long one the beginning, and how much more there was."""
    return text if len(text) <= most else f"{text[:most]}… ({counted(len(text) - most, 'more character')})"
