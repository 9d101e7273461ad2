"""Settings of fetching and replication."""

from __future__ import annotations

from typing import Any

from ..base.settings import ConfigValueType, Settings, setting
from ..log.settings import LONG_MAX
from .inter_broker_protocol import LATEST, check_name
from .read_replica import LEADER_SELECTOR, RACK_AWARE_SELECTOR


def _check_selector(name: str) -> str | None:
    if name in (LEADER_SELECTOR, RACK_AWARE_SELECTOR):
        return None
    return f"classes cannot be loaded; there are {RACK_AWARE_SELECTOR} and {LEADER_SELECTOR}"


class ReplicationSettings(Settings):
    """Limits of Fetch, the ISR, and the protocol between brokers."""

    inter_broker_protocol_version: str = setting(
        "inter.broker.protocol.version",
        default=LATEST,
        check=check_name,
        doc="Version of the protocol between brokers, the same on all brokers of a cluster: 2.8 or newer.",
    )

    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        default=57671680,
        at_least=1024,
        doc="Most bytes of a Fetch response.",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        default=1000,
        at_least=0,
        doc="Fetch sessions kept at a time (KIP-227).",
    )
    replica_selector_class: str | None = setting(
        "replica.selector.class",
        default=None,
        kind=ConfigValueType.CLASS,
        check=_check_selector,
        doc="The replica that consumers read from (KIP-392). By default it is the leader; with "
        f"`{RACK_AWARE_SELECTOR}` it is an in-sync replica in the consumer's rack.",
    )
    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        default=30000,
        kind=ConfigValueType.LONG,
        doc="Time without catching up after which a follower leaves the ISR. It is checked twice in this time.",
    )
    num_replica_fetchers: int = setting(
        "num.replica.fetchers",
        default=1,
        at_least=1,
        dynamic=True,
        doc="Accepted without effect: a broker fetches from each leader in one task.",
    )
    replica_fetch_wait_max_ms: int = setting(
        "replica.fetch.wait.max.ms",
        default=500,
        at_least=0,
        doc="Longest time that a leader waits for records before it responds to a follower; less than "
        "replica.lag.time.max.ms.",
    )
    replica_fetch_min_bytes: int = setting(
        "replica.fetch.min.bytes",
        default=1,
        at_least=0,
        doc="Bytes that a leader collects before it responds to a follower.",
    )
    replica_fetch_max_bytes: int = setting(
        "replica.fetch.max.bytes",
        default=1 << 20,
        at_least=0,
        doc="Most bytes of one partition in a follower's fetch. The first batch may be larger.",
    )
    replica_fetch_response_max_bytes: int = setting(
        "replica.fetch.response.max.bytes",
        default=10 << 20,
        at_least=0,
        doc="Most bytes in a follower's fetch, over all partitions. The first batch may be larger.",
    )
    replica_fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms",
        default=1_000,
        at_least=0,
        doc="Pause of a follower after an error, before it fetches again from the partition or leader.",
    )
    replica_socket_timeout_ms: int = setting(
        "replica.socket.timeout.ms",
        default=30_000,
        at_least=1,
        doc="Time that a follower waits for its leader's response; at least replica.fetch.wait.max.ms.",
    )


def _rate(name: str, doc: str) -> Any:
    return setting(name, default=LONG_MAX, kind=ConfigValueType.LONG, at_least=0, dynamic=True, doc=doc)


def _window_num(name: str, of: str) -> Any:
    return setting(name, default=11, at_least=1, doc=f"Number of windows over which the rate of {of} is averaged.")


def _window_size(name: str) -> Any:
    return setting(name, default=1, at_least=1, doc="The length of such a window in seconds.")


class QuotaSettings(Settings):
    """Limits of replication traffic (KIP-73), in bytes per second."""

    leader_replication_throttled_rate: int = _rate(
        "leader.replication.throttled.rate",
        "Most bytes per second that this broker sends to followers of replicas in "
        "`leader.replication.throttled.replicas` of topics. In-sync replicas are exempt.",
    )
    follower_replication_throttled_rate: int = _rate(
        "follower.replication.throttled.rate",
        "Most bytes per second that this broker fetches for replicas in "
        "`follower.replication.throttled.replicas` of topics. In-sync replicas are exempt.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = _rate(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "Most bytes per second that this broker moves between its log directories.",
    )
    replication_quota_window_num: int = _window_num("replication.quota.window.num", "throttled replication")
    replication_quota_window_size_seconds: int = _window_size("replication.quota.window.size.seconds")
    alter_log_dirs_replication_quota_window_num: int = _window_num(
        "alter.log.dirs.replication.quota.window.num", "moves between log directories"
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = _window_size(
        "alter.log.dirs.replication.quota.window.size.seconds"
    )
