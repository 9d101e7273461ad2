"""Settings of client quotas (measurement windows) and of connection rates."""

from __future__ import annotations

from ..base.settings import Settings, setting

_UNLIMITED = 2**31 - 1


class ClientQuotaSettings(Settings):
    """Quotas of clients (KIP-13): over which time a rate is measured."""

    quota_window_num: int = setting(
        "quota.window.num",
        default=11,
        at_least=1,
        doc="Over how many windows the rates of clients are averaged: bytes, time of requests, and connections.",
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
        doc="How many windows of a client's controller_mutation_rate may be used up at once.",
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
        doc="Connections a second that the broker accepts, or one of its listeners with the prefix `listener.name.…`; further "
        "ones wait. Those of inter.broker.listener.name, where it is not the only listener, don't count for the broker.",
    )
