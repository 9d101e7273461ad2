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
    """What a Fetch may ask for, when a follower is out of sync, and how brokers speak to each other."""

    inter_broker_protocol_version: str = setting(
        "inter.broker.protocol.version",
        default=LATEST,
        check=check_name,
        doc="The versions that brokers speak among themselves, the same for all brokers of a cluster: 2.8 or newer.",
    )

    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        default=57671680,
        at_least=1024,
        doc="The most bytes one Fetch answer carries, whatever it asks for.",
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
        doc="Which replica a consumer is told to read from (KIP-392): the leader, as without it, or with "
        f"`{RACK_AWARE_SELECTOR}` one in the rack that the consumer names, where there is one in sync.",
    )
    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        default=30000,
        kind=ConfigValueType.LONG,
        doc="A follower that has not caught up with its leader for so long is out of sync. Checked twice in this time.",
    )
    num_replica_fetchers: int = setting(
        "num.replica.fetchers",
        default=1,
        at_least=1,
        dynamic=True,
        doc="Accepted, without effect: a broker fetches from each leader in one task, on its one loop.",
    )
    replica_fetch_wait_max_ms: int = setting(
        "replica.fetch.wait.max.ms",
        default=500,
        at_least=0,
        doc="The longest that a leader waits for records before it answers a follower; less than replica.lag.time.max.ms.",
    )
    replica_fetch_min_bytes: int = setting(
        "replica.fetch.min.bytes",
        default=1,
        at_least=0,
        doc="With fewer bytes a leader waits before it answers a follower.",
    )
    replica_fetch_max_bytes: int = setting(
        "replica.fetch.max.bytes",
        default=1 << 20,
        at_least=0,
        doc="The most bytes of one partition that a follower fetches at once; a first batch may be larger.",
    )
    replica_fetch_response_max_bytes: int = setting(
        "replica.fetch.response.max.bytes",
        default=10 << 20,
        at_least=0,
        doc="The most bytes that a follower fetches at once, over all partitions; a first batch may be larger.",
    )
    replica_fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms",
        default=1_000,
        at_least=0,
        doc="How long a follower waits after an error before it fetches that partition, or from that leader, again.",
    )
    replica_socket_timeout_ms: int = setting(
        "replica.socket.timeout.ms",
        default=30_000,
        at_least=1,
        doc="How long a follower waits for its leader's answer; at least replica.fetch.wait.max.ms.",
    )


def _rate(name: str, doc: str) -> Any:
    return setting(name, default=LONG_MAX, kind=ConfigValueType.LONG, at_least=0, dynamic=True, doc=doc)


def _window_num(name: str, of: str) -> Any:
    return setting(name, default=11, at_least=1, doc=f"Over how many windows the rate of {of} is averaged.")


def _window_size(name: str) -> Any:
    return setting(name, default=1, at_least=1, doc="The length of such a window in seconds.")


class QuotaSettings(Settings):
    """How fast replicas may be filled (KIP-73), in bytes per second."""

    leader_replication_throttled_rate: int = _rate(
        "leader.replication.throttled.rate",
        "The most bytes a second that this broker sends to followers of the replicas that topics list in "
        "`leader.replication.throttled.replicas`; those in sync are never held up.",
    )
    follower_replication_throttled_rate: int = _rate(
        "follower.replication.throttled.rate",
        "The most bytes a second that this broker fetches for the replicas that topics list in "
        "`follower.replication.throttled.replicas`; those in sync are never held up.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = _rate(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "The most bytes a second that this broker moves between its data folders.",
    )
    replication_quota_window_num: int = _window_num("replication.quota.window.num", "throttled replication")
    replication_quota_window_size_seconds: int = _window_size("replication.quota.window.size.seconds")
    alter_log_dirs_replication_quota_window_num: int = _window_num(
        "alter.log.dirs.replication.quota.window.num", "moves between data folders"
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = _window_size(
        "alter.log.dirs.replication.quota.window.size.seconds"
    )
