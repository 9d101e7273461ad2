"""The table of APIs on a controller's listener, with versions and rights: those that Kafka's messages name for it.

Rights are ControllerApis'. Where a whole request needs one on the cluster, it is checked before the handler is called; the
others the handler checks, by topic or by resource.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

from ...security.acl import Operation, ResourceType
from ...wire.api_keys import ApiKey
from ..rights import NOTHING, Right, of_cluster, of_topic
from ..table import ErrorResponse, Handle, Handler, ServedApis, plain_error

_O = Operation
_Implementation = Callable[["ControllerHandler"], tuple[Handle, ErrorResponse]]


@dataclasses.dataclass(slots=True)
class ControllerHandler(Handler):
    """An API of controllers alone, or one that they handle otherwise than brokers."""

    made_by: _Implementation = dataclasses.field(kw_only=True)
    """Finds the functions of the API."""

    def implementation(self) -> tuple[Handle, ErrorResponse]:
        return self.made_by(self)


def _own(handler: ControllerHandler) -> tuple[Handle, ErrorResponse]:
    """Those of the module of this package that has the API's name."""
    module = importlib.import_module(f".{handler.api_key.name.lower()}", __package__)
    return module.handle, module.error_response


def _operation(handler: ControllerHandler) -> tuple[Handle, ErrorResponse]:
    """The controller carries out the request, or Raft answers it; errors are as a broker's where brokers have the API."""
    from . import operations

    return operations.handle, _error_response(handler.api_key)


def _token(handler: ControllerHandler) -> tuple[Handle, ErrorResponse]:
    from . import delegation_tokens

    creates = handler.api_key is ApiKey.CREATE_DELEGATION_TOKEN
    return delegation_tokens.create if creates else delegation_tokens.change, _error_response(handler.api_key)


def _error_response(api_key: ApiKey) -> ErrorResponse:
    if api_key in _WITH_PLAIN_ERRORS:
        return plain_error
    module = importlib.import_module(f"..{api_key.name.lower()}", __package__)
    response: ErrorResponse = module.error_response
    return response


def _by(
    made_by: _Implementation,
    api_key: ApiKey,
    lowest: int,
    highest: int,
    cluster_right: Operation | None = None,
    rights: tuple[Right, ...] | None = None,
) -> ControllerHandler:
    return ControllerHandler(api_key, lowest, highest, cluster_right=cluster_right, rights=rights, made_by=made_by)


_WITH_PLAIN_ERRORS = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    }
)
"""APIs that brokers don't have, or have for other things, and whose error is a field of the response."""

CONTROLLER_HANDLERS: tuple[Handler, ...] = (
    # Among the nodes of the quorum, and from brokers that follow it.
    _by(_operation, ApiKey.FETCH, 4, 18, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.VOTE, 0, 2, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.END_QUORUM_EPOCH, 0, 1, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.FETCH_SNAPSHOT, 0, 1, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.DESCRIBE_QUORUM, 0, 2, _O.DESCRIBE),
    _by(_operation, ApiKey.ADD_RAFT_VOTER, 0, 1, _O.ALTER),
    _by(_operation, ApiKey.REMOVE_RAFT_VOTER, 0, 0, _O.ALTER),
    _by(_operation, ApiKey.UPDATE_RAFT_VOTER, 0, 0, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.CONTROLLER_REGISTRATION, 0, 0, _O.CLUSTER_ACTION),
    # From brokers.
    _by(_operation, ApiKey.BROKER_REGISTRATION, 0, 4, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.BROKER_HEARTBEAT, 0, 2, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.ALTER_PARTITION, 2, 3, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, _O.CLUSTER_ACTION),
    _by(_operation, ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, _O.CLUSTER_ACTION),
    _by(_own, ApiKey.ENVELOPE, 0, 0, _O.CLUSTER_ACTION),
    # What clients ask, by way of a broker or directly (KIP-919).
    Handler(ApiKey.SASL_HANDSHAKE, 0, 1, rights=NOTHING),
    Handler(ApiKey.SASL_AUTHENTICATE, 0, 2, rights=NOTHING),
    Handler(ApiKey.API_VERSIONS, 0, 5, rights=NOTHING),
    _by(
        _operation,
        ApiKey.CREATE_TOPICS,
        2,
        7,
        rights=(*of_cluster(_O.CREATE), *of_topic(_O.CREATE, _O.DESCRIBE_CONFIGS)),
    ),
    _by(
        _operation,
        ApiKey.DELETE_TOPICS,
        1,
        6,
        rights=(*of_topic(_O.DELETE, _O.DESCRIBE), *of_cluster(_O.DELETE)),
    ),
    _by(_operation, ApiKey.CREATE_PARTITIONS, 0, 3, rights=of_topic(_O.ALTER)),
    Handler(ApiKey.DESCRIBE_ACLS, 1, 3, cluster_right=_O.DESCRIBE),
    _by(_operation, ApiKey.CREATE_ACLS, 1, 3, _O.ALTER),
    _by(_operation, ApiKey.DELETE_ACLS, 1, 3, _O.ALTER),
    _by(_own, ApiKey.DESCRIBE_CONFIGS, 1, 4, rights=(*of_topic(_O.DESCRIBE_CONFIGS), *of_cluster(_O.DESCRIBE_CONFIGS))),
    _by(_operation, ApiKey.ALTER_CONFIGS, 0, 2, rights=(*of_topic(_O.ALTER_CONFIGS), *of_cluster(_O.ALTER_CONFIGS))),
    _by(
        _operation,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        0,
        1,
        rights=(*of_topic(_O.ALTER_CONFIGS), *of_cluster(_O.ALTER_CONFIGS, _O.CLUSTER_ACTION)),
    ),
    _by(_token, ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, rights=(Right(ResourceType.USER, _O.CREATE_TOKENS),)),
    _by(_token, ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, rights=NOTHING),
    _by(_token, ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, rights=NOTHING),
    # Kafka's controller names this one and DescribeUserScramCredentials, and answers both with UNKNOWN_SERVER_ERROR.
    Handler(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        1,
        3,
        rights=(Right(ResourceType.DELEGATION_TOKEN, _O.DESCRIBE), Right(ResourceType.USER, _O.DESCRIBE_TOKENS)),
    ),
    Handler(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, cluster_right=_O.DESCRIBE),
    _by(_operation, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, _O.ALTER),
    _by(_operation, ApiKey.ELECT_LEADERS, 0, 2, _O.ALTER),
    _by(_operation, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, _O.ALTER),
    _by(_operation, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, _O.DESCRIBE),
    _by(_operation, ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, _O.ALTER_CONFIGS),
    _by(_operation, ApiKey.UPDATE_FEATURES, 0, 2, _O.ALTER),
    _by(_own, ApiKey.DESCRIBE_CLUSTER, 0, 2, rights=of_cluster(_O.ALTER)),
    _by(_operation, ApiKey.UNREGISTER_BROKER, 0, 0, _O.ALTER),
)

SERVED_BY_CONTROLLERS = ServedApis({int(handler.api_key): handler for handler in CONTROLLER_HANDLERS})
"""All of them, without checks."""
