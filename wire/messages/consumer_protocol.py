"""Consumer protocol."""

from ..schema import Message, Struct, field, int32, message, string, struct


@struct
class TopicPartition(Struct):
    topic: string = field("1+")
    partitions: list[int32] = field("1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    topics: list[string] = field()
    user_data: bytes | None = field(default=None)
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
