"""Settings of share groups (KIP-932) in the group coordinator: ``group.share.*``, under Kafka's names."""

from __future__ import annotations

from typing import ClassVar

from ..base.settings import setting
from .group_times import GroupTimeSettings

ASSIGNORS = ("simple",)


def _is_one_assignor(value: tuple[str, ...]) -> str | None:
    return None if len(value) == 1 else f"must contain exactly one assignor, but found {len(value)}"


class ShareGroupSettings(GroupTimeSettings):
    """Members of share groups, and the assignment of their partitions."""

    kind: ClassVar[str] = "share"
    session_timeout_ms: int = setting(
        "group.share.session.timeout.ms",
        default=45_000,
        at_least=1,
        doc="Time without a heartbeat after which a member of a share group (KIP-932) is removed.",
    )
    min_session_timeout_ms: int = setting(
        "group.share.min.session.timeout.ms",
        default=45_000,
        at_least=1,
        doc="Shortest session timeout that may be set for a share group.",
    )
    max_session_timeout_ms: int = setting(
        "group.share.max.session.timeout.ms",
        default=60_000,
        at_least=1,
        doc="Longest session timeout that may be set for a share group.",
    )
    heartbeat_interval_ms: int = setting(
        "group.share.heartbeat.interval.ms",
        default=5000,
        at_least=1,
        doc="Heartbeat interval of members of a share group.",
    )
    min_heartbeat_interval_ms: int = setting(
        "group.share.min.heartbeat.interval.ms",
        default=5000,
        at_least=1,
        doc="Shortest heartbeat interval that may be set for a share group.",
    )
    max_heartbeat_interval_ms: int = setting(
        "group.share.max.heartbeat.interval.ms",
        default=15_000,
        at_least=1,
        doc="Longest heartbeat interval that may be set for a share group.",
    )
    max_size: int = setting(
        "group.share.max.size",
        default=200,
        at_least=1,
        at_most=1000,
        doc="Most members of a share group.",
    )
    max_share_sessions: int = setting(
        "group.share.max.share.sessions",
        default=2000,
        at_least=1,
        doc="Most members of share groups that fetch from a broker.",
    )
    assignors: tuple[str, ...] = setting(
        "group.share.assignors",
        default=ASSIGNORS,
        choices=ASSIGNORS,
        check=_is_one_assignor,
        doc="The assignor of share groups. Only one exists.",
    )
    assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms",
        default=1000,
        at_least=0,
        dynamic=True,
        doc="Shortest time between two assignments of a share group. Joins in this time share one assignment.",
    )
    min_assignment_interval_ms: int = setting(
        "group.share.min.assignment.interval.ms",
        default=0,
        at_least=0,
        doc="Shortest time between assignments that may be set for a share group.",
    )
    max_assignment_interval_ms: int = setting(
        "group.share.max.assignment.interval.ms",
        default=15_000,
        at_least=0,
        doc="Longest time between assignments that may be set for a share group.",
    )
    initialize_retry_interval_ms: int = setting(
        "group.share.initialize.retry.interval.ms",
        default=30_000,
        at_least=1,
        doc="Time to wait for the share coordinator to create the state of a partition, before the request is "
        "repeated.",
    )

    def check_relations(self) -> None:
        """As of all groups; and all members of a group can fetch from one broker."""
        super().check_relations()
        self.check_order("max_size", "max_share_sessions")
