"""Requests about a share group that are not of its members: views, administrators, other protocols that try the same group id."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from ottla.wire.messages import alter_share_group_offsets as alter
from ottla.wire.messages import delete_share_group_offsets as delete
from ottla.wire.messages import describe_share_group_offsets as describe
from ottla.wire.messages import read_share_group_state as read_state
from ottla.wire.messages import read_share_group_state_summary as read_summary
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.schema import Message

from .share_walkers import Known
from .steps import ADMIN, TOPICS, Ask, topic_id
from .walkers import LONG_MS, World

GROUP_RESOURCE = 32
OF_A_CONSUMER_GROUP = "probe"
"""A group that a player makes."""
WRONG_CONFIGS = (
    ("share.auto.offset.reset", "sometimes"),
    ("share.auto.offset.reset", "by_duration:PT1X"),
    ("share.record.lock.duration.ms", "5"),
    ("share.record.lock.duration.ms", "soon"),
    ("share.delivery.count.limit", "1"),
    ("share.partition.max.record.locks", "50"),
    ("share.isolation.level", "read_all"),
    ("share.session.timeout.ms", "1"),
    ("share.heartbeat.interval.ms", "60000000"),
    ("share.nothing", "1"),
)


class Looks:
    """What is asked of one group."""

    def __init__(self, group_id: str, topics: Sequence[str], chance: random.Random, world: World, known: Known) -> None:
        self._group_id = group_id
        self._topics = topics
        self._chance = chance
        self._world = world
        self._known = known
        self.shows_starts = True
        """Whether its start offsets may be looked at.

        One that depends on the time, Ottla stores before the first delivery, and Kafka with the first acknowledgement. In Ottla
        aborted records let it move at once, in Kafka with the next acknowledgement.
        """

    @property
    def who(self) -> str:
        """The connection of clients of other protocols."""
        return f"{self._group_id}/X"

    # ---- views

    def next_step(self, names: Sequence[str]) -> Ask:
        """Some view; ``names`` are those of all groups."""
        chance = self._chance
        some = [self._group_id] if chance.random() < 0.8 else [*names, "nobody's", OF_A_CONSUMER_GROUP, ""]
        kinds = ["describe"] * 4 + ["offsets"] * 4 + ["state", "state", "list", "classic", "consumer", "fetch"]
        kind = chance.choice([each for each in kinds if self.shows_starts or each not in ("offsets", "state")])
        if kind == "describe":
            return Ask(ADMIN, ShareGroupDescribeRequest(group_ids=some), 1)
        if kind == "offsets":
            return self._describe_offsets()
        if kind == "state":
            return self._state()
        if kind == "list":
            states = chance.choice([[], [], ["stable"], ["Empty"], ["Assigning"], ["Dead"]])
            types = chance.choice([[], ["share"], ["Share"], ["consumer"]])
            return Ask(ADMIN, ListGroupsRequest(states_filter=states, types_filter=types), 5)
        if kind == "classic":
            return Ask(ADMIN, DescribeGroupsRequest(groups=some), chance.choice([5, 6]))
        if kind == "consumer":
            return Ask(ADMIN, ConsumerGroupDescribeRequest(group_ids=some), 1)
        topics = [OffsetFetchRequestTopics(name="t0", partition_indexes=[0])] if chance.random() < 0.7 else None
        group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
        return Ask(ADMIN, OffsetFetchRequest(groups=[group]), chance.choice([8, 9]))

    def _describe_offsets(self) -> Ask:
        """Of partitions with a state. Kafka 4.3.1 sometimes fails, or does not answer, where one has none."""
        chance, topics = self._chance, None
        names = sorted(self._known.initialized)
        if names and chance.random() < 0.6:
            topics = [
                describe.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=self._numbers(name))
                for name in chance.sample(names, min(2, len(names)))
            ]
        group_id = self._group_id if chance.random() < 0.9 else chance.choice(["nobody's", OF_A_CONSUMER_GROUP, ""])
        group = describe.DescribeShareGroupOffsetsRequestGroup(
            group_id=group_id, topics=topics if group_id == self._group_id else None
        )
        return Ask(ADMIN, describe.DescribeShareGroupOffsetsRequest(groups=[group]), chance.choice([0, 1]))

    def _state(self) -> Ask:
        name = self._chance.choice([each for each in self._topics if each in TOPICS])
        partition, given_id = self._chance.randrange(self._world.counts[name]), topic_id(name)
        if self._chance.random() < 0.5:
            topic = read_state.ReadStateData(
                topic_id=given_id, partitions=[read_state.PartitionData(partition=partition, leader_epoch=-1)]
            )
            return Ask(ADMIN, read_state.ReadShareGroupStateRequest(group_id=self._group_id, topics=[topic]), 0)
        summary = read_summary.ReadStateSummaryData(
            topic_id=given_id, partitions=[read_summary.PartitionData(partition=partition, leader_epoch=-1)]
        )
        request = read_summary.ReadShareGroupStateSummaryRequest(group_id=self._group_id, topics=[summary])
        return Ask(ADMIN, request, self._chance.choice([0, 1]))

    def _some_names(self) -> list[str]:
        names = [*self._topics, "nothing"]
        return sorted(self._chance.sample(names, self._chance.randrange(1, 3)))

    def _numbers(self, name: str) -> list[int]:
        count = self._known.initialized.get(name) or self._world.counts.get(name) or 1
        return sorted(self._chance.sample(range(count), self._chance.choice([1, 1, min(2, count)])))

    # ---- administrators

    def change_offsets(self) -> Ask:
        """Any change, which a group with members refuses; or a setting that cannot be."""
        kind = self._chance.randrange(4)
        if kind < 3:
            return (self.alter_offsets, self.delete_offsets, self.delete)[kind]()
        name, value = self._chance.choice(WRONG_CONFIGS)
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=self._group_id, configs=[config])
        return Ask(ADMIN, IncrementalAlterConfigsRequest(resources=[resource]), 1)

    def alter_offsets(self) -> Ask:
        """AlterShareGroupOffsets of some partitions."""
        return self._alter(self._some_id(), {name: self._numbers(name) for name in self._some_names()})

    def alter_all_offsets(self) -> Ask:
        """AlterShareGroupOffsets of all that there are."""
        sizes = {name: self._world.counts.get(name, 0) for name in self._topics}
        return self._alter(self._group_id, {name: [*range(size)] for name, size in sizes.items() if size})

    def _alter(self, group_id: str, wanted: Mapping[str, Sequence[int]]) -> Ask:
        topics = [
            alter.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    alter.AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=self._chance.choice([0, 1, 3, 7])
                    )
                    for number in numbers
                ],
            )
            for name, numbers in wanted.items()
        ]
        return Ask(ADMIN, alter.AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics), 0)

    def delete_offsets(self) -> Ask:
        """DeleteShareGroupOffsets."""
        topics = [delete.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in self._some_names()]
        return Ask(ADMIN, delete.DeleteShareGroupOffsetsRequest(group_id=self._some_id(), topics=topics), 0)

    def delete(self) -> Ask:
        """DeleteGroups."""
        return Ask(ADMIN, DeleteGroupsRequest(groups_names=[self._group_id]), 2)

    def _some_id(self) -> str:
        others = [OF_A_CONSUMER_GROUP, "nobody's", ""]
        return self._group_id if self._chance.random() < 0.9 else self._chance.choice(others)

    # ---- other protocols

    def other_protocol(self) -> Ask:
        """A client of another protocol that takes the group for one of its own; or the other way round."""
        chance, group_id = self._chance, self._group_id
        topic = OffsetCommitRequestTopic(
            name="t0",
            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")],
        )
        forgotten = OffsetDeleteRequestTopic(name="t0", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        joining = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            member_id="",
            protocol_type=chance.choice(["consumer", "share"]),
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id="X",
            member_epoch=chance.choice([0, 0, 1, -1]),
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=["t0"],
            topic_partitions=[],
        )
        requests: list[tuple[Message, int]] = [
            (joining, 9),
            (beat, 1),
            (SyncGroupRequest(group_id=group_id, generation_id=1, member_id="X"), 5),
            (HeartbeatRequest(group_id=group_id, generation_id=1, member_id="X"), 4),
            (LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id="X")]), 5),
            (
                OffsetCommitRequest(
                    group_id=group_id,
                    generation_id_or_member_epoch=chance.choice([-1, 1]),
                    member_id="",
                    topics=[topic],
                ),
                9,
            ),
            (OffsetDeleteRequest(group_id=group_id, topics=[forgotten]), 0),
            (
                ShareGroupHeartbeatRequest(
                    group_id=OF_A_CONSUMER_GROUP,
                    member_id="X",
                    member_epoch=chance.choice([0, 1, -1]),
                    subscribed_topic_names=["t0"],
                ),
                1,
            ),
        ]
        request, version = chance.choice(requests)
        return Ask(self.who, request, version)
