"""``inter.broker.protocol.version``: the request versions that brokers use among themselves without negotiation.

A controller and a follower do not negotiate, so all brokers of a cluster have the same one. Names are Kafka's
(``MetadataVersion`` of 3.9): a release stands for its last version, as "2.8" for "2.8-IV1". From 2.8 on a controller
names topics by their ids, by which replicas are known here; with an older one a broker does not start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_NAMES = (
    "2.8-IV1 3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 "
    "3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0"
).split()
LATEST = _NAMES[-1]
_OLDEST = _NAMES[0]
_RELEASE = re.compile(r"(\d+)\.(\d+)")

# The version from each name on (MetadataVersion).
_FETCH = {"2.8-IV1": 12, "3.1-IV0": 13, "3.5-IV0": 14, "3.5-IV1": 15, "3.7-IV4": 16, "3.9-IV0": 17}
_LIST_OFFSETS = {"2.8-IV1": 6, "3.0-IV1": 7, "3.5-IV0": 8, "3.9-IV0": 9}
_ALLOCATES_PRODUCER_IDS_FROM = "3.0-IV0"


class InterBrokerProtocol(NamedTuple):
    """Versions of a follower's requests."""

    name: str
    fetch: int
    list_offsets: int
    allocates_producer_ids: bool
    """Whether brokers ask the controller for producer ids (KIP-730); before, each takes a block itself."""

    def newest(self, versions: Mapping[str, int]) -> int:
        """The version that brokers with this protocol use, of those that began with the names given."""
        return _newest(versions, _NAMES.index(self.name))


def _newest(versions: Mapping[str, int], position: int) -> int:
    return max(version for first, version in versions.items() if _NAMES.index(first) <= position)


def _full_name(text: str) -> str:
    """As ``MetadataVersion.fromVersionString`` reads it: what comes after the second number does not count."""
    release = ".".join(text.split(".")[:2])
    versions = [name for name in _NAMES if name.partition("-")[0] == release]
    return versions[-1] if versions else release


def check_name(text: str) -> str | None:
    """Why a broker cannot start with this inter.broker.protocol.version; None when it can."""
    name = _full_name(text)
    if name in _NAMES:
        return None
    release = _RELEASE.match(name)
    if release is not None and (int(release[1]), int(release[2])) <= (2, 8):
        return f"Ottla can be in a cluster with brokers of {_OLDEST.partition('-')[0]} and newer only"
    return f"Version {text} is not a valid version; the newest is {LATEST}"


def inter_broker_protocol(text: str) -> InterBrokerProtocol:
    """What an inter.broker.protocol.version that ``check_name`` takes stands for."""
    name = _full_name(text)
    position = _NAMES.index(name)

    return InterBrokerProtocol(
        name,
        _newest(_FETCH, position),
        _newest(_LIST_OFFSETS, position),
        position >= _NAMES.index(_ALLOCATES_PRODUCER_IDS_FROM),
    )
