"""Metadata (key 3): the brokers, the controller, and who leads which partition.

Behaviour: addresses are those of the listener that the client is connected to. A topic that does not exist is made, if the
client and auto.create.topics.enable allow it, and answered with its leaders at once; otherwise it is
UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for a name that cannot exist. Until a controller has told this broker of
the cluster the client waits, and after a while a topic is LEADER_NOT_AVAILABLE: if it were unknown, librdkafka would give up the
records it has for it (Apache Kafka's broker answers that it is unknown). A topic asked for by id has its name
in the response; an id that no topic has is UNKNOWN_TOPIC_ID, with no name. Topics that the client may not describe are left out
where it asks for all, else TOPIC_AUTHORIZATION_FAILED whether they exist or not, without id (or, asked for by id, without
name); so is a topic that it may not make. The controller named is a live broker. A topic's response is kept until something about
it changes, since Spark's pattern subscriptions list every topic again and again.

Version notes: 0 means all topics by an empty list, later versions by null; 0 also leaves out brokers that are down and
says REPLICA_NOT_AVAILABLE instead. A leader without the client's listener is LEADER_NOT_AVAILABLE up to 5 and
LISTENER_NOT_FOUND from 6. 4 adds the flag that allows auto-creation. 7 adds leader epochs, 8 authorized operations (of
the cluster to 10 only), 10 topic ids, which may be asked for from 12 on. 13 adds an error code for the whole response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode, KafkaError
from ..controller.settings import ControllerSettings
from ..metadata.image import TopicImage
from ..metadata.rules.topic_names import INTERNAL_TOPICS, why_invalid
from ..metadata.types import PartitionRegistration
from ..replication.metadata_cache import BrokerNode, MetadataCache
from ..security.acl import Operation
from ..wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..wire.schema import ZERO_UUID, replace
from .auto_creation import create_missing
from .call import Call
from .joining import wait_initialized
from .mutations import permissive_charge
from .rights import CLUSTER, NOT_ASKED, TOPIC, allowed_names, authorized_operations, cluster_operations, may

_FIRST_VERSION_WITH_LISTENER_ERRORS = 6
_FIRST_VERSION_BY_ID = 12


async def handle(call: Call, request: MetadataRequest) -> MetadataResponse:
    await wait_initialized(call)
    topics = await _topics(call, request)
    if request.include_topic_authorized_operations:
        topics = [_with_operations(call, topic) for topic in topics]
    metadata = call.broker.metadata
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in _nodes(call)
        ],
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(call) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _nodes(call: Call) -> Iterable[BrokerNode]:
    """The live brokers. Where each broker was fenced, this one, which answers, is the only one.

    librdkafka forgets all that a response does not have, and then asks nobody any more.
    """
    metadata, listener = call.broker.metadata, call.connection.listener
    nodes = metadata.nodes(listener)
    own = None if nodes else metadata.registered_node(listener, call.broker.node_id)
    return nodes.values() if own is None else [own]


async def _topics(call: Call, request: MetadataRequest) -> list[MetadataResponseTopic]:
    metadata = call.broker.metadata
    if request.topics is None or (call.version == 0 and not request.topics):
        known = metadata.topics
        if call.broker.authorizer is not None:
            visible = allowed_names(call, Operation.DESCRIBE, TOPIC, known, log_if_denied=False)
            return [describe_topic(call, topic) for name, topic in known.items() if name in visible]
        return [describe_topic(call, topic) for topic in known.values()]
    names, ids = _asked(call, request.topics)
    answers = [_by_id(call, metadata, topic_id) for topic_id in ids]
    visible = allowed_names(call, Operation.DESCRIBE, TOPIC, names)
    missing = [name for name in names if name in visible and metadata.topic(name) is None]
    errors: dict[str, ErrorCode] = {name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for name in names if name not in visible}
    if missing and request.allow_auto_topic_creation and _creates_topics(call):
        creatable = missing
        if not may(call, Operation.CREATE, CLUSTER, log_if_denied=False):
            allowed = allowed_names(call, Operation.CREATE, TOPIC, missing)
            creatable = [name for name in missing if name in allowed]
            errors |= dict.fromkeys(set(missing) - allowed, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if creatable:
            await call.flush()
            errors |= await create_missing(call.broker, creatable, permissive_charge(call))
    answers += [_by_name(call, metadata, name, errors.get(name)) for name in names]
    return answers


def _creates_topics(call: Call) -> bool:
    return call.broker.config.settings(ControllerSettings).auto_create_topics_enable


def _with_operations(call: Call, topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """``topic`` with what the client may do to it, unless it may not see it."""
    if topic.name is None or topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return topic
    return replace(topic, topic_authorized_operations=authorized_operations(call, TOPIC, topic.name))


def _asked(call: Call, topics: Iterable[MetadataRequestTopic]) -> tuple[list[str], list[bytes]]:
    """The names and the ids in a request, each once. Raises KafkaError INVALID_REQUEST."""
    names: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    for topic in topics:
        if call.version < _FIRST_VERSION_BY_ID and topic.topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported for version {call.version}")
        if topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] = None
        elif topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic with neither a name nor an id")
        else:
            names[topic.name] = None
    return list(names), list(ids)


def _by_id(call: Call, metadata: MetadataCache, topic_id: bytes) -> MetadataResponseTopic:
    topic = metadata.topic_by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if not may(call, Operation.DESCRIBE, TOPIC, topic.name):
        # The client sent the id; the name it may not learn.
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return describe_topic(call, topic)


def _by_name(call: Call, metadata: MetadataCache, name: str, error: ErrorCode | None) -> MetadataResponseTopic:
    if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return MetadataResponseTopic(error_code=error, name=name)
    topic = metadata.topic(name)
    if topic is not None:
        return describe_topic(call, topic)
    if error is None and why_invalid(name):
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif error is None and metadata.is_initialized:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif error in (None, ErrorCode.NONE):
        # This broker knows no cluster yet, or the topic was just made and is not in its metadata: the client is to try again.
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def describe_topic(call: Call, topic: TopicImage) -> MetadataResponseTopic:
    """A topic's response, made once per listener and kind of version."""
    with_listener_errors = call.version >= _FIRST_VERSION_WITH_LISTENER_ERRORS
    key = (call.connection.listener, call.version == 0, with_listener_errors)
    derived = call.broker.metadata.derived(topic)
    answer = derived.get(key)
    if answer is None:
        nodes = call.broker.metadata.nodes(call.connection.listener)
        answer = derived[key] = MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                _describe_partition(call, number, state, nodes, with_listener_errors)
                for number, state in topic.partitions.items()
            ],
        )
    assert isinstance(answer, MetadataResponseTopic)
    return answer


def leader_error(call: Call, leader: int, nodes: Mapping[int, BrokerNode], with_listener_errors: bool) -> ErrorCode:
    """Why a partition's leader cannot be named to this client; NONE when it can."""
    if leader in nodes:
        return ErrorCode.NONE
    if with_listener_errors and call.broker.metadata.is_alive(leader):
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


def _describe_partition(
    call: Call, number: int, state: PartitionRegistration, nodes: Mapping[int, BrokerNode], with_listener_errors: bool
) -> MetadataResponsePartition:
    error = leader_error(call, state.leader, nodes, with_listener_errors)
    replicas, isr = list(state.replicas), list(state.isr)
    if call.version == 0:
        replicas = [replica for replica in replicas if replica in nodes]
        isr = [replica for replica in isr if replica in nodes]
        if error == ErrorCode.NONE and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=state.leader if state.leader in nodes else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=call.broker.metadata.offline_replicas(state),
    )


def error_response(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
        error_code=error.code,
    )
