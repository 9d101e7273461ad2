"""Wording of messages: numbers with their nouns, the name that was probably meant, errors with what to do about them."""

from __future__ import annotations

import errno
from collections.abc import Collection

from .system_calls import descriptor_limit


def plural(number: int, noun: str, several: str | None = None) -> str:
    """The noun for this number: ``record`` for 1, otherwise ``records``, or ``several`` where given."""
    return noun if number == 1 else several or f"{noun}s"


def counted(number: int, noun: str, several: str | None = None) -> str:
    """The number with its noun: ``1 member``, ``2 members``."""
    return f"{number} {plural(number, noun, several)}"


def explained(error: Exception) -> str:
    """The text of an error; where the process or the system is out of descriptors, with the limit to raise."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"{error.strerror}: this process may have {descriptor_limit()} open; raise its limit (ulimit -n)"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return f"{error.strerror}: raise the system's limit (sysctl fs.file-max)"
    return str(error)


def how_to_install(extra: str) -> str:
    """How to install an optional part of the package. Ottla is on no index, so its name alone installs nothing."""
    return f"pip install '.[{extra}]' in a checkout of Ottla, or 'WHEEL[{extra}]' with the file of a wheel"


def meant(name: str, known: Collection[str]) -> str:
    """The end of the error line for an unknown name: the known name that is most like it."""
    import difflib  # rarely needed, and by commands that start quickly

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def shortened(text: str, most: int = 300) -> str:
    """A client's text for a log line: the beginning of a long one, and how much more there was."""
    return text if len(text) <= most else f"{text[:most]}… ({counted(len(text) - most, 'more character')})"
