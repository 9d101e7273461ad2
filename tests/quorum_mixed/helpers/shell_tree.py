"""An image as ``kafka-metadata-shell`` prints one (``tree image``), line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ottla.controller.quorum.metadata_version import FEATURE, KRAFT_VERSION, release_of
from ottla.controller.quorum.replay import RecordReplay
from ottla.log.metadata_snapshots import SnapshotReader
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.metadata.types import (
    AdvertisedListener,
    LogPosition,
    PartitionRegistration,
    QuorumBroker,
    QuorumController,
    VersionRange,
)
from ottla.security.entities import BROKERS, CLIENT_METRICS, DEFAULT, GROUPS, TOPICS, EntityKind
from ottla.security.quota_entities import named_entity
from ottla.security.scram import ScramMechanism
from ottla.wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.metadata_records import metadata_records
from ottla.wire.records import RecordBatch
from ottla.wire.schema import uuid_to_text

_KINDS: Mapping[EntityKind, str] = {
    TOPICS: "TOPIC",
    BROKERS: "BROKER",
    GROUPS: "GROUP",
    CLIENT_METRICS: "CLIENT_METRICS",
}


def sections(image: ClusterImage) -> dict[str, list[str]]:
    """The lines below each of the tree's first nodes. Of credentials, rules and tokens they have the names."""
    return {
        "cluster": list(_cluster(image)),
        "configs": list(_configs(image)),
        "features": list(_features(image)),
        "producerIds": list(_leaf("nextProducerId", str(image.next_producer_id))),
        "topics": list(_topics(image)),
        "scram": list(_scram(image)),
        "acls": list(_acls(image)),
        "clientQuotas": list(_quotas(image)),
        "delegationToken": [f"{each}:" for each in sorted(image.tokens)],
    }


def sections_of(printed: str) -> dict[str, list[str]]:
    """The same of what the shell has printed."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in printed.splitlines():
        if line.startswith("  "):
            found[name].append(line[2:])
        elif line.endswith(":"):
            name = line[:-1]
            found[name] = []
    for each, depth in (("scram", 4), ("acls", 4), ("delegationToken", 2)):
        found[each] = [line for line in found[each] if not line.startswith(" " * depth)]
    return {each: found[each] for each in found if each != "provenance"}


def _block(depth: int, name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{' ' * depth}{name}:"
    for line in lines:
        yield f"  {line}"


def _leaf(name: str, value: str) -> Iterator[str]:
    yield from _block(0, name, [value])


def _sorted(names: Iterable[object]) -> list[str]:
    return sorted(map(str, names))


def _cluster(image: ClusterImage) -> Iterator[str]:
    brokers, controllers = image.quorum_brokers, image.quorum_controllers
    yield from _block(
        0, "brokers", (line for name in _sorted(brokers) for line in _leaf(name, _broker(brokers[int(name)])))
    )
    yield from _block(
        0,
        "controllers",
        (line for name in _sorted(controllers) for line in _leaf(name, _controller(controllers[int(name)]))),
    )


def _endpoints(endpoints: Iterable[AdvertisedListener]) -> str:
    texts = [
        f"Endpoint(listenerName='{e.listener}', securityProtocol={e.security_protocol}, host='{e.host}', port={e.port})"
        for e in sorted(endpoints, key=lambda endpoint: endpoint.listener)
    ]
    return f"[{', '.join(texts)}]"


def _ranges(features: Mapping[str, VersionRange]) -> str:
    return "{" + ", ".join(f"{name}: {low}-{high}" for name, (low, high) in sorted(features.items())) + "}"


def _ids(directories: Iterable[bytes]) -> str:
    return f"[{', '.join(map(uuid_to_text, directories))}]"


def _truth(value: bool) -> str:
    return str(value).lower()


def _broker(broker: QuorumBroker) -> str:
    registration = broker.registration
    rack = "Optional.empty" if registration.rack is None else f"Optional[{registration.rack}]"
    return (
        f"BrokerRegistration(id={registration.broker_id}, epoch={broker.epoch}, "
        f"incarnationId={uuid_to_text(broker.incarnation_id)}, listeners={_endpoints(registration.endpoints)}, "
        f"supportedFeatures={_ranges(broker.features)}, rack={rack}, fenced={_truth(broker.is_fenced)}, "
        f"inControlledShutdown={_truth(broker.is_shutting_down)}, isMigratingZkBroker={_truth(broker.is_migrating)}, "
        f"directories={_ids(broker.directories)}, "
        f"cordonedDirectories={'null' if broker.cordoned is None else _ids(broker.cordoned)})"
    )


def _controller(controller: QuorumController) -> str:
    return (
        f"ControllerRegistration(id={controller.controller_id}, incarnationId={uuid_to_text(controller.incarnation_id)}, "
        f"zkMigrationReady={_truth(controller.is_ready_to_migrate)}, listeners={_endpoints(controller.endpoints)}, "
        f"supportedFeatures={_ranges(controller.features)})"
    )


def _configs(image: ClusterImage) -> Iterator[str]:
    named = {
        _KINDS[kind] + ("" if name is DEFAULT else f":{name}"): configs
        for (kind, name), configs in image.configs.items()
    }
    for name in sorted(named):
        lines = (line for key, value in sorted(named[name].items()) for line in _leaf(key, value))
        yield from _block(0, name, lines)


def _features(image: ClusterImage) -> Iterator[str]:
    levels = {} if image.features is None else dict(image.features.levels)
    level = levels.pop(FEATURE)
    levels.pop(KRAFT_VERSION, None)
    for name, value in sorted(levels.items()):
        yield from _leaf(f"finalized_{name}", str(value))
    yield from _leaf("metadataVersion", f"Optional[{release_of(level)}]")


def _scram(image: ClusterImage) -> Iterator[str]:
    for mechanism in ScramMechanism:
        users = sorted(user for user, credentials in image.scram.items() if mechanism in credentials)
        yield from _block(0, mechanism.sasl_name, (f"{user}:" for user in users))


def _topics(image: ClusterImage) -> Iterator[str]:
    by_id = {uuid_to_text(topic_id): topic for topic_id, topic in image.topics_by_id.items()}
    by_name = dict(image.topics.items())
    yield from _block(0, "byId", _each_topic(by_id))
    yield from _block(0, "byName", _each_topic(by_name))


def _each_topic(topics: Mapping[str, TopicImage]) -> Iterator[str]:
    for name in sorted(topics):
        partitions = topics[name].partitions
        lines = [line for n in _sorted(partitions) for line in _leaf(n, _partition(partitions[int(n)]))]
        topic = topics[name]
        lines += [*_leaf("id", uuid_to_text(topic.topic_id)), *_leaf("name", topic.name)]
        yield from _block(0, name, lines)


def _partition(partition: PartitionRegistration) -> str:
    state = "RECOVERING" if partition.is_recovering else "RECOVERED"
    return (
        f"PartitionRegistration(replicas={list(partition.replicas)}, directories={_ids(partition.directories)}, "
        f"isr={list(partition.isr)}, removingReplicas={list(partition.removing)}, "
        f"addingReplicas={list(partition.adding)}, elr={list(partition.elr)}, "
        f"lastKnownElr={list(partition.last_known_elr)}, leader={partition.leader}, leaderRecoveryState={state}, "
        f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def _acls(image: ClusterImage) -> Iterator[str]:
    ids = sorted(map(uuid_to_text, image.acl_ids))
    yield from _block(0, "byId", (f"{each}:" for each in ids))


def _quotas(image: ClusterImage) -> Iterator[str]:
    named = {_entity(named_entity(entity)): quotas for entity, quotas in image.quotas.items()}
    for name in sorted(named):
        lines = (line for key, value in sorted(named[name].items()) for line in _leaf(key, str(value)))
        yield from _block(0, name, lines)


def _entity(named: Mapping[str, str | None]) -> str:
    words = {"client-id": "clientId", "ip": "ip", "user": "user"}
    return "_".join(f"{word}({named[kind]})" for kind, word in words.items() if kind in named)


def replayed(batches: Iterator[RecordBatch]) -> ClusterImage:
    """The image of a whole log; the transaction at its beginning is committed."""
    replay, position = RecordReplay(ClusterImage()), LogPosition(0, 0, 0)
    transactions = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
    for batch in batches:
        if not batch.is_control:
            records = metadata_records(batch)
            replay.replay_all(record for record in records if not isinstance(record, transactions))
        position = LogPosition(batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp)
    return ClusterImage().apply(replay.delta(position))


def image_of_snapshot(path: Path) -> ClusterImage:
    """The image that a snapshot has."""
    replay = RecordReplay(ClusterImage())
    for records in SnapshotReader(path.read_bytes(), path.name).batches():
        replay.replay_all(records)
    return ClusterImage().apply(replay.delta(LogPosition(1, 1, 1)))
