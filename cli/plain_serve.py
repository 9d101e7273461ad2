"""``ottla serve --name value …``: parsing without typer, whose import takes a sixth of a broker's start.

Only what is spelt out is read here: everything else (help, completion, abbreviations, mistakes) is left to typer and to the
declaration in ``app``, of which ``VALUES`` repeats the names.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

VALUES: dict[str, type] = {
    "listen": str,
    "advertise": str,
    "data_dir": Path,
    "config": Path,
    "override": list,
    "brokers": str,
    "metrics": str,
    "console": str,
    "console_allow_writes": bool,
    "zookeeper": str,
    "node": int,
    "cluster": str,
    "cluster_secret_file": Path,
    "log_level": str,
    "log_format": str,
    "trace": str,
}


def read(argv: Sequence[str]) -> dict[str, Any] | None:
    """The options given, by parameter of ``app.serve``; None when typer is to read the command line."""
    if list(argv[:1]) != ["serve"]:
        return None
    given: dict[str, Any] = {}
    words = iter(argv[1:])
    for word in words:
        name, has_value, value = word.removeprefix("--").partition("=")
        parameter = name.replace("-", "_")
        if not word.startswith("--") or "_" in name or parameter not in VALUES:
            return None
        kind = VALUES[parameter]
        if kind is bool:
            if has_value:
                return None
            given[parameter] = True
            continue
        if not has_value:
            value = next(words, "-")
            if value.startswith("-"):
                return None
        if kind is list:
            given.setdefault(parameter, []).append(value)
        elif kind is int and not value.isdecimal():
            return None
        else:
            given[parameter] = kind(value)
    return given


def run(**options: Any) -> NoReturn:
    """Run a broker, or several, to the end with these of ``read``'s options."""
    if options.get("brokers") is not None:
        from . import many_brokers

        sys.exit(many_brokers.run(**options))
    options.pop("brokers", None)
    gc.disable()  # most of a start is imports, whose objects live to the end: collecting among them is lost time
    from .serve import run

    sys.exit(run(**options))
