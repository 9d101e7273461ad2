"""The topics of both clusters: selects those to mirror, and creates the target's like the source's.

A topic that a mirror has written is mirrored only if it is named, because two clusters that mirror each other by pattern would
copy for ever. Such topics are recognized by the mirrors' groups, which have offsets in them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..query import JobError
from .offsets import MirrorOffsetMap

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

logger = logging.getLogger(__name__)

GROUP_PREFIX = "ottla-mirror-"
LAG_PREFIX = "ottla-to-"
"""The prefix of the groups at the source that only show how far a mirror has read."""
# Those that MirrorMaker 2 omits, because they belong to one cluster, and those by which a broker refuses records for their
# age: a mirrored record is older than it was at the source.
NOT_COPIED = {
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
}
_WAIT_S = 30.0


@dataclass(frozen=True)
class SourceTopic:
    """A topic of the source."""

    topic_id: str
    partitions: int


def find_topics(source: KafkaAdminClient, names: Collection[str], pattern: str | None) -> dict[str, SourceTopic]:
    """The source's topics with one of these names, or whose whole name matches and no mirror has written. JobError."""
    described = {topic["name"]: topic for topic in source.describe_topics() if not topic["is_internal"]}
    missing = [name for name in names if name not in described]
    if missing:
        raise JobError(f"the source has no topic {', '.join(missing)}")
    if pattern is not None:
        mirrored = mirrored_topics(source)
        names = [name for name in described if re.fullmatch(pattern, name) and name not in mirrored]
    return {name: SourceTopic(str(described[name]["topic_id"]), len(described[name]["partitions"])) for name in names}


def mirrored_topics(admin: KafkaAdminClient) -> set[str]:
    """The topics of the cluster that mirrors have written."""
    groups = [group["group_id"] for group in admin.list_groups() if group["group_id"].startswith(GROUP_PREFIX)]
    offsets = admin.list_group_offsets(groups) if groups else {}
    return {where.topic for committed in offsets.values() for where in committed}


def make_alike(
    source: KafkaAdminClient,
    target: KafkaAdminClient,
    topics: Mapping[str, SourceTopic],
    group_id: str,
    prefix: str = "",
) -> None:
    """Create missing topics at the target, with the configs that are set at the source, and add missing partitions.

    Returns when the target's brokers know them all, and the mirror's group has an offset for each new partition: so a
    topic can be recognized as mirrored before it has a record. Raises JobError.
    """
    wanted = {prefix + name: topic.partitions for name, topic in topics.items()}
    counts = _partition_counts(target)
    missing = [name for name in topics if prefix + name not in counts]
    if missing:
        configs = _own_configs(source, missing)
        target.create_topics(
            {prefix + name: {"num_partitions": wanted[prefix + name], "configs": configs[name]} for name in missing}
        )
    fewer = {name: number for name, number in wanted.items() if counts.get(name, number) < number}
    if fewer:
        target.create_partitions(fewer)
    if missing or fewer:
        _wait_for(target, wanted)
        new = {
            (prefix + name, partition): topic.topic_id
            for name, topic in topics.items()
            for partition in range(counts.get(prefix + name, 0), topic.partitions)
        }
        _mark(target, group_id, new)


def sync_configs(source: KafkaAdminClient, target: KafkaAdminClient, topics: Collection[str], prefix: str = "") -> None:
    """Give the target's topics the configs that are set at the source: set those that differ, reset those that are not set there.

    If the target refuses some, that is logged, and the mirror goes on.
    """
    from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

    there = _partition_counts(target)
    names = [name for name in topics if prefix + name in there]
    wanted = _own_configs(source, names)
    found = _own_configs(target, [prefix + name for name in names])
    resources = []
    for name in names:
        want, have = wanted[name], found[prefix + name]
        changes = {config: (AlterConfigOp.SET, value) for config, value in want.items() if have.get(config) != value}
        changes |= {config: (AlterConfigOp.DELETE, "") for config in have if config not in want}
        if changes:
            resources.append(ConfigResource(ConfigResourceType.TOPIC, prefix + name, changes))
    if resources:
        for name, answer in target.alter_configs(resources, raise_on_unknown=False)["topic"].items():
            if answer != "OK":
                logger.warning("the target refuses the configs of %s: %s", name, answer)


def _wait_for(target: KafkaAdminClient, wanted: Mapping[str, int]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while any(_partition_counts(target).get(name, 0) < number for name, number in wanted.items()):
        if time.monotonic() > deadline:
            raise JobError("the target's topics were created, but its brokers do not know them yet")
        time.sleep(0.1)


def _mark(target: KafkaAdminClient, group_id: str, new: Mapping[tuple[str, int], str]) -> None:
    """Commit offsets which say that nothing is mirrored yet."""
    from kafka import TopicPartition
    from kafka.errors import NoError
    from kafka.structs import OffsetAndMetadata

    # confluent-kafka reads metadata like a C string, up to the zero; what it writes ends with one.
    texts = {TopicPartition(*at): MirrorOffsetMap(topic_id).text() + "\0" for at, topic_id in new.items()}
    offsets = {where: OffsetAndMetadata(0, text, -1) for where, text in texts.items()}
    refusals = set(target.alter_group_offsets(group_id, offsets).values()) - {NoError}
    if refusals:
        raise JobError(f"the target refuses offsets of {group_id}: {refusals.pop().__name__}")


def _own_configs(admin: KafkaAdminClient, names: Collection[str]) -> dict[str, dict[str, str]]:
    """The configs that are set on the topics, except for those that only fit their own cluster."""
    from kafka.admin import ConfigResource, ConfigResourceType

    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    described = admin.describe_configs(resources)["topic"]
    return {
        name: {
            config: entry["value"]
            for config, entry in described[name].items()
            if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG" and config not in NOT_COPIED
        }
        for name in names
    }


def _partition_counts(admin: KafkaAdminClient) -> dict[str, int]:
    return {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics()}
