"""Requests by chance: whatever others ask, a node of a quorum responds once, keeps its promises and goes on."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.controller.raft import messages
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import OWN
from ottla.tests.simulation.raft.machine import CLUSTER_ID, endpoint_of, key_of
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.schema import ZERO_UUID, Message

STARTS: list[dict[str, Any]] = [
    {},
    {"kraft_version": 0},
    {"voters": (OWN,)},
    {"own": key_of(4)},
    {"leader": 2},
    {"leader": OWN},
    {"voted": key_of(OWN)},
    {"snapshots": (MetadataSnapshotId(3, 2),), "log_start": MetadataSnapshotId(3, 2)},
]


class Stranger:
    """Asks a node by chance, mostly what makes sense to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"{seed} stranger")
        self.world = NodeWorld(**{"epoch": 5, "log": [(2, 3), (3, 3)], **STARTS[seed % len(STARTS)]})

    def near(self, value: int) -> int:
        """A number about another; seldom a far one."""
        return self.chance.choice((value, value, value, value - 1, value + 1, -1, 0, 1 << 31 - 1))

    def key(self) -> ReplicaKey:
        node_id = self.chance.choice((-1, 1, 2, 3, 4))
        directory_id = self.chance.choice((ZERO_UUID, b"another disk 456", b""))
        return ReplicaKey(node_id, directory_id or key_of(max(node_id, 0)).directory_id)

    def voter(self) -> QuorumVoter:
        where = [endpoint_of(self.chance.choice((2, 3, 4))), ListenerEndpoint("OTHER", "elsewhere", 1)]
        versions = self.chance.choice(((0, 1), (1, 1), (0, 0), (1, 0), (-1, 1)))
        return QuorumVoter(self.key(), tuple(self.chance.sample(where, self.chance.randrange(3))), *versions)

    def request(self) -> Message:
        chance, quorum = self.chance, self.world.quorum
        epoch, offset, last = (
            self.near(quorum.epoch),
            self.near(quorum.log.end_offset),
            self.near(quorum.log.last_epoch),
        )
        cluster_id: Any = chance.choice((CLUSTER_ID, CLUSTER_ID, CLUSTER_ID, None, "other"))
        kind = chance.randrange(7)
        if kind == 0:
            is_pre_vote = chance.random() < 0.5
            return messages.vote_request(cluster_id, self.key(), self.key(), epoch, (last, offset), is_pre_vote)
        if kind == 1:
            known, wait = self.near(quorum.log.end_offset), chance.choice((0, 0, 500, -1))
            end = (last, offset)
            return messages.fetch_request(cluster_id, self.key(), epoch, end, known, max_wait_ms=wait, max_bytes=offset)
        if kind == 2:
            snapshot = MetadataSnapshotId(self.near(3), self.near(2))
            return messages.fetch_snapshot_request(cluster_id, self.key(), epoch, snapshot, self.near(10), abs(offset))
        if kind == 3:
            voter = self.voter()
            return AddRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                listeners=[Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints],
                ack_when_committed=chance.random() < 0.5,
            )
        if kind == 4:
            key = self.key()
            return RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=key.node_id, voter_directory_id=key.directory_id
            )
        if kind == 5:
            return messages.update_voter_request(cluster_id, self.voter(), epoch)
        topic = chance.choice(("__cluster_metadata", "other"))
        return DescribeQuorumRequest(topics=[TopicData(topic_name=topic, partitions=[PartitionData()])])

    def go_on(self) -> None:
        """Time passes, the controller writes, and those who are asked for their vote or versions answer."""
        world, chance = self.world, self.chance
        world.sleep(chance.choice((0, 10, 100, 1000)))
        world.append(chance.randint(1, 3))
        for sent in [*world.pre_votes, *world.votes]:
            if chance.random() < 0.7:
                world.answer_vote(sent, chance.random() < 0.7)
        for sent in world.all_sent(ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            world.answer(sent, ApiVersionsResponse(supported_features=[feature]))


@pytest.mark.parametrize("seed", range(64))
def test_whatever_strangers_ask(seed: int) -> None:
    stranger = Stranger(seed)
    world = stranger.world
    epoch, high_watermark = 0, -1
    for _ in range(60):
        world.ask(stranger.request())
        stranger.go_on()
        assert world.node.epoch >= epoch
        assert (world.high_watermark or -1) >= high_watermark
        assert world.stored.epoch == world.node.epoch
        epoch, high_watermark = world.node.epoch, world.high_watermark or -1
