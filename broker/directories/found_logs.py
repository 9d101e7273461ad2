"""Partition logs left by a broker before KRaft in its log directories, and their topic ids.

A log without a topic id is one of no topic in a cluster of KRaft, which sets it aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...base.partitions import TopicPartition
from ...controller.zookeeper.leaving.tree_image import UnmovableStateError
from ...log.checkpoints import PARTITION_METADATA, CorruptFileError, read_topic_id, write_topic_id
from ...log.disk import Disk, join
from ...log.files import parse_topic_partition_name
from ...metadata.image import ClusterImage


@dataclass(frozen=True)
class FoundLog:
    """The directory of one log."""

    directory: str
    name: str
    partition: TopicPartition
    topic_id: bytes | None
    """None where no file says it."""


def has_logs(disk: Disk, directories: Iterable[str]) -> bool:
    """Whether there is any. Raises OSError."""
    return any(True for _ in _folders(disk, directories))


def found_logs(disk: Disk, directories: Iterable[str]) -> list[FoundLog]:
    """Those in these directories. Raises OSError."""
    return [
        FoundLog(directory, name, partition, _topic_id(disk, join(directory, name)))
        for directory, name, partition in _folders(disk, directories)
    ]


def _folders(disk: Disk, directories: Iterable[str]) -> Iterator[tuple[str, str, TopicPartition]]:
    for directory in directories:
        for name in disk.names(directory):
            partition = parse_topic_partition_name(name)
            if partition is not None and disk.is_dir(join(directory, name)):
                yield directory, name, partition


def _topic_id(disk: Disk, folder: str) -> bytes | None:
    try:
        return read_topic_id(disk, join(folder, PARTITION_METADATA))
    except CorruptFileError:
        return None


def known_topic_id(found: Sequence[FoundLog], topic: str) -> bytes | None:
    """The id of a topic by its logs. Raises UnmovableStateError where they belong to different topics."""
    ids = {each.topic_id for each in found if each.partition.topic == topic and each.topic_id is not None}
    if len(ids) > 1:
        raise UnmovableStateError(f"the partitions of topic {topic} belong to {len(ids)} different topics")
    return ids.pop() if ids else None


def write_topic_ids(disk: Disk, found: Iterable[FoundLog], image: ClusterImage) -> None:
    """Write ``partition.metadata`` where a log of a topic in the image lacks it. Raises OSError."""
    for each in found:
        topic = image.topics.get(each.partition.topic)
        if topic is not None and each.topic_id is None:
            path = join(join(each.directory, each.name), PARTITION_METADATA)
            write_topic_id(disk, path, topic.topic_id, sync=True)
