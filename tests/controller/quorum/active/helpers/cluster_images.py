"""Images for tests of operations, made of records as a controller makes its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.replay import RecordReplay
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.wire.messages.broker_records import BrokerFeature, RegisterBrokerRecord, RegisterControllerRecord
from ottla.wire.messages.setting_records import FeatureLevelRecord
from ottla.wire.messages.topic_records import PartitionRecord, TopicRecord
from ottla.wire.schema import Message

EPOCH = 100
"""That of every broker."""


def after(image: ClusterImage, records: Iterable[Message]) -> ClusterImage:
    """The image after records."""
    replay = RecordReplay(image)
    replay.replay_all(records)
    offset = 0 if image.position is None else image.position.offset + 1
    return image.apply(replay.delta(LogPosition(offset, 1, 0)))


def replayed(image: ClusterImage, result: ControllerResult[object]) -> ClusterImage:
    """The image after an operation."""
    return after(image, [record for record, _ in result.records])


def cluster(
    levels: Mapping[str, int] | None = None, brokers: Iterable[int] = (), topics: Iterable[str] = ()
) -> ClusterImage:
    """A cluster at metadata.version 30, unless ``levels`` says otherwise. Topics have one partition, on broker 1."""
    records: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in {"metadata.version": 30, **(levels or {})}.items()
    ]
    records += [broker(broker_id) for broker_id in brokers]
    for name in topics:
        topic_id = name.encode().ljust(16, b"\0")
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records.append(PartitionRecord(topic_id=topic_id, replicas=[1], isr=[1], leader=1))
    return after(ClusterImage(), records)


def broker(broker_id: int, **ranges: tuple[int, int]) -> RegisterBrokerRecord:
    """A broker that supports features at these levels."""
    features = [
        BrokerFeature(name=name.replace("_", "."), min_supported_version=lowest, max_supported_version=highest)
        for name, (lowest, highest) in ranges.items()
    ]
    return RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=bytes([broker_id] * 16), broker_epoch=EPOCH, features=features
    )


def controller(controller_id: int) -> RegisterControllerRecord:
    """A controller that supports no feature."""
    return RegisterControllerRecord(controller_id=controller_id, incarnation_id=bytes(16))
