"""Settings of client quotas (measurement windows) and of connection rates."""

from __future__ import annotations

from ..base.settings import Settings, setting

_UNLIMITED = 2**31 - 1


class ClientQuotaSettings(Settings):
    """The time over which clients' rates are measured (KIP-13)."""

    quota_window_num: int = setting(
        "quota.window.num",
        default=11,
        at_least=1,
        doc="Number of windows over which clients' rates are averaged: bytes, time of requests, connections.",
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds",
        default=1,
        at_least=1,
        doc="The length of such a window in seconds; the throttle time for requests and connections is never longer.",
    )
    controller_quota_window_num: int = setting(
        "controller.quota.window.num",
        default=11,
        at_least=1,
        doc="Number of windows of controller_mutation_rate that a client may use at once.",
    )
    controller_quota_window_size_seconds: int = setting(
        "controller.quota.window.size.seconds",
        default=1,
        at_least=1,
        doc="The length of such a window in seconds.",
    )


class ConnectionRateSettings(Settings):
    """How fast connections may come (KIP-612)."""

    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate",
        default=_UNLIMITED,
        at_least=1,
        dynamic=True,
        doc="Most new connections per second of the broker, or of one listener with the prefix "
        "`listener.name.…`. Further ones wait. If there are several listeners, the one of "
        "inter.broker.listener.name does not count for the broker.",
    )
