"""The table of served APIs, with versions and rights, for dispatch, ApiVersions and the console.

``wire.registry`` has what the codec can read; a message that is declared there need not be served. Of the rights in a line, the
first is the one without which the API has nothing to show or do, and so it is of each type of resource: the console shows by it
what the API would (``right_to``).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..base.errors import KafkaError, ProtocolError
from ..security.acl import Operation, ResourceType
from ..wire.api_keys import ApiKey
from ..wire.headers import key_and_version, request_header_version, response_header_encoder
from ..wire.older_versions import drop_later_fields
from ..wire.registry import request_class, response_class
from ..wire.schema import Message
from .rights import (
    CLUSTER,
    NOTHING,
    Right,
    check,
    of_cluster,
    of_configs,
    of_group,
    of_topic,
    of_transactional_id,
)

Handle = Callable[[Any, Any], Awaitable[Any]]
"""Takes the ``Call`` and the API's request; not imported, because a call knows the services, and they know what is served."""
ErrorResponse = Callable[[Any, KafkaError], Any]


@dataclasses.dataclass(slots=True)
class Handler:
    """One served API. It has either ``rights`` or a ``cluster_right``."""

    api_key: ApiKey
    lowest: int
    highest: int
    advertise_from: int | None = None
    """The lowest version that ApiVersions names, where that is not ``lowest``."""
    rights: tuple[Right, ...] | None = None
    """Those that the API's handler checks itself."""
    cluster_right: Operation | None = None
    """The operation on the cluster that a client must be allowed for the API to be answered at all."""
    is_guarded: bool = False
    """Whether ``cluster_right`` is checked (``guarded``)."""
    handle: Handle | None = None
    error_response: ErrorResponse | None = None
    request_class: type[Any] | None = None

    def __post_init__(self) -> None:
        assert (self.rights is None) != (self.cluster_right is None), f"{self.api_key.name} declares no rights, or both"

    @property
    def looks_at(self) -> tuple[Right, ...]:
        """All rights that are looked at."""
        return self.rights or () if self.cluster_right is None else of_cluster(self.cluster_right)

    def load(self) -> None:
        """Import the module of the API, on its first request."""
        self.request_class = request_class(self.api_key)
        handle, self.error_response = self.implementation()
        self.handle = handle
        if self.is_guarded and self.cluster_right is not None:
            self.handle = _after_check(handle, self.cluster_right)

    def implementation(self) -> tuple[Handle, ErrorResponse]:
        """What handles a request, and what responds where that fails: those of the module that has the API's name."""
        module = importlib.import_module(f".{self.api_key.name.lower()}", __package__)
        return module.handle, module.error_response

    def refuse(self, version: int, request: Any, error: KafkaError) -> Any:
        """The response to a request that failed as a whole, without the fields that its version does not have."""
        assert self.error_response is not None
        response = self.error_response(request, error)
        drop_later_fields(response, version)
        return response


def plain_error(request: Message, error: KafkaError) -> Any:
    """The response of an API whose error is a field of the response, and has a message where there is a field for it."""
    response: Any = response_class(ApiKey(request.api_key))()
    response.error_code = error.code
    if any(spec.name == "error_message" for spec in response.fields):
        response.error_message = error.message
    return response


def _after_check(handle: Handle, cluster_right: Operation) -> Handle:
    """``handle`` for clients that have the right."""

    async def handle_if_allowed(call: Any, request: Any) -> Any:
        check(call, cluster_right, CLUSTER)
        return await handle(call, request)

    return handle_if_allowed


_O = Operation


HANDLERS = (
    # librdkafka before 2.11.1 sends uncompressed when the lowest Produce version is above 0 (KAFKA-18659).
    Handler(ApiKey.PRODUCE, 3, 13, advertise_from=0, rights=(*of_topic(_O.WRITE), *of_transactional_id(_O.WRITE))),
    Handler(ApiKey.FETCH, 4, 18, rights=(*of_topic(_O.READ), *of_cluster(_O.CLUSTER_ACTION))),
    Handler(ApiKey.LIST_OFFSETS, 1, 11, rights=of_topic(_O.DESCRIBE)),
    Handler(ApiKey.METADATA, 0, 13, rights=(*of_topic(_O.DESCRIBE, _O.CREATE), *of_cluster(_O.CREATE, _O.DESCRIBE))),
    # From a controller of ZooKeeper mode; Kafka 4 has none of the three any more.
    Handler(ApiKey.LEADER_AND_ISR, 0, 7, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.STOP_REPLICA, 0, 4, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.UPDATE_METADATA, 0, 8, cluster_right=_O.CLUSTER_ACTION),
    # To a controller of ZooKeeper mode, likewise.
    Handler(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.ALTER_PARTITION, 0, 3, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.OFFSET_COMMIT, 2, 10, rights=(*of_group(_O.READ), *of_topic(_O.READ))),
    Handler(ApiKey.OFFSET_FETCH, 1, 10, rights=(*of_group(_O.DESCRIBE), *of_topic(_O.DESCRIBE))),
    Handler(
        ApiKey.FIND_COORDINATOR,
        0,
        6,
        rights=(*of_group(_O.DESCRIBE), *of_transactional_id(_O.DESCRIBE), *of_cluster(_O.CLUSTER_ACTION)),
    ),
    Handler(ApiKey.JOIN_GROUP, 0, 9, rights=of_group(_O.READ)),
    Handler(ApiKey.HEARTBEAT, 0, 4, rights=of_group(_O.READ)),
    Handler(ApiKey.LEAVE_GROUP, 0, 5, rights=of_group(_O.READ)),
    Handler(ApiKey.SYNC_GROUP, 0, 5, rights=of_group(_O.READ)),
    Handler(ApiKey.DESCRIBE_GROUPS, 0, 6, rights=of_group(_O.DESCRIBE)),
    Handler(ApiKey.LIST_GROUPS, 0, 5, rights=(*of_cluster(_O.DESCRIBE), *of_group(_O.DESCRIBE))),
    Handler(ApiKey.SASL_HANDSHAKE, 0, 1, rights=NOTHING),
    Handler(ApiKey.API_VERSIONS, 0, 5, rights=NOTHING),
    Handler(ApiKey.CREATE_TOPICS, 2, 7, rights=(*of_cluster(_O.CREATE), *of_topic(_O.CREATE, _O.DESCRIBE_CONFIGS))),
    Handler(ApiKey.DELETE_TOPICS, 1, 6, rights=of_topic(_O.DELETE, _O.DESCRIBE)),
    Handler(ApiKey.DELETE_RECORDS, 0, 2, rights=of_topic(_O.DELETE)),
    # Version 6 (two-phase commit, KIP-939) is still marked unstable in Kafka.
    Handler(
        ApiKey.INIT_PRODUCER_ID,
        0,
        5,
        rights=(*of_transactional_id(_O.WRITE), *of_cluster(_O.IDEMPOTENT_WRITE), *of_topic(_O.WRITE)),
    ),
    Handler(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, rights=(*of_cluster(_O.CLUSTER_ACTION), *of_topic(_O.DESCRIBE))),
    Handler(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        0,
        5,
        rights=(*of_transactional_id(_O.WRITE), *of_topic(_O.WRITE), *of_cluster(_O.CLUSTER_ACTION)),
    ),
    Handler(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, rights=(*of_transactional_id(_O.WRITE), *of_group(_O.READ))),
    Handler(ApiKey.END_TXN, 0, 5, rights=of_transactional_id(_O.WRITE)),
    Handler(ApiKey.WRITE_TXN_MARKERS, 1, 2, rights=of_cluster(_O.ALTER, _O.CLUSTER_ACTION)),
    Handler(
        ApiKey.TXN_OFFSET_COMMIT, 0, 6, rights=(*of_transactional_id(_O.WRITE), *of_group(_O.READ), *of_topic(_O.READ))
    ),
    Handler(ApiKey.DESCRIBE_ACLS, 1, 3, cluster_right=_O.DESCRIBE),
    Handler(ApiKey.CREATE_ACLS, 1, 3, cluster_right=_O.ALTER),
    Handler(ApiKey.DELETE_ACLS, 1, 3, cluster_right=_O.ALTER),
    Handler(ApiKey.DESCRIBE_CONFIGS, 1, 4, rights=of_configs(_O.DESCRIBE_CONFIGS)),
    Handler(ApiKey.ALTER_CONFIGS, 0, 2, rights=of_configs(_O.ALTER_CONFIGS)),
    Handler(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, cluster_right=_O.ALTER),
    Handler(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, cluster_right=_O.DESCRIBE),
    Handler(ApiKey.SASL_AUTHENTICATE, 0, 2, rights=NOTHING),
    Handler(ApiKey.CREATE_PARTITIONS, 0, 3, rights=of_topic(_O.ALTER)),
    Handler(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, rights=(Right(ResourceType.USER, _O.CREATE_TOKENS),)),
    # Only a token's owner and its renewers can, whatever rights there are.
    Handler(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, rights=NOTHING),
    Handler(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, rights=NOTHING),
    Handler(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        0,
        3,
        rights=(
            Right(ResourceType.DELEGATION_TOKEN, _O.DESCRIBE),
            Right(ResourceType.USER, _O.DESCRIBE_TOKENS),
        ),
    ),
    Handler(ApiKey.DELETE_GROUPS, 0, 3, rights=of_group(_O.DELETE)),
    Handler(ApiKey.ELECT_LEADERS, 0, 2, cluster_right=_O.ALTER),
    Handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, rights=of_configs(_O.ALTER_CONFIGS)),
    Handler(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, cluster_right=_O.ALTER),
    Handler(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, cluster_right=_O.DESCRIBE),
    Handler(ApiKey.OFFSET_DELETE, 0, 0, rights=(*of_group(_O.DELETE), *of_topic(_O.READ))),
    Handler(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, cluster_right=_O.DESCRIBE),
    Handler(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, cluster_right=_O.ALTER),
    Handler(ApiKey.DESCRIBE_CLUSTER, 0, 2, rights=of_cluster(_O.DESCRIBE)),
    Handler(ApiKey.DESCRIBE_PRODUCERS, 0, 0, rights=of_topic(_O.READ)),
    Handler(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, rights=(*of_transactional_id(_O.DESCRIBE), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.LIST_TRANSACTIONS, 0, 2, rights=of_transactional_id(_O.DESCRIBE)),
    Handler(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, rights=(*of_group(_O.READ), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, rights=(*of_group(_O.DESCRIBE), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, rights=(*of_group(_O.READ), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, rights=(*of_group(_O.DESCRIBE), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, rights=(*of_group(_O.DESCRIBE), *of_topic(_O.DESCRIBE))),
    Handler(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, rights=(*of_group(_O.READ), *of_topic(_O.READ))),
    Handler(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, rights=(*of_group(_O.DELETE), *of_topic(_O.READ))),
    Handler(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, cluster_right=_O.DESCRIBE_CONFIGS),
    Handler(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, rights=of_topic(_O.DESCRIBE)),
    Handler(ApiKey.SHARE_FETCH, 1, 2, rights=(*of_group(_O.READ), *of_topic(_O.READ))),
    Handler(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, rights=(*of_group(_O.READ), *of_topic(_O.READ))),
    Handler(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, cluster_right=_O.CLUSTER_ACTION),
    Handler(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, cluster_right=_O.DESCRIBE_CONFIGS),
    Handler(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, cluster_right=_O.ALTER_CONFIGS),
    # Not Kafka's: only Ottla brokers are told of it.
    Handler(ApiKey.DESCRIBE_INSIDE, 0, 0, cluster_right=_O.CLUSTER_ACTION),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """One version of a served API: what dispatch needs to know before it reads a request."""

    handler: Handler
    api_key: int
    version: int
    header_version: int
    encode_response_header: Callable[[int], bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class ServedApis:
    """What one broker serves."""

    by_key: Mapping[int, Handler]
    has_features: bool = True
    """Whether the broker tells clients of features; in ZooKeeper mode there are none."""
    release: Mapping[ApiKey, tuple[int, int]] | None = None
    """The lowest and the highest version of each API of the release of Kafka that the broker looks like; None: of no release."""
    routes: dict[int, Route] = dataclasses.field(default_factory=dict, init=False)
    """Those that were asked for, by API key and version as ``start_of_request`` gives them."""

    def find_route(self, key: int) -> Route:
        """Raises ProtocolError for what is not served, UnservedApiVersionsError where that is a version of ApiVersions."""
        api_key, version = key_and_version(key)
        handler = self.by_key.get(api_key)
        if handler is None:
            raise ProtocolError(f"API key {api_key} is not served")
        if not handler.lowest <= version <= handler.highest:
            if api_key == ApiKey.API_VERSIONS:
                raise UnservedApiVersionsError
            raise ProtocolError(_unserved(handler, version))
        if handler.handle is None:
            handler.load()
        headers = request_header_version(api_key, version), response_header_encoder(api_key, version)
        route = self.routes[key] = Route(handler, api_key, version, *headers)
        return route


def _unserved(handler: Handler, version: int) -> str:
    """What to do about it stands here, in the broker's log: to its user the client says a lost connection, if anything."""
    text = f"{handler.api_key.name} version {version} is not served, only {handler.lowest} to {handler.highest}"
    if version >= handler.lowest:
        return text
    return (
        f"{text}: the client or its settings are too old, as for Apache Kafka 4. Use a client of Kafka 2.1 or "
        "newer, without settings like api_version and broker.version.fallback"
    )


class UnservedApiVersionsError(Exception):
    """The client is newer than the broker; the response tells it which versions there are, and the connection stays (KIP-511)."""


_HIGHEST_OF_FIRST_TRANSACTIONS = {ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4}
"""Higher versions are of transactions V2 (KIP-890), where leaders add partitions and each transaction has a new epoch."""


def without_transactions_v2(served: ServedApis) -> ServedApis:
    """What a broker on a ZooKeeper serves: a coordinator of Apache Kafka 3.9 could not continue a transaction of V2."""
    by_key = {
        key: dataclasses.replace(
            handler, highest=min(handler.highest, _HIGHEST_OF_FIRST_TRANSACTIONS.get(handler.api_key, handler.highest))
        )
        for key, handler in served.by_key.items()
    }
    return dataclasses.replace(served, by_key=by_key)


def without_newer_groups(served: ServedApis) -> ServedApis:
    """What a broker in ZooKeeper mode serves: no feature is finalized there, and Kafka 3.9 does not know newer groups there."""
    gone = (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    )
    by_key = {key: handler for key, handler in served.by_key.items() if handler.api_key not in gone}
    return dataclasses.replace(served, by_key=by_key)


def of_release(handler: Handler, release: Mapping[ApiKey, tuple[int, int]] | None) -> Handler | None:
    """The handler of an API as far as ``ServedApis.release`` has it; None where it has not."""
    if release is None:
        return handler
    lowest, highest = release.get(handler.api_key, (0, -1))
    lowest, highest = max(lowest, handler.lowest), min(highest, handler.highest)
    return dataclasses.replace(handler, lowest=lowest, highest=highest) if lowest <= highest else None


def guarded(served: ServedApis) -> ServedApis:
    """What a broker with an authorizer serves: rights on the cluster are checked before the handlers that need them."""
    by_key = {key: dataclasses.replace(handler, is_guarded=True, handle=None) for key, handler in served.by_key.items()}
    return dataclasses.replace(served, by_key=by_key)


SERVED = ServedApis({int(handler.api_key): handler for handler in HANDLERS})
"""Everything there is."""


@functools.cache
def right_to(api_key: ApiKey, resource_type: ResourceType | None = None) -> Right:
    """The first right in the line of an API, or the first on such a resource. Raises LookupError where there is none."""
    for right in SERVED.by_key[api_key].looks_at:
        if resource_type in (None, right.resource_type):
            return right
    raise LookupError(f"{api_key.name} checks no right on {resource_type or 'anything'}")
