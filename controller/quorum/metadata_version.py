"""The levels of ``metadata.version``, and the versions in which records are written at each (KIP-778).

Source: Kafka's MetadataVersion. A level says which records, and which of their fields, every node of the cluster reads.
"""

from __future__ import annotations

from ...metadata.types import FinalizedFeatures

FEATURE = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR = "eligible.leader.replicas.version"

LOWEST = 7
HIGHEST = 30

_RELEASES = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}
_WITH_OTHER_RECORDS = (7, 8, 11, 13, 14, 15, 17, 23, 30)
"""The levels that brought a new record, or a new field of one (``didMetadataChange``)."""
_MIGRATION = 8
_SCRAM = 11
_SAME_EPOCH_ON_SHRINK = 12
_TRANSACTIONS = 13
_TOKENS = 14
_CONTROLLER_REGISTRATION = 15
_DIRECTORIES = 17
_ELR = 23
_CORDONED_DIRECTORIES = 30


def release_of(level: int) -> str:
    """The release that brought a level: ``4.3-IV0``. Raises KeyError for one that is not supported."""
    return _RELEASES[level]


def level_of(release: str) -> int:
    """The level of ``4.3-IV0``, or the last one of ``4.3``, of which ``4.3.1`` is a part. Raises ValueError."""
    wanted = ".".join(release.split(".")[:2])
    found = [level for level, name in _RELEASES.items() if wanted == name or name.startswith(f"{wanted}-IV")]
    if not found:
        known = ", ".join(_RELEASES.values())
        raise ValueError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
    return found[-1]


def changes_records(lower: int, higher: int) -> bool:
    """Whether records at a level may have something that a lower one does not know."""
    return any(lower < level <= higher for level in _WITH_OTHER_RECORDS)


def finalized_level(features: FinalizedFeatures | None) -> int:
    """The level that a cluster has finalized; 0 while none is known."""
    return 0 if features is None else features.levels.get(FEATURE, 0)


def bumps_leader_epoch_on_shrink(level: int) -> bool:
    """Whether a leader begins another epoch when the ISR shrinks (KAFKA-15021)."""
    return level < _SAME_EPOCH_ON_SHRINK


def has_transactions(level: int) -> bool:
    """Whether records can be one transaction of the metadata log (KIP-868)."""
    return level >= _TRANSACTIONS


def has_scram(level: int) -> bool:
    return level >= _SCRAM


def has_tokens(level: int) -> bool:
    return level >= _TOKENS


def has_controller_registrations(level: int) -> bool:
    return level >= _CONTROLLER_REGISTRATION


def has_directories(level: int) -> bool:
    return level >= _DIRECTORIES


def has_cordoned_directories(level: int) -> bool:
    return level >= _CORDONED_DIRECTORIES


def broker_record_version(level: int) -> int:
    """Of RegisterBrokerRecord."""
    if level >= _CORDONED_DIRECTORIES:
        return 4
    if level >= _DIRECTORIES:
        return 3
    return 2 if level >= _MIGRATION else 1


def partition_record_version(level: int) -> int:
    """Of PartitionRecord and PartitionChangeRecord."""
    if level >= _ELR:
        return 2
    return 1 if level >= _DIRECTORIES else 0
