"""Requests that the active controller or its Raft node executes, and their authorization (ControllerApis).

A request whose time is up before it begins is refused with REQUEST_TIMED_OUT, and does nothing. Of one that has begun the
response waits for the commit, however long that takes, as in Kafka.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...base.errors import ErrorCode, KafkaError
from ...base.presence import while_present
from ...controller.new_topics import Charge
from ...controller.quorum.active.node import OF_RAFT
from ...controller.quorum.active.request_source import RequestSource
from ...security.acl import Operation
from ...wire.messages.alter_configs import AlterConfigsRequest
from ...wire.messages.alter_partition import AlterPartitionRequest
from ...wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ...wire.messages.create_acls import CreateAclsRequest
from ...wire.messages.create_partitions import CreatePartitionsRequest
from ...wire.messages.create_topics import CreateTopicsRequest
from ...wire.messages.delete_acls import DeleteAclsRequest
from ...wire.messages.delete_topics import DeleteTopicsRequest
from ...wire.messages.elect_leaders import ElectLeadersRequest
from ...wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ...wire.older_versions import drop_later_fields
from ...wire.schema import Message
from ..call import CloseConnection
from ..config_resources import ConfigResourceKind, check_right
from ..mutations import charge
from ..rights import CLUSTER, TOPIC, check, may
from .call import ControllerCall

_O = Operation

_TIMED = (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    ElectLeadersRequest,
    AlterPartitionReassignmentsRequest,
)
"""Those whose ``timeout_ms`` a controller looks at."""
_FREE = (*OF_RAFT, AlterPartitionRequest)
"""Those that cost the node that sends them nothing (sendResponseExemptThrottle)."""
_FIRST_STRICT_VERSIONS: dict[type[Message], int] = {
    CreateTopicsRequest: 6,
    DeleteTopicsRequest: 5,
    CreatePartitionsRequest: 3,
}
"""From which version on a request is refused where the client's quota of changes is exhausted (KIP-599)."""


async def handle(call: ControllerCall, request: Message) -> Any:
    """Raises KafkaError where all of the request is refused."""
    if call.cost is not None and isinstance(request, _FREE):
        call.cost.exempt()
    if isinstance(request, _TIMED) and request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    if isinstance(request, CreateAclsRequest | DeleteAclsRequest) and call.node.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    source = request_source(call, request)
    await call.flush()
    with while_present():
        response = await call.controller.quorum_node.ask(request, source, call.connection.listener)
        if isinstance(request, OF_RAFT) and call.version + 1 < type(request).valid_versions.stop:
            drop_later_fields(response, call.version)  # Raft responds as in the newest version
        return response
    # Reached when the peer has gone: the scope has cancelled the wait, and not what the controller does.
    raise CloseConnection("the client did not wait for the response")


def request_source(call: ControllerCall, request: Message) -> RequestSource:
    """Who asks, and what that client may do with the resources of this request."""
    client = functools.partial(
        RequestSource,
        version=call.version,
        principal=call.connection.principal,
        is_forwarded=call.is_forwarded,
        charge=_charge(call, request),
    )
    if call.node.authorizer is None:
        return client(check_config_right=_check_kind if isinstance(request, AlterConfigsRequest) else _allow)
    match request:
        case CreateTopicsRequest():
            return client(
                may_create=_or_by_cluster(call, _O.CREATE, _O.CREATE),
                may_describe=_by_topic(call, _O.DESCRIBE_CONFIGS, log_if_denied=False),
            )
        case DeleteTopicsRequest():
            return client(
                may_describe=_or_by_cluster(call, _O.DELETE, _O.DESCRIBE),
                may_delete=_or_by_cluster(call, _O.DELETE, _O.DELETE),
            )
        case CreatePartitionsRequest():
            return client(may_alter=_by_topic(call, _O.ALTER))
        case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
            return client(check_config_right=functools.partial(_check_config_right, call, request))
    return client()


def _charge(call: ControllerCall, request: Message) -> Charge:
    first_strict = _FIRST_STRICT_VERSIONS.get(type(request))
    charged = None if first_strict is None else charge(call, first_strict)
    return _free if charged is None else charged


def _free(partitions: int) -> None:
    """The client has no quota."""


def _by_topic(call: ControllerCall, operation: Operation, *, log_if_denied: bool = True) -> Callable[[str], bool]:
    """Whether the client may do this to a topic; each is looked at once."""
    return functools.cache(lambda name: may(call, operation, TOPIC, name, log_if_denied=log_if_denied))


def _or_by_cluster(call: ControllerCall, of_cluster: Operation, of_topic: Operation) -> Callable[[str], bool]:
    """The same, where a right on the cluster is one on every topic."""
    if may(call, of_cluster, CLUSTER, log_if_denied=False):
        return lambda name: True
    return _by_topic(call, of_topic)


def _allow(kind: int, name: str) -> None:
    """Everybody may."""


def _check_kind(kind: int, name: str) -> None:
    """AlterConfigs is not for loggers. Raises KafkaError."""
    if kind == ConfigResourceKind.BROKER_LOGGER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")


def _check_config_right(call: ControllerCall, request: Message, kind: int, name: str) -> None:
    """Loggers are for who may act as a node of the cluster; the others as ``check_right`` says. Raises KafkaError."""
    if isinstance(request, AlterConfigsRequest):
        _check_kind(kind, name)
    if kind == ConfigResourceKind.BROKER_LOGGER:
        check(call, _O.CLUSTER_ACTION, CLUSTER)
    else:
        check_right(call, _O.ALTER_CONFIGS, kind, name)
