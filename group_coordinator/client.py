"""The client behind a request of a group member, as the rules of groups need to know it."""

from __future__ import annotations

import dataclasses

MEMBER_ID_REQUIRED_FROM = 4
"""Version of JoinGroup from which a new dynamic member is sent back with an id to join with (KIP-394)."""


@dataclasses.dataclass(slots=True, frozen=True)
class Client:
    """The client that sent a request, and the version of the API that it uses."""

    client_id: str
    host: str
    version: int
