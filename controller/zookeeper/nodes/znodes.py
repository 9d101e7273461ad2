"""The znodes of a Kafka cluster, their paths and their JSON, as written by Kafka 3.9 in ZooKeeper mode.

==================================== ==================================================================
``/brokers/ids/N``                   version 5: endpoints, listener to protocol map, rack; ephemeral
``/brokers/topics/T``                version 3: replicas by partition, topic id, running reassignments
``/brokers/topics/T/partitions/P/state``  leader, leader epoch, ISR, controller epoch
``/cluster/id``                      the id of the cluster
``/controller``                      the broker that is controller; ephemeral
``/controller_epoch``                a decimal number, raised by each new controller
``/config/topics/T``                 the settings that differ from the defaults
``/config/brokers/N``                the same of a broker; N is ``<default>`` for all brokers
``/config/users/U``                  quotas and SCRAM credentials of a user; below it ``clients/C``, quotas by client
``/config/clients/C``                quotas of a client id
``/config/ips/A``                    quotas of an address
``/config/changes/config_change_N``  tells every broker that a node under ``/config`` changed
``/admin/delete_topics/T``           the topic is to be deleted
``/admin/reassign_partitions``       replicas that old tools want moved (see ``admin_nodes``)
``/admin/preferred_replica_election``  partitions that they want led by their preferred replicas
``/latest_producer_id_block``        the producer ids handed out last
``/feature``                         version 2: what the brokers of the cluster have finalized (KIP-584)
``/brokers/seqid``                   its version is the number of broker ids that were made up
``/ottla_known_brokers``             Ottla's own: the registrations that controllers have handled (see ``known_brokers``)
``/log_dir_event_notification/log_dir_event_N``  a log directory of a broker has failed; the controller removes it
``/isr_change_notification/isr_change_N``  a leader of an older Kafka has written states itself; the controller removes it
==================================== ==================================================================

Keys keep the order in which Kafka was seen to write them. Readers ignore keys they don't know.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ....metadata.types import (
    REGISTRATION_VERSION,
    AdvertisedListener,
    BrokerRegistration,
    LeaderState,
    ReplicaAssignment,
    TopicAssignment,
)
from ....security.entities import (
    BROKERS,
    CLIENTS,
    DEFAULT,
    IPS,
    USERS,
    Default,
    EntityName,
    Name,
    UserClient,
)
from ....security.entities import (
    TOPICS as TOPIC_KIND,
)
from ....wire.schema import ZERO_UUID, uuid_from_text, uuid_to_text

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = CONFIG_CHANGES + "/config_change_"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
BROKER_SEQUENCE = "/brokers/seqid"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
KNOWN_BROKERS = "/ottla_known_brokers"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = LOG_DIR_EVENTS + "/log_dir_event_"
ISR_CHANGES = "/isr_change_notification"

PERSISTENT_PATHS = (
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/config",
    CONFIG_CHANGES,
    "/admin",
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    "/cluster",
)
"""Nodes that exist, without data, in every cluster; parents first."""

ENTITY_KINDS = (TOPIC_KIND, BROKERS, USERS, CLIENTS, IPS)
"""What configs, quotas and credentials can be set on in ZooKeeper mode."""

_CLIENTS_OF_USER = "clients"
_OF_USER = ("users", _CLIENTS_OF_USER)
_PLAIN_KINDS = ("topics", "brokers")

_ENDPOINT = re.compile(r"([^:/]+)://\[?([^\]/]*?)\]?:(\d+)")


class KnownRegistrations(NamedTuple):
    """The broker epochs that a controller has handled, by broker, and that controller's own epoch."""

    controller_epoch: int
    epochs: Mapping[int, int]


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return config_path("topics", entity_node("topics", topic))


def config_path(kind: str, entity: str | None = None) -> str:
    """The node of an entity, of which ``entity_node`` is the name, or the folder of all of its kind."""
    return f"/config/{kind}" if entity is None else f"/config/{kind}/{entity}"


def entity_node(kind: str, name: EntityName) -> str:
    """The node's name for what configs are set on, below that of its kind; of a client of a user ``USER/clients/CLIENT``.

    Names of users, clients and addresses are URL-encoded (Kafka's Sanitizer), so that ``<default>`` is none of them.
    """
    if isinstance(name, UserClient):
        return f"{entity_node(kind, name.user)}/{_CLIENTS_OF_USER}/{entity_node(kind, name.client_id)}"
    if isinstance(name, Default):
        return name.value
    return name if kind in _PLAIN_KINDS else urllib.parse.quote(name, safe="").replace("~", "%7E")


def entity_name(kind: str, node: str) -> EntityName:
    """The name that a node stands for. ValueError where nothing can be set at such a node."""
    parts = node.split("/")
    if not all(parts) or len(parts) not in (1, 3) or (len(parts) == 3 and (kind, parts[1]) != _OF_USER):
        raise ValueError(f"{kind}/{node} is not an entity")
    names = [_name(kind, part) for part in parts[::2]]
    return names[0] if len(names) == 1 else UserClient(*names)


def _name(kind: str, node: str) -> Name:
    if node == DEFAULT.value:
        return DEFAULT
    return node if kind in _PLAIN_KINDS else urllib.parse.unquote_plus(node)


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def encode_broker(registration: BrokerRegistration, now_ms: int) -> bytes:
    endpoints = registration.endpoints
    plaintext = next((e for e in endpoints if e.security_protocol == "PLAINTEXT"), None)
    fields: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {e.listener: e.security_protocol for e in endpoints},
        "endpoints": [f"{e.listener}://{_bracket(e.host)}:{e.port}" for e in endpoints],
        "jmx_port": -1,
        "port": plaintext.port if plaintext else -1,
        "host": plaintext.host if plaintext else None,
        "version": REGISTRATION_VERSION,
        "timestamp": str(now_ms),
    }
    if registration.rack is not None:
        fields["rack"] = registration.rack
    return _dump(fields)


def decode_broker(broker_id: int, data: bytes) -> BrokerRegistration:
    fields = json.loads(data)
    version = int(fields["version"])
    protocols = fields.get("listener_security_protocol_map", {})
    endpoints = []
    for text in fields["endpoints"] if version > 1 else ():  # the first layout has a host and a port only
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise ValueError(f"{broker_path(broker_id)}: {text!r} is not an endpoint")
        listener = match[1]
        endpoints.append(AdvertisedListener(listener, match[2], int(match[3]), protocols.get(listener, listener)))
    return BrokerRegistration(broker_id, tuple(endpoints), fields.get("rack"), version)


def encode_topic(assignment: TopicAssignment) -> bytes:
    partitions = assignment.partitions
    return _dump(
        {
            "partitions": {str(p): list(a.replicas) for p, a in partitions.items()},
            "topic_id": uuid_to_text(assignment.topic_id),
            "adding_replicas": {str(p): list(a.adding) for p, a in partitions.items() if a.adding},
            "removing_replicas": {str(p): list(a.removing) for p, a in partitions.items() if a.removing},
            "version": 3,
        }
    )


def decode_topic(data: bytes) -> TopicAssignment:
    fields = json.loads(data)
    adding = fields.get("adding_replicas") or {}
    removing = fields.get("removing_replicas") or {}
    partitions = {
        int(p): ReplicaAssignment(tuple(replicas), tuple(adding.get(p, ())), tuple(removing.get(p, ())))
        for p, replicas in fields["partitions"].items()
    }
    if not all(assignment.replicas for assignment in partitions.values()):
        raise ValueError("a partition without replicas")
    text = fields.get("topic_id")
    return TopicAssignment(uuid_from_text(text) if text else ZERO_UUID, dict(sorted(partitions.items())))


def encode_state(state: LeaderState) -> bytes:
    fields = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
    }
    if state.is_recovering:
        fields["leader_recovery_state"] = 1
    return _dump(fields)


def decode_state(data: bytes) -> LeaderState:
    fields = json.loads(data)
    return LeaderState(
        int(fields["leader"]),
        int(fields["leader_epoch"]),
        tuple(map(int, fields["isr"])),
        int(fields["controller_epoch"]),
        fields.get("leader_recovery_state") == 1,
    )


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return _dump({"version": 2, "brokerid": broker_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1})


def decode_controller(data: bytes) -> int:
    return int(json.loads(data)["brokerid"])


def encode_log_dir_event(broker_id: int) -> bytes:
    return _dump({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes) -> int:
    """The broker whose log directory has failed."""
    return int(json.loads(data)["broker"])


def decode_isr_change(data: bytes) -> list[tuple[str, int]]:
    """Topic and number of the partitions whose states a leader has written."""
    return [(str(entry["topic"]), int(entry["partition"])) for entry in json.loads(data)["partitions"]]


def encode_reassignments(wanted: Iterable[tuple[str, int, Sequence[int]]]) -> bytes:
    """Topic, number and replicas of partitions."""
    entries = [{"topic": topic, "partition": number, "replicas": list(replicas)} for topic, number, replicas in wanted]
    return _dump({"version": 1, "partitions": entries})


def decode_reassignments(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """Replicas by topic and number of the partition."""
    return {
        (str(entry["topic"]), int(entry["partition"])): tuple(map(int, entry["replicas"]))
        for entry in json.loads(data)["partitions"]
    }


def decode_elections(data: bytes) -> list[tuple[str, int]]:
    """Topic and number of the partitions."""
    return [(str(entry["topic"]), int(entry["partition"])) for entry in json.loads(data)["partitions"]]


def encode_cluster_id(cluster_id: str) -> bytes:
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(json.loads(data)["id"])


def encode_known_brokers(known: KnownRegistrations) -> bytes:
    brokers = {str(broker_id): epoch for broker_id, epoch in known.epochs.items()}
    return _dump({"version": 1, "controller_epoch": known.controller_epoch, "brokers": brokers})


def decode_known_brokers(data: bytes) -> KnownRegistrations:
    fields = json.loads(data)
    epochs = {int(broker_id): int(epoch) for broker_id, epoch in fields["brokers"].items()}
    return KnownRegistrations(int(fields["controller_epoch"]), epochs)


def encode_features(features: Mapping[str, int]) -> bytes:
    """The highest version of each finalized feature; layout 2, which Kafka writes since 3.3."""
    return _dump({"features": {n: {"max_version_level": v} for n, v in features.items()}, "version": 2, "status": 1})


def decode_features(data: bytes) -> dict[str, int]:
    """The finalized features; none where the node says that they are disabled (ZkData ``FeatureZNode``). Raises ValueError."""
    fields = json.loads(data)
    if fields["version"] not in (1, 2):
        raise ValueError(f"Unsupported version: {fields['version']} of feature information")
    if fields["status"] not in (0, 1):
        raise ValueError(f"Malformed status: {fields['status']} found in feature information")
    if fields["status"] == 0:
        return {}
    return {str(name): int(levels["max_version_level"]) for name, levels in fields["features"].items()}


def encode_config(config: Mapping[str, str]) -> bytes:
    return _dump({"version": 1, "config": dict(config)})


def decode_config(data: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in json.loads(data).get("config", {}).items()} if data else {}


def encode_config_change(entity_path: str) -> bytes:
    return _dump({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes) -> str:
    """The entity path, such as ``topics/t``; '' for a notification of a form that is not known.

    Kafka up to 0.9 wrote version 1, and later ones read it still (ZkConfigManager ``processEntityConfigChangeVersion1``).
    """
    fields = json.loads(data)
    if fields.get("version") == 1:
        return f"{fields['entity_type']}/{fields['entity_name']}"
    return str(fields.get("entity_path", ""))


def encode_producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    return _dump({"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)})


def decode_producer_id_block(data: bytes) -> tuple[int, int]:
    """First and last id of the block."""
    fields = json.loads(data)
    return int(fields["block_start"]), int(fields["block_end"])


def numbers(names: Sequence[str]) -> list[int]:
    """The numeric ones of some node names, in order."""
    return sorted(int(name) for name in names if name.isdigit())


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _dump(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
