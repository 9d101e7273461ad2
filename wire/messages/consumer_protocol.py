"""Subscriptions and assignments of consumers in a classic group of protocol type "consumer".

JoinGroup and SyncGroup carry the bytes after an int16 version, which is not part of the message.

v1  partitions owned before the rebalance (KIP-429)
v2  generation in which they were owned (KIP-792)
v3  rack (KIP-881)

Both messages have a struct that Kafka calls TopicPartition; that of the assignment is ``AssignedTopicPartition``.
"""

from ..schema import Message, Struct, field, int32, message, string, struct


@struct
class TopicPartition(Struct):
    topic: string = field("1+")
    partitions: list[int32] = field("1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    topics: list[string] = field()
    user_data: bytes | None = field(default=None)  # of the assignor
    owned_partitions: list[TopicPartition] = field("1+", ignorable=True)
    generation_id: int32 = field("2+", default=-1, ignorable=True)
    rack_id: string | None = field("3+", default=None, ignorable=True)


@struct
class AssignedTopicPartition(Struct):
    topic: string = field()
    partitions: list[int32] = field()


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[AssignedTopicPartition] = field()
    user_data: bytes | None = field(default=None)
