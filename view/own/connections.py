"""The open connections as rows."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from ...broker.listeners.connection import ClientConnection
from ..pace import Pace
from ..rows import ConnectionRow

_LONGEST_TEXT = 200


async def connection_rows(connections: Iterable[ClientConnection], pace: Pace) -> list[ConnectionRow]:
    """In the order in which they were accepted."""
    rows = []
    for connection in connections:
        now = trio.current_time()
        context, call = connection.context, connection.call
        rows.append(
            ConnectionRow(
                context.peer,
                context.listener,
                context.security_protocol,
                str(context.principal),
                call.client_id[:_LONGEST_TEXT],
                call.client_software_name[:_LONGEST_TEXT],
                call.client_software_version[:_LONGEST_TEXT],
                int((now - connection.opened_at) * 1000),
                int((now - connection.last_active) * 1000),
                connection.busy,
            )
        )
        if pace.is_due():
            await pace.rest()
    return sorted(rows, key=lambda row: -row.age_ms)
