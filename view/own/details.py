"""Details known only to the broker itself: producers and consumers, group events, requests, logs, old clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from ...base.seams import Clock, Workers
from ...broker.listeners.connection import ClientConnection
from ...group_coordinator.timeline import Event, EventKind
from ...handlers.services import Services
from ...metadata.image import TopicImage
from ..admin_rows import HolderRow
from ..cached import Cached
from ..errors import NotFoundError
from ..inside_rows import (
    ApplicationRow,
    AssignedRow,
    BatchRow,
    ConsumerRow,
    EventRow,
    LogRow,
    SharePartitionRow,
    WholeRequest,
    WriterRow,
)
from ..pace import Pace
from ..rows import ErrorRow, MemberRow, RequestRow
from .activity import assigned_rows, consumer_rows, positions, transactional_ids, writer_rows
from .applications import application_rows
from .kept_requests import decoded
from .log_detail import batch_rows, log_row
from .requests import RequestsSeen
from .share_partitions import share_partition_rows
from .topics import ReplicasHere
from .transactions import holder_rows

T = TypeVar("T")

_TROUBLE = (
    EventKind.SESSION_ENDED,
    EventKind.NOT_REJOINED,
    EventKind.NOT_SYNCED,
    EventKind.NOT_REVOKED,
    EventKind.GONE,
)
_MOST_CACHED = 32


class BrokerDetails:
    """Details of one broker. ``services`` returns None before the broker has started."""

    def __init__(
        self,
        services: Callable[[], Services | None],
        connections: Callable[[], Iterable[ClientConnection]],
        requests: RequestsSeen,
        clock: Clock,
        workers: Workers,
        pace: Callable[[], Pace],
    ) -> None:
        self._pace = pace
        self._services = services
        self._connections = connections
        self._requests = requests
        self._clock = clock
        self._workers = workers
        self._holders = Cached(self._read_holders)
        self._applications = Cached(self._read_applications)
        self._by_topic: dict[tuple[str, str], Cached[Any]] = {}

    def _found(self, topic: str) -> tuple[Services, TopicImage]:
        services = self._services()
        found = None if services is None else services.metadata.topic(topic)
        if services is None or found is None:
            raise NotFoundError(f"There is no topic {topic}.")
        return services, found

    # --- who writes, who reads ----------------------------------------------------------------------------------------

    async def writers(self, topic: str) -> list[WriterRow]:
        """The producers of a topic with their connections. Raises NotFoundError."""
        self._found(topic)

        async def read() -> list[WriterRow]:
            services, found = self._found(topic)
            return await writer_rows(services, list(self._connections()), found, ReplicasHere(services), self._pace())

        return await self._shared(("writers", topic), read)

    async def consumers(self, topic: str) -> list[ConsumerRow]:
        """The connections that fetch a topic. Raises NotFoundError."""
        self._found(topic)

        async def read() -> list[ConsumerRow]:
            services, found = self._found(topic)
            return await consumer_rows(services, list(self._connections()), found, ReplicasHere(services), self._pace())

        return await self._shared(("consumers", topic), read)

    async def assigned(self, topic: str) -> list[AssignedRow]:
        """Which members groups of this broker have for partitions of a topic. Raises NotFoundError."""
        self._found(topic)

        async def read() -> list[AssignedRow]:
            return await assigned_rows(self._found(topic)[0], topic, self._pace())

        return await self._shared(("assigned", topic), read)

    async def transactional_ids(self) -> dict[int, str]:
        """By producer id, those that this broker coordinates."""
        services = self._services()
        return {} if services is None else await transactional_ids(services, self._pace())

    async def _shared(self, key: tuple[str, str], read: Callable[[], Awaitable[list[T]]]) -> list[T]:
        """What several pages of one topic ask for at the same time is read once."""
        cached: Cached[list[T]] = self._by_topic.pop(key) if key in self._by_topic else Cached(read)
        self._by_topic[key] = cached
        if len(self._by_topic) > _MOST_CACHED:
            del self._by_topic[next(iter(self._by_topic))]
        return await cached.get()

    async def _read_applications(self) -> list[ApplicationRow]:
        return await application_rows(list(self._connections()), self._pace())

    async def applications(self) -> list[ApplicationRow]:
        """The open connections by who they are of."""
        return await self._applications.get()

    async def share_partitions(self, group_id: str) -> list[SharePartitionRow]:
        """What this broker leads for a share group."""
        services = self._services()
        return (
            []
            if services is None
            else await share_partition_rows(services.share_partitions.of_group(group_id), self._pace())
        )

    async def positions(self, members: Iterable[MemberRow]) -> Mapping[tuple[str, int], int]:
        """Where members of a group read now, by topic and partition, as far as they read from this broker."""
        services = self._services()
        return {} if services is None else await positions(services, list(self._connections()), members, self._pace())

    # --- groups, transactions -----------------------------------------------------------------------------------------

    def timeline(self, group_id: str) -> list[EventRow]:
        """What happened to a group since this broker coordinates it, the newest first; it may be gone meanwhile."""
        services = self._services()
        events = () if services is None else services.groups.timeline.of(group_id)
        return [_event_row(event) for event in reversed(events)]

    async def _read_holders(self) -> list[HolderRow]:
        services = self._services()
        return [] if services is None else await holder_rows(services, self._clock.now_ms(), self._pace())

    async def holders(self) -> list[HolderRow]:
        """The open transactions in the partitions led here, those whose last record is oldest first."""
        return await self._holders.get()

    # --- requests -----------------------------------------------------------------------------------------------------

    def slowest(self) -> list[RequestRow]:
        """The slowest requests of the last hour."""
        return self._requests.kept.slowest(self._clock.now_ms())

    def errors(self) -> list[ErrorRow]:
        """The errors sent to clients in the last hour."""
        return self._requests.errors()

    async def request(self, number: int) -> WholeRequest:
        """One of the last or slowest requests, and what it and its response say. Raises NotFoundError."""
        kept = self._requests.kept.find(number)
        if kept is None:
            raise NotFoundError("There is no such request any more: only the last ones and the slowest are kept.")
        return WholeRequest(kept.row, *await self._workers.run(decoded, kept))

    # --- logs ---------------------------------------------------------------------------------------------------------

    def log(self, topic: str, number: int) -> LogRow:
        """The log of a replica here. Raises NotFoundError, KafkaError."""
        services, _ = self._found(topic)
        partition = services.replicas.find(topic, number)
        if partition is None:
            raise NotFoundError(f"This broker has no replica of {topic}-{number}.")
        return log_row(services, partition, self._clock.now_ms())

    async def batches(self, topic: str, number: int, offset: int) -> list[BatchRow]:
        """The batches from the one with an offset on. Raises NotFoundError, KafkaError."""
        services, _ = self._found(topic)
        partition = services.replicas.find(topic, number)
        if partition is None:
            raise NotFoundError(f"This broker has no replica of {topic}-{number}.")
        return await batch_rows(partition, offset, self._workers)


def _event_row(event: Event) -> EventRow:
    return EventRow(
        event.at_ms,
        event.kind.value,
        event.kind in _TROUBLE,
        event.epoch,
        event.member_id,
        event.client_id,
        event.host,
        event.detail,
        event.duration_ms,
    )
