"""Settings of consumer groups of KIP-848: ``group.consumer.*``, under Kafka's names."""

from __future__ import annotations

from typing import ClassVar

from ..base.settings import setting
from .group_times import GroupTimeSettings

ASSIGNORS = ("uniform", "range")
POLICIES = ("bidirectional", "disabled", "downgrade", "upgrade")


def _is_policy(value: str) -> str | None:
    # Kafka takes it in any case.
    return None if value.lower() in POLICIES else f"String must be one of (case insensitive): {', '.join(POLICIES)}"


class ConsumerGroupSettings(GroupTimeSettings):
    """Consumer groups of KIP-848."""

    kind: ClassVar[str] = "consumer"
    session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        default=45_000,
        at_least=1,
        doc="Time without a heartbeat after which a member of a consumer group (KIP-848) is removed.",
    )
    min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms",
        default=45_000,
        at_least=1,
        doc="Shortest session timeout that may be set for a consumer group.",
    )
    max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms",
        default=60_000,
        at_least=1,
        doc="Longest session timeout that may be set for a consumer group.",
    )
    heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        default=5000,
        at_least=1,
        doc="Heartbeat interval of members of a consumer group.",
    )
    min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        default=5000,
        at_least=1,
        doc="Shortest heartbeat interval that may be set for a consumer group.",
    )
    max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        default=15_000,
        at_least=1,
        doc="Longest heartbeat interval that may be set for a consumer group.",
    )
    max_size: int = setting(
        "group.consumer.max.size", default=(1 << 31) - 1, at_least=1, doc="Most members of a consumer group."
    )
    assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        default=ASSIGNORS,
        choices=ASSIGNORS,
        doc="The assignors that members may choose. The first is the default.",
    )
    migration_policy: str = setting(
        "group.consumer.migration.policy",
        default="bidirectional",
        check=_is_policy,
        doc="Changes of the protocol of groups with members: bidirectional, upgrade (to the consumer protocol), "
        "downgrade (to the classic protocol) or disabled.",
    )
    assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms",
        default=1000,
        at_least=0,
        dynamic=True,
        doc="Shortest time between two assignments of a consumer group. Joins in this time share one assignment.",
    )
    min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms",
        default=0,
        at_least=0,
        doc="Shortest time between assignments that may be set for a consumer group.",
    )
    max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms",
        default=15_000,
        at_least=0,
        doc="Longest time between assignments that may be set for a consumer group.",
    )
    regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms",
        default=600_000,
        at_least=10_000,
        doc="Interval at which the topics of a regular expression are resolved again, if no topic was created.",
    )

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group with members becomes a consumer group."""
        return self.migration_policy.lower() in ("bidirectional", "upgrade")

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group that has classic members alone becomes a classic group."""
        return self.migration_policy.lower() in ("bidirectional", "downgrade")

    @property
    def allows_classic_members(self) -> bool:
        """Whether members of the classic protocol join a consumer group that has members."""
        return self.migration_policy.lower() != "disabled"
