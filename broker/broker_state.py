"""The states of a broker's lifecycle, numbered as in Kafka's ``BrokerLifecycleState``."""

from __future__ import annotations

import enum


class BrokerLifecycleState(enum.IntEnum):
    """Recovery (2) is a part of the start here, and no state of its own."""

    STARTING = 1
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7
