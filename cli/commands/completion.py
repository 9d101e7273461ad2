"""Shell completion of topic and group names, requested from the broker named on the command line.

Without a response, or without one in time, nothing is printed: a shell has no place for it during completion.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..tools.client import Admin

_LIMIT_S = 1.0


def topics(context: typer.Context, incomplete: str) -> list[str]:
    """Topics that begin so; internal ones only when an underscore is typed."""

    def names(admin: Admin) -> list[str]:
        return [topic["name"] for topic in admin.describe_topics() if incomplete or not topic["is_internal"]]

    return _beginning(incomplete, _asked(context, names))


def groups(context: typer.Context, incomplete: str) -> list[str]:
    """Groups that begin so."""
    return _beginning(incomplete, _asked(context, lambda admin: [group["group_id"] for group in admin.list_groups()]))


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _asked(context: typer.Context, names: Callable[[Admin], list[str]]) -> list[str]:
    with (
        contextlib.suppress(Exception),
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        contextlib.closing(_admin(context)) as admin,
    ):
        return names(admin)
    return []


def _admin(context: typer.Context) -> Admin:
    from ..tools import client

    config, properties = _option(context, "command_config"), context.params.get("command_property")
    connection = client.ClusterConnection.of(
        _option(context, "bootstrap_server"), Path(config) if config else None, properties
    )
    return connection.admin(limit_s=_LIMIT_S)


def _option(context: typer.Context, name: str) -> Any:
    """As the command reads it: the value on its line, or in its variable, or its default."""
    if given := context.params.get(name):
        return given
    option = next(parameter for parameter in context.command.params if parameter.name == name)
    return option.value_from_envvar(context) or option.get_default(context)
