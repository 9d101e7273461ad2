"""This broker as the target of actions (``kafka_requests.Kafka``): its dispatch gets requests as from a client.

So handlers, quotas, the authorizer, the audit log and the list of requests see what they see of any client: the visitor's
principal and address. What another broker has to do (the controller, a leader, a coordinator) is sent there over the brokers'
own listener, where it counts as this broker's; the handler here looks at the visitor's rights before (``Rehearsal``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import trio

from ..base.errors import ErrorCode, KafkaError, ProtocolError
from ..base.network import Part
from ..base.partitions import TopicPartition
from ..broker.listeners.dispatch import PendingAnswer, answer
from ..handlers.call import Call, CloseConnection, RequestObserver
from ..handlers.connection_context import ConnectionContext
from ..handlers.rights import TOPIC
from ..handlers.services import Services
from ..replication.broker_client import NoAnswerError
from ..view.own.broker_view import ViewedBroker
from ..wire.api_keys import ApiKey
from ..wire.codec import decode, encode_bytes
from ..wire.headers import decode_response_header, encode_request_header
from ..wire.messages.find_coordinator import FindCoordinatorRequest
from ..wire.registry import response_class
from ..wire.schema import Message
from .kafka_requests import HIGHEST, AnyBrokerTarget, ControllerTarget, GroupCoordinatorTarget, LeaderTarget, To
from .rehearsal import Rehearsal
from .visitor import current
from .visitor_rights import VisitorRights

CLIENT_ID = "ottla-console"
_RESPONSE_SECONDS = 40.0
_FIND_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_SIZE_BYTES = 4


class OwnBroker:
    """Asks as the visitor of the request at hand."""

    def __init__(self, broker: ViewedBroker) -> None:
        self._broker = broker
        self._rights = VisitorRights(broker)

    async def ask(self, request: Message, to: To) -> Any:
        """See ``KafkaRequests``."""
        services = self._services()
        node = await self._node(services, to)
        if node == services.node_id:
            return await self._ask_here(services, request)
        if services.authorizer is not None:
            rehearsal = Rehearsal(services, services.authorizer)
            answered = await _dispatch(self._call(rehearsal.services, None), request)
            if not rehearsal.may_be_sent():
                return answered
        return await self._ask_there(request, node)

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> Sequence[Sequence[TopicPartition]]:
        """See ``KafkaRequests``."""
        services = self._services()
        found: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            found.setdefault(_leader(services, *each), []).append(each)
        return list(found.values())

    def _services(self) -> Services:
        assembly = self._broker.assembly
        if assembly is None or not assembly.is_started:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The broker has not started yet.")
        return assembly.services

    async def _ask_here(self, services: Services, request: Message) -> Any:
        return await _dispatch(self._call(services, self._broker.monitor.observer), request)

    def _call(self, services: Services, observer: RequestObserver | None) -> Call:
        """Of the visitor, as if over the listener that every broker has: responses name brokers that are at the same one."""
        assembly, visitor = self._broker.assembly, current().connection
        assert assembly is not None
        connection = ConnectionContext(assembly.peers.listener, visitor.peer)
        connection.principal = visitor.principal
        return Call(services, connection, _nothing, observer)

    async def _node(self, services: Services, to: To) -> int:
        """Raises KafkaError where there is none."""
        match to:
            case AnyBrokerTarget():
                return services.node_id
            case ControllerTarget():
                if services.metadata.controller_id < 0:
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "No broker is the controller just now.")
                return services.metadata.controller_id
            case LeaderTarget(topic, number):
                return _leader(services, topic, number)
            case GroupCoordinatorTarget(group):
                return await self._coordinator(services, group)

    async def _coordinator(self, services: Services, group: str) -> int:
        until = trio.current_time() + _FIND_SECONDS
        while True:
            found = await self._ask_here(services, FindCoordinatorRequest(key=group))
            if not found.error_code:
                return int(found.node_id)
            code = ErrorCode(found.error_code)
            if code is not ErrorCode.COORDINATOR_NOT_AVAILABLE or trio.current_time() >= until:
                raise KafkaError(code, found.error_message)
            await trio.sleep(_PAUSE_SECONDS)

    async def _ask_there(self, request: Message, node: int) -> Any:
        assembly = self._broker.assembly
        assert assembly is not None
        try:
            client = assembly.peers.client(node, "console", timeout=_RESPONSE_SECONDS)
            version = await client.negotiate(type(request), HIGHEST.get(ApiKey(request.api_key)))
            response = await client.send(request, version)
        except NoAnswerError as error:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"Broker {node}, which has to do this, did not answer; it may have done it: {error}.",
            ) from None
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        if request.api_key == ApiKey.OFFSET_FETCH:  # of all topics, if none is named
            response.topics = [
                topic for topic in response.topics if self._rights.may(ApiKey.OFFSET_FETCH, TOPIC, topic.name)
            ]
        return response


def _leader(services: Services, topic: str, number: int) -> int:
    """Raises KafkaError where there is none."""
    cached = services.metadata.topic(topic)
    partition = None if cached is None else cached.partitions.get(number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {topic}-{number}.")
    if partition.leader < 0:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{number} has no leader.")
    return partition.leader


async def _nothing() -> None:
    """There are no responses before this one that had to leave first."""
    await trio.lowlevel.checkpoint()


async def _dispatch(call: Call, request: Message) -> Any:
    key = ApiKey(request.api_key)
    handler = call.broker.served.by_key.get(key)
    if handler is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"This broker does not serve {key.name}.")
    version = min(handler.highest, HIGHEST.get(key, handler.highest))
    try:
        head = encode_request_header(key, version, 0, CLIENT_ID)
        frame = bytearray(head + encode_bytes(request, version))  # records are stamped where they are
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if call.observer is not None:
        call.start_turn(call.observer.elapsed())
    try:
        parts = await answer(call, memoryview(frame))
        assert not isinstance(parts, PendingAnswer)
    except (ProtocolError, CloseConnection) as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    finally:
        call.report_batch()
    if call.throttle_ms:  # a quota holds a visitor up as it does a client
        await trio.sleep(call.throttle_ms / 1000)
    return _read(key, version, parts)


def _read(key: ApiKey, version: int, parts: list[Part] | None) -> Any:
    assert parts is not None, "requests without a response are not sent here"
    pieces = [part for part in parts if isinstance(part, bytes | bytearray | memoryview)]
    assert len(pieces) == len(parts), "files are not read here"
    data = memoryview(b"".join(pieces))
    _, start = decode_response_header(data[_SIZE_BYTES:], key, version)
    return decode(response_class(key), version, data[_SIZE_BYTES + start :])
