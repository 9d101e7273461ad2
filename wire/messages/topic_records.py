"""Records of ``__cluster_metadata`` about topics and their partitions (KIP-631).

A topic's partitions and configs go with RemoveTopic. In PartitionChange what is absent has not changed: -2 stands for the same
leader, and any other, also the one that leads already, begins the next leader epoch.

Version notes: 1 has the directories of the replicas (KIP-858), 2 the eligible leader replicas (KIP-966).
"""

from ..schema import Message, field, int8, int32, message, string, uuid


@message(versions="0", flexible="0+", key=2)
class TopicRecord(Message):
    name: string = field()
    topic_id: uuid = field()


@message(versions="0", flexible="0+", key=9)
class RemoveTopicRecord(Message):
    topic_id: uuid = field()


@message(versions="0-2", flexible="0+", key=3)
class PartitionRecord(Message):
    partition_id: int32 = field(default=-1)
    topic_id: uuid = field()
    replicas: list[int32] = field()
    isr: list[int32] = field()
    removing_replicas: list[int32] = field()
    adding_replicas: list[int32] = field()
    leader: int32 = field(default=-1)
    leader_recovery_state: int8 = field(default=0, tag=0)
    leader_epoch: int32 = field(default=-1)
    partition_epoch: int32 = field(default=-1)
    directories: list[uuid] = field("1+")
    eligible_leader_replicas: list[int32] | None = field("2+", default=None, tag=1)
    last_known_elr: list[int32] | None = field("2+", default=None, tag=2)


@message(versions="0-2", flexible="0+", key=5)
class PartitionChangeRecord(Message):
    partition_id: int32 = field(default=-1)
    topic_id: uuid = field()
    isr: list[int32] | None = field(default=None, tag=0)
    leader: int32 = field(default=-2, tag=1)
    replicas: list[int32] | None = field(default=None, tag=2)
    removing_replicas: list[int32] | None = field(default=None, tag=3)
    adding_replicas: list[int32] | None = field(default=None, tag=4)
    leader_recovery_state: int8 = field(default=-1, tag=5)
    directories: list[uuid] | None = field("1+", default=None, tag=8)
    eligible_leader_replicas: list[int32] | None = field("2+", default=None, tag=6)
    last_known_elr: list[int32] | None = field("2+", default=None, tag=7)


@message(versions="0", flexible="0+", key=28)
class ClearElrRecord(Message):
    topic_name: string = field()
