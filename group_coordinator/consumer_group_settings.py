"""Settings of consumer groups of KIP-848: ``group.consumer.*``, under Kafka's names.

No request has a session timeout or a heartbeat interval: these are the broker's, or a group's own (resource type GROUP). The
bounds are for the values of groups; the broker's own have to be within them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.settings import SettingError, Settings, setting

ASSIGNORS = ("uniform", "range")
POLICIES = ("bidirectional", "disabled", "downgrade", "upgrade")


class ConsumerGroupTimes(NamedTuple):
    """The times of one group, in ms: its own where they are set, else the broker's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def _is_policy(value: str) -> str | None:
    # Kafka takes it in any case.
    return None if value.lower() in POLICIES else f"String must be one of (case insensitive): {', '.join(POLICIES)}"


class ConsumerGroupSettings(Settings):
    """Consumer groups of KIP-848."""

    session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        default=45_000,
        at_least=1,
        doc="How long a member of a consumer group (KIP-848) may be silent before it is removed.",
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
        doc="How often members of a consumer group are to send a heartbeat.",
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
        "group.consumer.max.size", default=(1 << 31) - 1, at_least=1, doc="Most members a consumer group may have."
    )
    assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        default=ASSIGNORS,
        choices=ASSIGNORS,
        doc="The assignors that members may ask for; the first one is used where they ask for none.",
    )
    migration_policy: str = setting(
        "group.consumer.migration.policy",
        default="bidirectional",
        check=_is_policy,
        doc="Whether groups with members change between the classic and the consumer protocol: bidirectional, upgrade (to "
        "the consumer protocol), downgrade (to the classic one) or disabled.",
    )
    assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms",
        default=1000,
        at_least=0,
        dynamic=True,
        doc="Time from one assignment of a consumer group to the next, so that many joins make one.",
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
        doc="How often the topics of a regular expression are looked up again where no topic was made.",
    )

    def check_relations(self) -> None:
        """Bounds are in order, and values within them; members send a heartbeat before their session ends."""
        for kind in ("heartbeat_interval_ms", "session_timeout_ms", "assignment_interval_ms"):
            lowest, highest = f"min_{kind}", f"max_{kind}"
            self._check_order(lowest, highest)
            self._check_order(lowest, kind)
            self._check_order(kind, highest)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise self._misfit("heartbeat_interval_ms", "less than", "session_timeout_ms")

    def _check_order(self, lower: str, higher: str) -> None:
        if getattr(self, higher) < getattr(self, lower):
            if lower.startswith("min_"):
                raise self._misfit(higher, "greater than or equal to", lower)
            raise self._misfit(lower, "less than or equal to", higher)

    def _misfit(self, attribute: str, relation: str, other: str) -> SettingError:
        name, other_name = str(self.declared[attribute].name), str(self.declared[other].name)
        return SettingError(
            name, str(getattr(self, attribute)), f"must be {relation} {other_name}, which is {getattr(self, other)}"
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

    def times(self) -> ConsumerGroupTimes:
        """Those of a group that has none of its own."""
        return ConsumerGroupTimes(self.session_timeout_ms, self.heartbeat_interval_ms, self.assignment_interval_ms)
