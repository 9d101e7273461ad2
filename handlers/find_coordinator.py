"""FindCoordinator (key 10): which broker coordinates a group, a transaction or a share partition.

Behaviour: the coordinator is the leader of the partition of ``__consumer_offsets`` that the group's id hashes to, or of
``__transaction_state`` and the transactional id, or of ``__share_group_state`` and the key of the share partition. The first
request creates that topic and is answered once its leader is known; until there are enough brokers for its replicas the
response is COORDINATOR_NOT_AVAILABLE. A share partition is ``group:topic id:partition`` with the topic id in base64url. Another
text is INVALID_REQUEST, and so is every one before version 6 or where there are no share groups.

Version notes: 1 adds the key's type (before, it is a group), the throttle time and a text with the error; 3 is flexible;
4 asks for many keys at once (KIP-699), each with its own response; 5 allows TRANSACTION_ABORTABLE in the response; 6 adds the
key type of share groups.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_LEADER
from ..group_coordinator.coordinator import GroupCoordinator
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..replication.metadata_cache import BrokerNode
from ..security.acl import Operation, ResourceType
from ..share_coordinator.coordinator import ShareCoordinator
from ..share_coordinator.settings import TOPIC as SHARE_STATE_TOPIC
from ..share_coordinator.state import SharePartitionKey
from ..transaction_coordinator.coordinator import TransactionCoordinator
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from .auto_creation import create_coordinator_topic
from .call import Call
from .joining import wait_initialized
from .mutations import permissive_charge
from .rights import CLUSTER, check
from .share_groups import is_enabled

GROUP = 0
TRANSACTION = 1
SHARE = 2

_MANY_KEYS_FROM = 4
_SHARE_FROM = 6
_LOAD_SECONDS = 1.0


async def handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    await wait_initialized(call)
    if call.version >= _MANY_KEYS_FROM:
        return FindCoordinatorResponse(
            coordinators=[await _find_one(call, request.key_type, key) for key in request.coordinator_keys]
        )
    node = await _find(call, request.key_type, request.key)
    return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=node.port)


def error_response(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[_failed(key, error) for key in request.coordinator_keys])
    return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, port=-1)


def _failed(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message)


async def _find_one(call: Call, key_type: int, key: str) -> Coordinator:
    try:
        node = await _find(call, key_type, key)
    except KafkaError as error:
        return _failed(key, error)
    return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)


async def _find(call: Call, key_type: int, key: str) -> BrokerNode:
    broker = call.broker
    coordinator: GroupCoordinator | TransactionCoordinator | ShareCoordinator
    if key_type == GROUP:
        check(call, Operation.DESCRIBE, ResourceType.GROUP, key)
        topic, coordinator = OFFSETS_TOPIC, broker.groups
    elif key_type == TRANSACTION:
        check(call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
        topic, coordinator = TRANSACTIONS_TOPIC, broker.transactions
    elif key_type == SHARE and call.version >= _SHARE_FROM:
        check(call, Operation.CLUSTER_ACTION, CLUSTER)
        key = _share_key(call, key)
        topic, coordinator = SHARE_STATE_TOPIC, broker.share_coordinator
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    is_new = broker.metadata.topic(topic) is None
    if is_new:
        await call.flush()
        await create_coordinator_topic(broker, topic, permissive_charge(call))
    partition = coordinator.partition_for(key)
    state = broker.metadata.partition(topic, partition)
    leader = NO_LEADER if state is None else state.leader
    node = broker.metadata.nodes(call.connection.listener).get(leader)
    if node is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic}-{partition} has no leader")
    if is_new and leader == broker.node_id:
        # The client's next request comes here; while the empty partition is loaded it would have to try again.
        with trio.move_on_after(_LOAD_SECONDS):
            await coordinator.wait_loaded(partition)
    return node


def _share_key(call: Call, key: str) -> str:
    """The key in the form whose hash counts."""
    if not is_enabled(call):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "there are no share groups")
    try:
        return SharePartitionKey.of(key).coordinator_key()
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
