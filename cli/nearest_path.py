"""The nearest existing path to one that does not exist, for errors about files and folders."""

from __future__ import annotations

from pathlib import Path

from ..base.wording import nearest


def meant_path(path: Path) -> str:
    """The end of the error line about a path that is not there; empty where it is, or nothing is like it.

    The first part of the path that is not there is compared with what stands in its place.
    """
    missing = path
    while not missing.exists() and missing.parent != missing and not missing.parent.is_dir():
        missing = missing.parent
    if missing.exists() or not missing.parent.is_dir():
        return ""
    try:
        close = nearest(missing.name, [each.name for each in missing.parent.iterdir()])
    except OSError:
        return ""
    return "" if close is None else f"; did you mean {missing.parent / close}?"
