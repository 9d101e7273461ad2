"""Requests to the brokers of a cluster: to any of them, to one, or to several at a time.

A broker is asked over one connection for each purpose, so that a page does not wait behind a large read of records. What cannot
be reached raises OSError; error codes in responses are the caller's to read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.network import Network
from ...replication.broker_client import BrokerClient, NoAnswerError, PeerUnavailableError, Secure
from ...wire.messages.api_versions import ApiVersionsRequest
from ...wire.messages.metadata import MetadataResponse
from ...wire.schema import Message

T = TypeVar("T")

Address = tuple[str, int]
ASKING = "asking"
READING = "reading"
_CLIENT_ID = "ottla-console"
_TIMEOUT = 10.0
_MOST_IN_FLIGHT = 5


class BrokerClients(Protocol):
    """The brokers that can be asked: those of a ``ClusterClient``, or a broker's peers."""

    @property
    def nodes(self) -> Mapping[int, Address]: ...

    async def ask_any(self, request: Message, *, lowest: int = 0, highest: int | None = None) -> Any: ...

    async def ask(self, broker_id: int, request: Message, highest: int | None = None, purpose: str = ...) -> Any: ...

    async def version(self, broker_id: int, request: type[Message], highest: int | None = None) -> int: ...


class BaseBrokerClients(ABC):
    """Requests to single brokers, by the client that ``_of`` returns for each."""

    async def ask(self, broker_id: int, request: Message, highest: int | None = None, purpose: str = ASKING) -> Any:
        """One broker's response. Raises OSError; KafkaError (UNSUPPORTED_VERSION) where it does not know such a request."""
        return await self._ask(self._of(broker_id, purpose), request, highest)

    async def version(self, broker_id: int, request: type[Message], highest: int | None = None) -> int:
        """The version that ``ask`` would take. Raises as ``ask``."""
        return await self._of(broker_id, ASKING).negotiate(request, highest)

    async def _ask(self, client: BrokerClient, request: Message, highest: int | None, lowest: int = 0) -> Any:
        version = await client.negotiate(type(request), highest)
        if version < lowest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"{client.peer} is older than version {lowest} of this request"
            )
        return await client.send(request, version)

    @abstractmethod
    def _of(self, broker_id: int, purpose: str) -> BrokerClient:
        """The client of a broker for a purpose. Raises OSError where the broker is not known to be alive."""


class ClusterClient(BaseBrokerClients):
    """Connections to the brokers of a cluster, which are found from bootstrap addresses."""

    def __init__(
        self, network: Network, bootstrap: Sequence[Address], secure: Secure | None = None, timeout: float = _TIMEOUT
    ) -> None:
        """``timeout``: seconds that one request may take."""
        self.nodes: Mapping[int, Address] = {}
        """The brokers by id, as of the last Metadata response (``follow``); empty before the first. Without those left out."""
        self._network = network
        self._bootstrap = tuple(bootstrap)
        self._secure = secure
        self._timeout = timeout
        self._clients: dict[tuple[Address, str], BrokerClient] = {}
        self._answered: Address | None = None
        self._left_out: frozenset[int] = frozenset()

    async def meet(self) -> None:
        """Find a bootstrap address that responds, which ``ask_any`` then begins with; all are asked at the same time.

        Raises OSError, of one of them, where none responds.
        """
        failures: list[OSError] = []

        async def greet(address: Address) -> None:
            try:
                await self._client(address, ASKING).negotiate(ApiVersionsRequest)
            except NoAnswerError as error:
                failures.append(error)
            else:
                self._answered = address
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for address in self._bootstrap:
                nursery.start_soon(greet, address)
        if self._answered is None:
            raise failures[0] if failures else PeerUnavailableError("there is no address to ask")

    def leave_out(self, broker_ids: Collection[int]) -> None:
        """Ask these brokers nothing from now on: they are not known to be alive."""
        gone = {address for broker_id, address in self.nodes.items() if broker_id in broker_ids}
        self._left_out = frozenset(broker_ids)
        self._bootstrap = tuple(address for address in self._bootstrap if address not in gone)
        self._take_over(self.nodes)

    def follow(self, metadata: MetadataResponse) -> None:
        """Take over where the brokers are; connections to addresses that are none of them any more are closed."""
        told = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        self._take_over(told or self.nodes)

    def _take_over(self, nodes: Mapping[int, Address]) -> None:
        self.nodes = {broker_id: address for broker_id, address in nodes.items() if broker_id not in self._left_out}
        kept = {*self.nodes.values(), *self._bootstrap}
        for key in [key for key in self._clients if key[0] not in kept]:
            self._clients.pop(key).close()

    async def ask_any(self, request: Message, *, lowest: int = 0, highest: int | None = None) -> Any:
        """The response of any broker: the one that has responded last, then the others.

        Raises OSError; KafkaError (UNSUPPORTED_VERSION) where it knows no version of the request from ``lowest`` on.
        """
        candidates = dict.fromkeys((*self.nodes.values(), *self._bootstrap))
        if self._answered in candidates:
            candidates = {self._answered: None, **candidates}
        failure: OSError = PeerUnavailableError("there is no address to ask")
        for address in candidates:
            assert address is not None
            try:
                answer = await self._ask(self._client(address, ASKING), request, highest, lowest)
            except NoAnswerError as error:
                failure = error
            else:
                self._answered = address
                return answer
        raise failure

    def _of(self, broker_id: int, purpose: str) -> BrokerClient:
        address = self.nodes.get(broker_id)
        if address is None:
            raise PeerUnavailableError(f"broker {broker_id} is not known to be alive")
        return self._client(address, purpose)

    def _client(self, address: Address, purpose: str) -> BrokerClient:
        client = self._clients.get((address, purpose))
        if client is None:
            client = self._clients[address, purpose] = BrokerClient(
                self._network,
                *address,
                _CLIENT_ID,
                timeout=self._timeout,
                max_in_flight=_MOST_IN_FLIGHT,
                secure=self._secure,
            )
        return client

    def close(self) -> None:
        """End every connection."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()


async def of_each(
    keys: Iterable[int], ask: Callable[[int], Awaitable[T]], failed: Callable[[int, Exception], None]
) -> dict[int, T]:
    """What several brokers answer, asked at the same time; ``failed`` is told of those that don't."""
    answers: dict[int, T] = {}

    async def one(key: int) -> None:
        try:
            answers[key] = await ask(key)
        except (OSError, KafkaError) as error:
            failed(key, error)

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(one, key)
    return answers
