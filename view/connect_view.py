"""``ConnectView``: the workers of Kafka Connect that the console was told of, asked over their REST interface.

Each worker is asked again and again while pages look (``Refreshed``), for all connectors with their states at once, and for
itself. So a worker that does not answer holds up no other one, and is named (``ConnectWorkerRow.why_not``). Several addresses
may be several workers of one Connect cluster, or several clusters: what is told alike stands there once (``connect_rows.once``).

Responses have a time limit and a limit of bytes, and a worker thread reads their JSON. Nothing is sent but what KIP-745, KIP-875
and the REST interface before them name, without credentials.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_not
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import trio

from ..base.seams import Workers
from ..base.wording import shortened
from .connect_rows import (
    ConnectorRow,
    ConnectTaskRow,
    ConnectWorkerRow,
    once,
    read_connectors,
    read_message,
    read_tasks,
    read_topics,
    read_worker,
)
from .errors import NotFoundError
from .http_client import HttpAddress, HttpError, HttpResponse, HttpTimeoutError, ask, read_address
from .remote.refreshed import Refreshed

logger = logging.getLogger(__name__)

T = TypeVar("T")

NO_WORKER_SET = "No worker of Kafka Connect was set, by console.connect.urls or 'ottla console --connect-url'."
EXAMPLE_URL = "http://127.0.0.1:8083"
"""A worker listens there where nothing else is set."""
_EVERY = 5.0
_SECONDS = 5.0
_ACTION_SECONDS = 30.0
"""A worker passes some requests on to another one, and may wait for a rebalance."""
_MOST_BYTES = 16 << 20
_MOST_MESSAGE = 64 << 10
_AT_ONCE = 4
_TOPICS_SECONDS = 30.0
_MOST_TOPICS = 1000
_LIST = "/connectors?expand=info&expand=status"
_JSON = "application/json"


class ConnectError(Exception):
    """A worker has refused a request, or has not answered it. ``str()`` is a sentence."""


class _KnownTopics(NamedTuple):
    topics: tuple[str, ...]
    until: float


class _Response(NamedTuple):
    digest: bytes
    """Of the body, which has secrets in it that are not kept."""
    connectors: tuple[ConnectorRow, ...]


class _Merged(NamedTuple):
    workers: tuple[ConnectWorkerRow, ...]
    connectors: tuple[ConnectorRow, ...]


class ConnectView:
    """The workers of Connect; ``run`` asks them. Without a URL there is no view."""

    def __init__(self, urls: Sequence[str], workers: Workers) -> None:
        """Raises ValueError with a sentence."""
        found = [read_address(url, "a Connect worker", EXAMPLE_URL) for url in urls]
        self._addresses: Mapping[str, HttpAddress] = {address.name: address for address in found}
        self._workers = workers
        self._read: Mapping[str, Refreshed[ConnectWorkerRow]] = {
            place: Refreshed(
                partial(self._see, address),
                _EVERY,
                ConnectWorkerRow(place, address.url, why_not="it has not answered yet"),
            )
            for place, address in self._addresses.items()
        }
        self._last: dict[str, _Response] = {}
        """The last list of each worker, which is asked by one task."""
        self._merged: _Merged | None = None
        """What was told last, put together: comparing very many connectors takes a while."""
        self._topics: OrderedDict[tuple[str, str], _KnownTopics] = OrderedDict()

    @property
    def urls(self) -> list[str]:
        return [address.url for address in self._addresses.values()]

    # --- reading, again and again -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask the workers, while pages look, until cancelled."""
        async with trio.open_nursery() as nursery:
            for read in self._read.values():
                nursery.start_soon(read.run)

    async def renew(self, place: str | None = None) -> None:
        """Ask anew, whatever is known: one worker, or all."""
        async with trio.open_nursery() as nursery:
            for each, read in self._read.items():
                if place in (None, each):
                    nursery.start_soon(read.renew)

    async def workers(self) -> tuple[ConnectWorkerRow, ...]:
        """What each worker has told last. One that was not asked yet is waited for, for a few seconds."""
        async with trio.open_nursery() as nursery:
            for read in self._read.values():
                nursery.start_soon(read.get)
        return tuple(read.value for read in self._read.values())

    async def _see(self, address: HttpAddress) -> ConnectWorkerRow:
        place, url = address.name, address.url
        try:
            version, cluster_id = await self._told(address, "/", read_worker)
            connectors = await self._told(address, _LIST, partial(self._connectors_in, place=place))
            return ConnectWorkerRow(place, url, connectors, version, cluster_id)
        except ConnectError as error:
            return ConnectWorkerRow(place, url, why_not=str(error))
        except Exception:  # an answer that is not understood is no reason to stop serving clients
            logger.exception("the response of the Connect worker %s could not be read", place)
            return ConnectWorkerRow(place, url, why_not="its response could not be read: the log has the error")

    def _connectors_in(self, body: bytes, place: str) -> tuple[ConnectorRow, ...]:
        """By a worker thread. What has not changed since the last response is not read again."""
        digest, last = hashlib.sha256(body).digest(), self._last.get(place)
        if last is None or last.digest != digest:
            last = self._last[place] = _Response(digest, read_connectors(body, place))
        return last.connectors

    async def _told(self, address: HttpAddress, target: str, read: Callable[[bytes], T]) -> T:
        """What ``read`` makes of a response, in a worker thread. Raises ConnectError, with the end of a sentence."""
        try:
            answer = await ask(address, target, accept=_JSON, seconds=_SECONDS, most_bytes=_MOST_BYTES)
            if answer.status != 200:
                raise ConnectError(f"it has answered {_status(answer)}")
            return await self._workers.run(read, answer.body)
        except HttpError as error:
            raise ConnectError(f"it {error}") from None
        except (ValueError, RecursionError) as error:
            raise ConnectError(f"it cannot be understood: {error}") from None

    # --- connectors ---------------------------------------------------------------------------------------------------

    async def connectors(self) -> Sequence[ConnectorRow]:
        """Those of all workers, by name; what two workers tell alike stands there once."""
        workers = await self.workers()
        if len(workers) == 1:
            return workers[0].connectors
        if self._merged is None or any(map(is_not, self._merged.workers, workers)):
            self._merged = _Merged(workers, await self._workers.run(once, workers))
        return self._merged.connectors

    async def connector(self, name: str, place: str = "") -> ConnectorRow:
        """The connector, as the worker at ``place`` tells, or the first that has one of that name. Raises NotFoundError."""
        workers = await self.workers()
        for row in (row for worker in workers for row in worker.connectors):
            if row.name == name and place in ("", row.place):
                return row
        silent = "; ".join(f"{worker.place}: {worker.why_not}" for worker in workers if worker.why_not)
        where = f" at {place}" if place else ""
        raise NotFoundError(f"There is no connector {name}{where}." + (f" Not checked: {silent}." if silent else ""))

    async def topics(self, rows: Iterable[ConnectorRow]) -> Mapping[ConnectorRow, tuple[str, ...]]:
        """The topics that each is told to read, and those that it has used (KIP-558), as of some seconds ago."""
        wanted = list(rows)
        turns = trio.CapacityLimiter(_AT_ONCE)
        with trio.move_on_after(_SECONDS):
            async with trio.open_nursery() as nursery:
                for row in wanted:
                    nursery.start_soon(self._note_topics, row, turns)
        return {row: tuple(sorted({*row.topics, *self._known_topics(row)})) for row in wanted}

    def _known_topics(self, row: ConnectorRow) -> tuple[str, ...]:
        known = self._topics.get((row.place, row.name))
        return () if known is None else known.topics

    async def _note_topics(self, row: ConnectorRow, turns: trio.CapacityLimiter) -> None:
        key = row.place, row.name
        known = self._topics.get(key)
        if known is not None and trio.current_time() < known.until:
            return
        async with turns:
            try:
                read = partial(read_topics, name=row.name)
                topics = await self._told(self._addresses[row.place], f"{_target(row.name)}/topics", read)
            except ConnectError:  # a worker may be told not to keep them (topic.tracking.enable)
                topics = self._known_topics(row)
        self._topics[key] = _KnownTopics(topics, trio.current_time() + _TOPICS_SECONDS)
        self._topics.move_to_end(key)
        if len(self._topics) > _MOST_TOPICS:
            self._topics.popitem(last=False)

    # --- changing something -------------------------------------------------------------------------------------------

    def request_url(self, row: ConnectorRow, target: str) -> str:
        """The URL of a request about a connector; ``target`` follows its name."""
        return f"{self._addresses[row.place].url}{_target(row.name)}{target}"

    async def change(self, row: ConnectorRow, method: str, target: str) -> Sequence[ConnectTaskRow]:
        """Send a request about a connector; the tasks that its response names. The worker is asked anew. Raises ConnectError."""
        address = self._addresses[row.place]
        try:
            answer = await ask(
                address,
                f"{_target(row.name)}{target}",
                method=method,
                accept=_JSON,
                seconds=_ACTION_SECONDS,
                most_bytes=_MOST_BYTES,
            )
        except HttpTimeoutError as error:
            raise ConnectError(f"The worker {row.place} {error}. It may have done it.") from None
        except HttpError as error:
            raise ConnectError(f"Nothing was done: the worker {row.place} {error}.") from None
        if answer.status not in (200, 202, 204):
            raise ConnectError(f"Nothing was done: the worker {row.place} has answered {_status(answer)}.")
        await self.renew(row.place)
        try:
            return await self._workers.run(read_tasks, answer.body) if answer.body else ()
        except (ValueError, RecursionError):
            return ()


def _target(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _status(answer: HttpResponse) -> str:
    """The status of a response that is a refusal, with the reason that it has."""
    message = read_message(answer.body) if len(answer.body) <= _MOST_MESSAGE else ""
    return f"with status {answer.status}" + (f": {shortened(message.removesuffix('.'))}" if message else "")
