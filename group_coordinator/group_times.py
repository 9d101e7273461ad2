"""Times of the members of groups whose partitions the coordinator assigns, and the relations between the settings of them.

No request has a session timeout or a heartbeat interval: these are the broker's, or a group's own (resource type GROUP).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from .ordered_settings import OrderedSettings

_KINDS = ("heartbeat_interval_ms", "session_timeout_ms", "assignment_interval_ms")


class GroupTimes(NamedTuple):
    """The times of one group, in ms: its own where they are set, else the broker's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupTimeSettings(OrderedSettings):
    """The settings of one kind of group. The bounds are for the values of groups; the broker's own have to be within them."""

    kind: ClassVar[str]
    """The first part of the names of a group's configs."""
    session_timeout_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    heartbeat_interval_ms: int
    min_heartbeat_interval_ms: int
    max_heartbeat_interval_ms: int
    assignment_interval_ms: int
    min_assignment_interval_ms: int
    max_assignment_interval_ms: int

    def check_relations(self) -> None:
        """Bounds are in order, and values within them; members send a heartbeat before their session ends."""
        for kind in _KINDS:
            lowest, highest = f"min_{kind}", f"max_{kind}"
            self.check_order(lowest, highest)
            self.check_order(lowest, kind)
            self.check_order(kind, highest)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise self.misfit("heartbeat_interval_ms", "less than", "session_timeout_ms")

    def times(self) -> GroupTimes:
        """Those of a group that has none of its own."""
        return GroupTimes(self.session_timeout_ms, self.heartbeat_interval_ms, self.assignment_interval_ms)
