"""Settings of a quorum node: Raft's timeouts, and the snapshots and retention of the metadata log."""

from __future__ import annotations

from typing import NamedTuple

from ...base.settings import ConfigValueType, Settings, setting

_WEEK_MS = 7 * 24 * 3_600_000


class MetadataLogSettings(Settings):
    """Snapshots and retention of the metadata log (KRaft)."""

    record_bytes_between_snapshots: int = setting(
        "metadata.log.max.record.bytes.between.snapshots",
        default=20 << 20,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Bytes of the metadata log after which a snapshot is written.",
    )
    snapshot_interval_ms: int = setting(
        "metadata.log.max.snapshot.interval.ms",
        default=3_600_000,
        at_least=0,
        kind=ConfigValueType.LONG,
        doc="Time after which a snapshot is written if the metadata log has grown; 0 is never.",
    )
    segment_bytes: int = setting(
        "metadata.log.segment.bytes",
        default=1 << 30,
        at_least=8 << 20,
        doc="Size at which a segment of the metadata log rolls.",
    )
    segment_ms: int = setting(
        "metadata.log.segment.ms",
        default=_WEEK_MS,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Age at which a segment of the metadata log rolls.",
    )
    retention_bytes: int = setting(
        "metadata.max.retention.bytes",
        default=100 << 20,
        kind=ConfigValueType.LONG,
        doc="Size of the metadata log and its snapshots above which the oldest snapshot is deleted, with the log "
        "up to the next one. The newest snapshot and the log after it stay. Negative: unlimited.",
    )
    retention_ms: int = setting(
        "metadata.max.retention.ms",
        default=_WEEK_MS,
        kind=ConfigValueType.LONG,
        doc="Age of the oldest snapshot's last record above which the snapshot is deleted in the same way. "
        "Negative: unlimited.",
    )


class RaftTimes(NamedTuple):
    """Times and sizes of a node of the quorum. Defaults are Apache Kafka's; times in ms, of a monotonic clock."""

    election_timeout_ms: int = 1000
    """An election is waited for this long, and a random part of it again."""
    fetch_timeout_ms: int = 2000
    """Without a successful fetch for this long, a voter asks for votes; sooner, if the leader's process has ended. A leader
    without fetches of a majority for 1.5 times as long resigns."""
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    auto_join: bool = False
    """Whether a controller that is not a voter adds itself."""

    @property
    def max_wait_ms(self) -> int:
        """How long a fetch may wait at the leader. Kafka has 500 ms whatever the timeout, so short ones expire by themselves."""
        return min(500, self.fetch_timeout_ms // 3)

    @property
    def check_quorum_timeout_ms(self) -> float:
        return 1.5 * self.fetch_timeout_ms

    @property
    def begin_quorum_interval_ms(self) -> float:
        return self.fetch_timeout_ms / 2


class RaftSettings(Settings):
    """Timeouts and fetch sizes of a quorum."""

    election_timeout_ms: int = setting(
        "controller.quorum.election.timeout.ms",
        default=1000,
        at_least=1,
        doc="Time, plus a random part of it, that a controller waits for an election before it becomes a candidate.",
    )
    fetch_timeout_ms: int = setting(
        "controller.quorum.fetch.timeout.ms",
        default=2000,
        at_least=1,
        doc="Time without a successful fetch after which a controller starts an election; at most a quarter of "
        "it if the leader's address refuses connections. A leader without fetches from a majority for 1.5 "
        "times as long resigns.",
    )
    election_backoff_max_ms: int = setting(
        "controller.quorum.election.backoff.max.ms",
        default=1000,
        at_least=0,
        doc="The longest pause after an election that was lost.",
    )
    retry_backoff_ms: int = setting(
        "controller.quorum.retry.backoff.ms",
        default=20,
        at_least=0,
        doc="The pause before a request to another controller is repeated.",
    )
    fetch_max_bytes: int = setting(
        "controller.quorum.fetch.max.bytes",
        default=1 << 20,
        at_least=1,
        doc="The most bytes of the metadata log in one fetch, or one batch.",
    )
    fetch_snapshot_max_bytes: int = setting(
        "controller.quorum.fetch.snapshot.max.bytes",
        default=1 << 20,
        at_least=1,
        doc="The most bytes of a snapshot in one fetch.",
    )
    auto_join_enable: bool = setting(
        "controller.quorum.auto.join.enable",
        default=False,
        doc="Whether a controller that is not a voter adds itself as one.",
    )
    append_linger_ms: int = setting(
        "controller.quorum.append.linger.ms",
        default=25,
        at_least=0,
        doc="Without effect: metadata records are flushed at once, and those that arrive during a flush with the "
        "next one.",
    )

    def times(self, request_timeout_ms: int) -> RaftTimes:
        """With ``controller.quorum.request.timeout.ms``, which other settings share."""
        return RaftTimes(
            self.election_timeout_ms,
            self.fetch_timeout_ms,
            self.election_backoff_max_ms,
            request_timeout_ms,
            self.retry_backoff_ms,
            self.fetch_max_bytes,
            self.fetch_snapshot_max_bytes,
            self.auto_join_enable,
        )
