"""Helpers for the wording of messages: plurals, lists, suggestions for misspelt names, errors with advice."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .system_calls import descriptor_limit

_MOST_COMPARED = 50
"""So many names are looked at closely."""


def plural(number: int, noun: str, several: str | None = None) -> str:
    """The noun for this number: ``record`` for 1, otherwise ``records``, or ``several`` where given."""
    return noun if number == 1 else several or f"{noun}s"


def counted(number: int, noun: str, several: str | None = None) -> str:
    """The number with its noun: ``1 member``, ``2 members``."""
    return f"{number} {plural(number, noun, several)}"


def listed(names: Sequence[str], most: int) -> str:
    """The first ``most`` names with commas between, and ``…`` behind them where there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def explained(error: Exception) -> str:
    """The text of an error; where the process or the system is out of descriptors, with the limit to raise."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"{error.strerror}: this process may have {descriptor_limit()} open; raise its limit (ulimit -n)"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return f"{error.strerror}: raise the system's limit (sysctl fs.file-max)"
    return str(error)


def how_to_install(extra: str, origin: Mapping[str, Any] | None = None) -> str:
    """The command that adds an optional part to this installation and leaves it of its kind: a checkout, a folder, a wheel.

    ``origin`` is what pip has written down (PEP 610), unless given. Ottla is on no index, so its name alone installs nothing.
    """
    from urllib.parse import unquote, urlsplit

    from .build_info import direct_url  # rarely needed, and by commands that start quickly

    origin = direct_url() if origin is None else origin
    url = origin.get("url", "")
    if not url:
        return f"pip install -e '.[{extra}]' in a checkout of Ottla, or 'WHEEL[{extra}]' with the file of a wheel"
    if "vcs_info" in origin:
        repository = origin["vcs_info"]
        what = f"ottla[{extra}] @ {repository['vcs']}+{url}@{repository['commit_id']}"
    elif url.startswith("file:"):
        what = f"{unquote(urlsplit(url).path)}[{extra}]"
    else:
        what = f"ottla[{extra}] @ {url}"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{shlex.quote(sys.executable)} -m pip install {editable}{shlex.quote(what)}"


def meant(name: str, known: Collection[str]) -> str:
    """The end of the error line for an unknown name: the known name that is most like it; empty where none is."""
    close = nearest(name, known)
    return "" if close is None else f"; did you mean {close}?"


def nearest(name: str, known: Collection[str], *, least: float = 0.6) -> str | None:
    """The known name that is most like another one, whatever the case of their letters; None if none is like it.

    ``least`` is difflib's ratio that counts as alike, from 0 to 1.

    difflib compares with a few candidates only, which have the most parts of two and three letters in common: of 10,000
    names it would take seconds.
    """
    import difflib  # rarely needed, and by commands that start quickly
    import heapq

    wanted = name.casefold()
    parts = {wanted[place : place + size] for size in (2, 3) for place in range(len(wanted) - size + 1)}

    def likeness(candidate: str) -> int:
        folded = candidate.casefold()
        return 2 * sum(part in folded for part in parts) - abs(len(folded) - len(wanted))

    candidates = heapq.nlargest(_MOST_COMPARED, known, key=likeness)
    by_folded = {candidate.casefold(): candidate for candidate in reversed(candidates)}
    close = difflib.get_close_matches(wanted, by_folded, n=1, cutoff=least)
    return by_folded[close[0]] if close else None


def shortened(text: str, most: int = 300) -> str:
    """A client's text for a log line: the beginning of a long one, and how much more there was."""
    return text if len(text) <= most else f"{text[:most]}… ({counted(len(text) - most, 'more character')})"
