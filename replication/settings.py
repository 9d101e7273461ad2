"""Settings of fetching and replication."""

from __future__ import annotations

from ..base.settings import Kind, Settings, setting


class ReplicationSettings(Settings):
    """What a Fetch may ask for, and when a follower is out of sync."""

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
    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        default=30000,
        kind=Kind.LONG,
        doc="A follower that has not had all that its leader has for so long is out of sync. Looked at each half of it.",
    )
