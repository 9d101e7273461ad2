"""Validation of the configs of a group, names and values (KIP-848, KIP-932, KIP-1071; pure functions).

Source: Kafka's GroupConfig. The bounds that a broker's file sets in Kafka have Kafka's defaults here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError
from ...base.settings import ConfigValueType, Setting, SettingError


class _Bounds(NamedTuple):
    """The property of a broker that has the bound, after its kind of group and ``min`` or ``max``; lowest and highest value."""

    name: str
    lowest: int | None
    highest: int


def _setting(
    name: str,
    kind: ConfigValueType,
    default: object,
    doc: str,
    at_least: int | None = None,
    choices: tuple[str, ...] | None = None,
) -> Setting:
    return Setting(name, None, default, kind, at_least, None, choices, None, (), doc)


_KEPT = "How long a member is kept without a heartbeat."
_BEATS = "How often members send heartbeats."
_APART = "How long after one assignment the next is made, at least."
GROUP_SETTINGS = {
    each.name: each
    for each in (
        _setting("consumer.session.timeout.ms", ConfigValueType.INT, 45_000, _KEPT, 1),
        _setting("consumer.heartbeat.interval.ms", ConfigValueType.INT, 5_000, _BEATS, 1),
        _setting("consumer.assignment.interval.ms", ConfigValueType.INT, 1_000, _APART, 0),
        _setting("share.session.timeout.ms", ConfigValueType.INT, 45_000, _KEPT, 1),
        _setting("share.heartbeat.interval.ms", ConfigValueType.INT, 5_000, _BEATS, 1),
        _setting(
            "share.record.lock.duration.ms",
            ConfigValueType.INT,
            30_000,
            "How long a record is a member's before it is given to another.",
            1_000,
        ),
        _setting("share.delivery.count.limit", ConfigValueType.INT, 5, "How often a record is delivered at most.", 2),
        _setting(
            "share.partition.max.record.locks",
            ConfigValueType.INT,
            2_000,
            "How many records of a partition are members' at a time.",
            100,
        ),
        _setting(
            "share.auto.offset.reset",
            ConfigValueType.STRING,
            "latest",
            "Where a group without an offset begins: earliest, latest, or by_duration: and a duration.",
        ),
        _setting(
            "share.isolation.level",
            ConfigValueType.STRING,
            "read_uncommitted",
            "Whether records of open and aborted transactions are delivered.",
            choices=("read_committed", "read_uncommitted"),
        ),
        _setting(
            "share.renew.acknowledge.enable",
            ConfigValueType.BOOLEAN,
            default=True,
            doc="Whether a member may keep a record for longer.",
        ),
        _setting("share.assignment.interval.ms", ConfigValueType.INT, 1_000, _APART, 0),
        _setting("streams.session.timeout.ms", ConfigValueType.INT, 45_000, _KEPT, 1),
        _setting("streams.heartbeat.interval.ms", ConfigValueType.INT, 5_000, _BEATS, 1),
        _setting("streams.num.standby.replicas", ConfigValueType.INT, 0, "How many standby replicas each task has.", 0),
        _setting(
            "streams.initial.rebalance.delay.ms",
            ConfigValueType.INT,
            3_000,
            "How long a new group waits for members before its first rebalance.",
            0,
        ),
        _setting("streams.assignment.interval.ms", ConfigValueType.INT, 1_000, _APART, 0),
    )
    if each.name is not None
}
"""All configs of a group, by name."""
_WITHOUT_PROPERTY = ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")
_BOUNDS = {
    "consumer.heartbeat.interval.ms": _Bounds("heartbeat.interval.ms", 5_000, 15_000),
    "consumer.session.timeout.ms": _Bounds("session.timeout.ms", 45_000, 60_000),
    "consumer.assignment.interval.ms": _Bounds("assignment.interval.ms", 0, 15_000),
    "share.heartbeat.interval.ms": _Bounds("heartbeat.interval.ms", 5_000, 15_000),
    "share.session.timeout.ms": _Bounds("session.timeout.ms", 45_000, 60_000),
    "share.record.lock.duration.ms": _Bounds("record.lock.duration.ms", 15_000, 60_000),
    "share.delivery.count.limit": _Bounds("delivery.count.limit", 2, 10),
    "share.partition.max.record.locks": _Bounds("partition.max.record.locks", 100, 4_000),
    "share.assignment.interval.ms": _Bounds("assignment.interval.ms", 0, 15_000),
    "streams.heartbeat.interval.ms": _Bounds("heartbeat.interval.ms", 5_000, 15_000),
    "streams.session.timeout.ms": _Bounds("session.timeout.ms", 45_000, 60_000),
    "streams.num.standby.replicas": _Bounds("standby.replicas", None, 2),
    "streams.assignment.interval.ms": _Bounds("assignment.interval.ms", 0, 15_000),
}
"""In the order in which they are checked."""
_KINDS = ("consumer", "share", "streams")
_RESETS = ("latest", "earliest")
_DURATION = "by_duration:"


def broker_property(name: str) -> str | None:
    """The property of a broker that has the default of a group's config; None where there is no such property."""
    return None if name in _WITHOUT_PROPERTY else f"group.{name}"


def check_group_configs(configs: Mapping[str, str]) -> None:
    """Check all configs of a group. Raises KafkaError INVALID_CONFIG."""
    for name in configs:
        if name not in GROUP_SETTINGS:
            raise _invalid(f"Unknown group config name: {name}")
    values = {name: setting.default for name, setting in GROUP_SETTINGS.items()}
    for name, text in configs.items():
        try:
            values[name] = GROUP_SETTINGS[name].parse(text)
        except SettingError as error:
            raise _invalid(str(error)) from None
    reset = values["share.auto.offset.reset"].lower()
    if reset not in _RESETS and not reset.startswith(_DURATION):
        raise _invalid(str(SettingError("share.auto.offset.reset", reset, "unknown strategy")))
    for name, bounds in _BOUNDS.items():
        kind = name.partition(".")[0]
        if bounds.lowest is not None and values[name] < bounds.lowest:
            raise _invalid(f"{name} must be greater than or equal to group.{kind}.min.{bounds.name}")
        if values[name] > bounds.highest:
            raise _invalid(f"{name} must be less than or equal to group.{kind}.max.{bounds.name}")
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise _invalid(f"{session} must be greater than {heartbeat}")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, why)
