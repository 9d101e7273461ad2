"""The open connections grouped by application: client id, host, software and principal.

A client has several connections of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import trio

from ...broker.listeners.connection import ClientConnection
from ..inside_rows import ApplicationRow
from ..pace import Pace
from .activity import client_row

_VERSION = re.compile(r"\d+(?:\.\d+)?")
UNNAMED = "unknown"
OLD = {
    "apache-kafka-java": (3, 0),  # of September 2021
    "librdkafka": (2, 0),  # of January 2023
    "confluent-kafka-python": (2, 0),
    "kafka-python": (2, 1),  # of March 2025; 2.0 is of 2020
}
"""By the name that a client gives itself: the first version that is not called old. All of these still work."""


def why_old(software: str, version: str) -> str:
    """Why a client is called old, in a sentence; empty where it is not, or nothing is known."""
    oldest = OLD.get(software)
    found = _VERSION.match(version)
    if oldest is None or found is None:
        return ""
    numbers = tuple(int(number) for number in found.group().split("."))
    return "" if numbers >= oldest else f"Versions of {software} before {oldest[0]}.{oldest[1]} are some years old."


async def application_rows(connections: Iterable[ClientConnection], pace: Pace) -> list[ApplicationRow]:
    """One row for the connections that have client id, host, software and principal in common."""
    found: dict[tuple[str, str, str, str, str], list[ClientConnection]] = {}
    for connection in connections:
        client = client_row(connection)
        key = client.client_id, client.host, client.software, client.software_version, client.principal
        found.setdefault(key, []).append(connection)
        if pace.is_due(2):
            await pace.rest()
    rows = []
    now = trio.current_time()
    for key, of_client in found.items():
        rows.append(
            ApplicationRow(
                *key,
                len(of_client),
                sum(connection.busy for connection in of_client),
                int((now - min(connection.opened_at for connection in of_client)) * 1000),
                int((now - max(connection.last_active for connection in of_client)) * 1000),
                why_old(key[2], key[3]),
            )
        )
        if pace.is_due(1 + len(of_client)):
            await pace.rest()
    return rows
