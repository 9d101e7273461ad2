"""A node that follows a quorum's log and has no vote: whom it asks next, and what an answer means (KIP-595, KIP-630, KIP-853).

``next_request`` and ``take_…`` are plain functions on the log: no await, no clock. Rules (KafkaRaftClient of Kafka 4.3.1):

- A node that knows no leader of its epoch asks any bootstrap server, with the newest epoch that it knows; a node that is not the
  leader answers with an error and with who is.
- A higher epoch in an answer, or the leader of the present one, counts before anything else in it; it is on stable storage
  (``election``) before the next request, so that no restart goes back to an earlier one. An answer of a lower epoch, or
  to a request that was made before the log or the epoch changed, is dropped.
- ``diverging_epoch``: the log is cut back, and the next fetch compares again. ``snapshot_id``: the log begins again at that
  snapshot's end, once all of it was fetched. Otherwise the batches are appended, and the high watermark follows the leader's.
- A leader that cannot be reached, or does not answer a fetch in time, is left alone for a while: the other servers are asked
  until one names another leader. Before there is another, they name the one that is gone.
- A server that gave no answer is asked again only when no other is left: while no leader is known, each such request costs its
  whole time-out, during which the broker may lose its session.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError, known_code
from ...log.metadata_snapshots import SnapshotFile, SnapshotHead, SnapshotId
from ...wire.messages import fetch, fetch_snapshot
from ...wire.schema import Message
from .election_file import NOBODY, ElectionState
from .metadata_log import TOPIC, TOPIC_ID, MetadataLog
from .voters import ControllerAddress

logger = logging.getLogger(__name__)

NO_LEADER = NOBODY
FETCH_WAIT_MS = 500
FETCH_BYTES = 1 << 20
"""As ``controller.quorum.fetch.max.bytes`` and ``…fetch.snapshot.max.bytes`` are by default."""

_ASKS_OF_OTHERS = 100
"""How often others are asked before a leader that was left alone is asked again: with the pauses between, two seconds."""
_CHANGES_OF_LEADER = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


_Endpoint = fetch.NodeEndpoint | fetch_snapshot.NodeEndpoint
_Leader = fetch.LeaderIdAndEpoch | fetch_snapshot.LeaderIdAndEpoch


class OutboundRequest(NamedTuple):
    """A request, to whom it goes, and what it was made of: an answer counts only while that is still so."""

    address: ControllerAddress
    request: Message
    epoch: int
    offset: int


class Leadership(NamedTuple):
    """The newest epoch, and who leads in it; NO_LEADER where that is not known."""

    epoch: int
    leader_id: int = NO_LEADER


class Observer:
    """One node's view of the quorum. ``log`` is changed only here.

    ``static_voters`` are those of ``controller.quorum.voters``, by id; ``listener`` is the one at which this node reaches
    controllers. ``high_watermark`` is None until a leader has told one.
    """

    def __init__(
        self,
        node_id: int,
        directory_id: bytes,
        cluster_id: str,
        log: MetadataLog,
        bootstrap: Sequence[ControllerAddress],
        static_voters: Mapping[int, ControllerAddress],
        listener: str,
        randomness: random.Random,
    ) -> None:
        self._node_id = node_id
        self._directory_id = directory_id
        self._cluster_id = cluster_id
        self.log = log
        self._bootstrap = list(bootstrap) or list(static_voters.values())
        self._addresses = dict(static_voters)
        self._static_ids = sorted(static_voters)
        self._listener = listener
        self._randomness = randomness
        self._election = _known_election(log, node_id)
        self.leadership = Leadership(self._election.epoch, self._election.leader_id)
        self.high_watermark: int | None = None
        self._asks_of_others = 0
        """How often others are still asked in place of the leader."""
        self._silent: set[ControllerAddress] = set()
        """Who gave no answer, or refused, when it was asked last."""
        self._download: SnapshotFile | None = None

    @property
    def election(self) -> ElectionState:
        """What a start has to know again. A vote, given while this node was a voter, counts until the epoch ends."""
        (epoch, leader_id), voters, known = self.leadership, self.log.quorum.voters, self._election
        ids = self._static_ids if voters is None else sorted(voter.voter_id for voter in voters.voters)
        election = ElectionState(epoch, leader_id, voters=tuple(ids))
        if epoch == known.epoch:
            election = election._replace(voted_id=known.voted_id, voted_directory_id=known.voted_directory_id)
        return election

    # --- what to ask --------------------------------------------------------------------------------------------------

    def address_of(self, node_id: int) -> ControllerAddress | None:
        """Where a controller is reached: by the voters in the log, the property, or what another controller has said."""
        voters = self.log.quorum.voters
        for voter in () if voters is None else voters.voters:
            for endpoint in voter.endpoints if voter.voter_id == node_id else ():
                if endpoint.name.upper() == self._listener:
                    return ControllerAddress(endpoint.host, endpoint.port)
        return self._addresses.get(node_id)

    @property
    def leader(self) -> ControllerAddress | None:
        return self.address_of(self.leadership.leader_id)

    def next_request(self) -> OutboundRequest:
        """What to send next, and to whom. Raises OSError where a snapshot cannot be begun."""
        leader = self.leader
        if leader is not None and not self._asks_of_others:
            request = self._fetch() if self._download is None else self._fetch_snapshot(self._download)
            return OutboundRequest(leader, request, self.leadership.epoch, self.log.end_offset)
        self._asks_of_others = max(0, self._asks_of_others - 1)
        others = [address for address in self._known_addresses() if address != leader] or self._bootstrap
        if self._silent.issuperset(others):
            self._silent.difference_update(others)  # the leader, which is none of them, stays out if it leads no more
        asked = self._randomness.choice([address for address in others if address not in self._silent])
        return OutboundRequest(asked, self._fetch(), self.leadership.epoch, self.log.end_offset)

    def _known_addresses(self) -> list[ControllerAddress]:
        """Those of the bootstrap servers; where these are no more than the leader, of all controllers that are known."""
        if any(address != self.leader for address in self._bootstrap):
            return self._bootstrap
        voters = self.log.quorum.voters
        ids = [voter.voter_id for voter in voters.voters] if voters is not None else self._addresses
        return [address for node_id in ids if (address := self.address_of(node_id)) is not None]

    def _fetch(self) -> fetch.FetchRequest:
        partition = fetch.FetchPartition(
            partition=0,
            current_leader_epoch=self.leadership.epoch,
            fetch_offset=self.log.end_offset,
            last_fetched_epoch=self.log.last_epoch,
            replica_directory_id=self._directory_id,
            high_watermark=-1 if self.high_watermark is None else self.high_watermark,
        )
        return fetch.FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=fetch.ReplicaState(replica_id=self._node_id),
            max_wait_ms=FETCH_WAIT_MS,
            max_bytes=FETCH_BYTES,
            topics=[fetch.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _fetch_snapshot(self, download: SnapshotFile) -> fetch_snapshot.FetchSnapshotRequest:
        end_offset, epoch = download.id
        partition = fetch_snapshot.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self.leadership.epoch,
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=end_offset, epoch=epoch),
            position=download.size,
            replica_directory_id=self._directory_id,
        )
        return fetch_snapshot.FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._node_id,
            max_bytes=FETCH_BYTES,
            topics=[fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition])],
        )

    # --- what an answer means -----------------------------------------------------------------------------------------

    def take_failure(self, asked: OutboundRequest) -> None:
        """No answer came."""
        self._silent.add(asked.address)
        if asked.address == self.leader:
            self._asks_of_others = _ASKS_OF_OTHERS

    def take_fetch(self, asked: OutboundRequest, response: fetch.FetchResponse) -> bool:
        """Apply the answer to a Fetch; False where it is to be asked again in a moment. Raises KafkaError, OSError."""
        self._silent.discard(asked.address)
        if response.error_code:
            raise KafkaError(known_code(response.error_code), "the quorum's controller refuses to be followed")
        partition = response.responses[0].partitions[0]
        self._take_leader(partition.current_leader, response.node_endpoints)
        if partition.error_code:
            return self._take_error(asked, known_code(partition.error_code))
        if asked.epoch != self.leadership.epoch or asked.offset != self.log.end_offset:
            return True
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        if diverging is not None and (diverging.epoch >= 0 or diverging.end_offset >= 0):
            self.log.truncate_to(SnapshotId(diverging.end_offset, diverging.epoch))
        elif snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
            self._download = self.log.begin_snapshot(SnapshotId(snapshot.end_offset, snapshot.epoch))
        else:
            records = partition.records or b""
            assert isinstance(records, bytes | bytearray | memoryview), "what was received is in memory"
            self.log.append(records, self.leadership.epoch)
            self._take_high_watermark(partition.high_watermark)
        return True

    def _take_high_watermark(self, told: int) -> None:
        """-1 is that of a leader which has none yet in its epoch."""
        if told >= 0:
            self.log.advance_high_watermark(told)
            self.high_watermark = max(told, self.high_watermark or 0)

    def take_snapshot(
        self, asked: OutboundRequest, response: fetch_snapshot.FetchSnapshotResponse
    ) -> SnapshotFile | None:
        """Apply the answer to a FetchSnapshot; the snapshot, which is the caller's then, where that was the last piece.

        Raises KafkaError, OSError.
        """
        if response.error_code:
            raise KafkaError(known_code(response.error_code), "the quorum's controller refuses to send a snapshot")
        partition = response.topics[0].partitions[0]
        self._take_leader(partition.current_leader, response.node_endpoints)
        download = self._download
        if download is None or asked.epoch != self.leadership.epoch:
            return None
        if partition.error_code:
            if known_code(partition.error_code) not in _CHANGES_OF_LEADER:
                logger.info("The snapshot %s is not there any more", download.id.file_name)
                self._give_up_download()
            return None
        if partition.position != download.size:
            self._give_up_download()
            return None
        records = partition.unaligned_records
        assert isinstance(records, bytes | bytearray | memoryview), "what was received is in memory"
        download.append(records)
        if download.size < partition.size:
            return None
        self._download = None
        return download

    def _give_up_download(self) -> None:
        """Fetch the log again instead, whose answer names a snapshot that is there. Raises OSError."""
        if self._download is not None:
            self._download.drop()
            self._download = None

    def close(self) -> None:
        """Close what is open, the log too."""
        self._give_up_download()
        self.log.close()

    def start_after(self, snapshot: SnapshotId, head: SnapshotHead) -> None:
        """A snapshot that was fetched takes the place of the log. Raises KafkaError, OSError."""
        self.log.start_after(snapshot, head)
        self.high_watermark = max(self.log.high_watermark, self.high_watermark or 0)

    def _take_error(self, asked: OutboundRequest, code: ErrorCode) -> bool:
        """True where the answer has told whom to ask."""
        if code in _CHANGES_OF_LEADER:
            return self.leader is not None and self.leader != asked.address and not self._asks_of_others
        raise KafkaError(code, "the quorum's controller refuses a fetch of the metadata log")

    def _take_leader(self, told: _Leader | None, endpoints: Sequence[_Endpoint]) -> None:
        if told is None:
            return
        for endpoint in endpoints:
            self._addresses[endpoint.node_id] = ControllerAddress(endpoint.host, endpoint.port)
        known, epoch, leader_id = self.leadership, told.leader_epoch, told.leader_id
        if epoch > known.epoch or (epoch == known.epoch and known.leader_id == NO_LEADER != leader_id):
            self.leadership = Leadership(epoch, leader_id)
            self._asks_of_others = 0
            self._give_up_download()


def _known_election(log: MetadataLog, node_id: int) -> ElectionState:
    """What the last run has left (QuorumState.initialize); the log may have a later epoch."""
    election = log.election or ElectionState()
    if election.epoch < log.last_epoch:
        if log.election is not None:
            logger.warning(
                "quorum-state has epoch %d, and the log of %s epoch %d", election.epoch, log.directory, log.last_epoch
            )
        return ElectionState(log.last_epoch)
    return election._replace(leader_id=NO_LEADER) if election.leader_id == node_id else election
