"""Configs of one group, the resource type GROUP: declarations, validation, and the times that follow from them.

Only a KRaft quorum keeps such configs (KIP-848, KIP-932, KIP-1071). A group's config has the value that is set on the group, else
that of the broker's property with the same name after ``group.``, else Kafka's default. A value that is set has to be within the
broker's bounds. Where a broker has other bounds than the controller that took the value, the nearest that it allows is in force.

Streams groups are not served, and a broker has no settings of them. Their configs are kept and checked by Kafka's defaults,
because tools may set them, and other brokers of the cluster may use them.

Source: Kafka's GroupConfig and GroupConfigManager. ``consumer.assignment.interval.ms`` is checked only where it is set.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..base.settings import ConfigValueType, Setting, SettingError
from ..metadata.published import PublishedMetadata
from ..security.entities import GROUPS, Entity
from .consumer_group_settings import ConsumerGroupSettings
from .group_times import GroupTimes, GroupTimeSettings
from .share_group_settings import ShareGroupSettings
from .share_record_settings import ShareRecordSettings

logger = logging.getLogger(__name__)

CONSUMER_SESSION, CONSUMER_HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
CONSUMER_ASSIGNMENT = "consumer.assignment.interval.ms"
SHARE_SESSION, SHARE_HEARTBEAT = "share.session.timeout.ms", "share.heartbeat.interval.ms"
SHARE_ASSIGNMENT = "share.assignment.interval.ms"
_RESET = "share.auto.offset.reset"
_DURATION = re.compile(
    r"by_duration:(?i:(?P<sign>[+-]?)P((?P<days>[+-]?\d+)D)?"
    r"(?P<time>T((?P<hours>[+-]?\d+)H)?((?P<minutes>[+-]?\d+)M)?((?P<seconds>[+-]?\d+([.,]\d{0,9})?)S)?)?)",
    re.ASCII,
)
_UNITS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
"""How many seconds each has."""


def _setting(
    name: str,
    kind: ConfigValueType,
    default: object,
    doc: str,
    at_least: int | None = None,
    choices: tuple[str, ...] | None = None,
    check: Callable[[str], str | None] | None = None,
) -> Setting:
    return Setting(name, None, default, kind, at_least, None, choices, check, (), doc)


def _reset_fault(value: str) -> str | None:
    """Why a share group cannot begin there; None where it can."""
    if value in ("earliest", "latest") or duration_of(value) is not None:
        return None
    return (
        f"Invalid value `{value}` for configuration {_RESET}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'."
    )


def duration_of(value: str) -> float | None:
    """The seconds of ``by_duration:`` and a duration as Java's has it in ISO 8601, with days but without months; None for others.

    Nothing negative is one.
    """
    found = _DURATION.fullmatch(value)
    if found is None or found["time"] in ("T", "t"):
        return None
    parts = [(float(found[name].replace(",", ".")), seconds) for name, seconds in _UNITS.items() if found[name]]
    total = sum(number * seconds for number, seconds in parts) * (-1 if found["sign"] == "-" else 1)
    return total if parts and 0 <= total < 1 << 63 else None


_KEPT = "How long a member is kept without a heartbeat."
_BEATS = "How often members send heartbeats."
_APART = "How long after one assignment the next is made, at least."
GROUP_SETTINGS = {
    each.name: each
    for each in (
        _setting(CONSUMER_SESSION, ConfigValueType.INT, 45_000, _KEPT, 1),
        _setting(CONSUMER_HEARTBEAT, ConfigValueType.INT, 5_000, _BEATS, 1),
        _setting(CONSUMER_ASSIGNMENT, ConfigValueType.INT, 1_000, _APART, 0),
        _setting(SHARE_SESSION, ConfigValueType.INT, 45_000, _KEPT, 1),
        _setting(SHARE_HEARTBEAT, ConfigValueType.INT, 5_000, _BEATS, 1),
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
            _RESET,
            ConfigValueType.STRING,
            "latest",
            "Where a group without an offset begins: earliest, latest, or by_duration: and a duration.",
            check=_reset_fault,
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
        _setting(SHARE_ASSIGNMENT, ConfigValueType.INT, 1_000, _APART, 0),
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
_WITHOUT_PROPERTY = (_RESET, "share.isolation.level", "share.renew.acknowledge.enable")


class _Bounds(NamedTuple):
    """Of a config: the lowest and the highest value, and the property that has them, after its kind of group and min or max."""

    lowest: int | None
    highest: int
    name: str

    def nearest(self, value: int) -> int:
        """The value where it is allowed, else the one that comes nearest."""
        return min(value if self.lowest is None else max(value, self.lowest), self.highest)


_FIXED_BOUNDS = {
    "streams.heartbeat.interval.ms": _Bounds(5_000, 15_000, "heartbeat.interval.ms"),
    "streams.session.timeout.ms": _Bounds(45_000, 60_000, "session.timeout.ms"),
    "streams.num.standby.replicas": _Bounds(None, 2, "standby.replicas"),
    "streams.assignment.interval.ms": _Bounds(0, 15_000, "assignment.interval.ms"),
}
"""In the order in which they are checked, after those of members."""
_KINDS = ("consumer", "share", "streams")


def broker_property(name: str) -> str | None:
    """The property of a broker that has the default of a group's config; None where there is no such property."""
    return None if name in _WITHOUT_PROPERTY else f"group.{name}"


def check_group_configs(config: Config, configs: Mapping[str, str]) -> None:
    """Check all configs of a group by the settings of a node. Raises KafkaError INVALID_CONFIG."""
    consumer, share = config.settings(ConsumerGroupSettings), config.settings(ShareGroupSettings)
    for name in configs:
        if name not in GROUP_SETTINGS:
            raise _invalid(f"Unknown group config name: {name}")
    values = {name: setting.default for name, setting in GROUP_SETTINGS.items()}
    values[CONSUMER_SESSION], values[CONSUMER_HEARTBEAT], _ = consumer.times()
    values[SHARE_SESSION], values[SHARE_HEARTBEAT], _ = share.times()
    for name, setting in GROUP_SETTINGS.items():
        if name in configs:
            try:
                values[name] = setting.parse(configs[name])
            except SettingError as error:
                raise _invalid(str(error)) from None
    records = _record_bounds(config.settings(ShareRecordSettings))
    for name, bounds in {**_bounds(consumer), **_bounds(share), **records, **_FIXED_BOUNDS}.items():
        if name in configs:
            _check_bounds(name, values[name], bounds)
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise _invalid(f"{session} must be greater than {heartbeat}")


def times_of_group(settings: GroupTimeSettings, overrides: Mapping[str, str]) -> GroupTimes:
    """The times of a group with these configs of its own, each within the bounds of ``settings``.

    A value that is no number is passed over: the controller of another program may have let it in.
    """
    times = settings.times()
    if not overrides:
        return times
    heartbeat, session, assignment = _bounds(settings).items()
    return GroupTimes(
        _own(overrides, *session, times.session_timeout_ms),
        _own(overrides, *heartbeat, times.heartbeat_interval_ms),
        _own(overrides, *assignment, times.assignment_interval_ms),
    )


def group_times(
    config: Config, metadata: PublishedMetadata, kind: type[GroupTimeSettings]
) -> Callable[[str], GroupTimes]:
    """Takes a group's id, and returns its times by the configuration and the metadata of that moment."""

    def times(group_id: str) -> GroupTimes:
        overrides = metadata.image.configs.get(Entity(GROUPS, group_id), {})
        return times_of_group(config.settings(kind), overrides)

    return times


def within_bounds(config: Config, properties: Mapping[str, str]) -> dict[str, str]:
    """Properties that are set on brokers at run time, with the assignment intervals within the bounds of this one.

    Only what is stored can be outside of them: a change that is asked for is refused. Source: Kafka's
    GroupCoordinatorConfig, ``clampDynamicConfigs``.
    """
    clamped = dict(properties)
    for settings in (config.settings(ConsumerGroupSettings), config.settings(ShareGroupSettings)):
        name = f"{settings.kind}.assignment.interval.ms"
        brokers = f"group.{name}"
        text = properties.get(brokers)
        value = None if text is None else _number(name, text)
        if value is not None:
            used = _bounds(settings)[name].nearest(value)
            if used != value:
                logger.warning("%s is set to %d, but this broker allows no other than %d", brokers, value, used)
                clamped[brokers] = str(used)
    return clamped


def _record_bounds(settings: ShareRecordSettings) -> dict[str, _Bounds]:
    """Of the configs of share groups that are about records."""
    return {
        "share.record.lock.duration.ms": _Bounds(
            settings.min_record_lock_duration_ms, settings.max_record_lock_duration_ms, "record.lock.duration.ms"
        ),
        "share.delivery.count.limit": _Bounds(
            settings.min_delivery_count_limit, settings.max_delivery_count_limit, "delivery.count.limit"
        ),
        "share.partition.max.record.locks": _Bounds(
            settings.min_partition_max_record_locks,
            settings.max_partition_max_record_locks,
            "partition.max.record.locks",
        ),
    }


def _bounds(settings: GroupTimeSettings) -> dict[str, _Bounds]:
    """Of the heartbeat interval, the session timeout and the assignment interval, by the names of a group's configs."""
    kind = settings.kind
    return {
        f"{kind}.heartbeat.interval.ms": _Bounds(
            settings.min_heartbeat_interval_ms, settings.max_heartbeat_interval_ms, "heartbeat.interval.ms"
        ),
        f"{kind}.session.timeout.ms": _Bounds(
            settings.min_session_timeout_ms, settings.max_session_timeout_ms, "session.timeout.ms"
        ),
        f"{kind}.assignment.interval.ms": _Bounds(
            settings.min_assignment_interval_ms, settings.max_assignment_interval_ms, "assignment.interval.ms"
        ),
    }


def _check_bounds(name: str, value: int, bounds: _Bounds) -> None:
    """Raises KafkaError INVALID_CONFIG."""
    kind = name.partition(".")[0]
    if bounds.lowest is not None and value < bounds.lowest:
        raise _invalid(f"{name} must be greater than or equal to group.{kind}.min.{bounds.name}")
    if value > bounds.highest:
        raise _invalid(f"{name} must be less than or equal to group.{kind}.max.{bounds.name}")


def _own(overrides: Mapping[str, str], name: str, bounds: _Bounds, default: int) -> int:
    """The value of a group's own config, or the default."""
    value = _number(name, overrides[name]) if name in overrides else None
    return default if value is None else bounds.nearest(value)


def _number(name: str, text: str) -> int | None:
    try:
        return int(GROUP_SETTINGS[name].parse(text))
    except SettingError:
        return None


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, why)
