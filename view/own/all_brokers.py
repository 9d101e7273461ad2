"""``AllBrokers``: rows of what only brokers themselves know, of all Ottla brokers of the cluster.

The others are asked when a page asks, all at the same time, by DescribeInside over the inter-broker listener; pages that ask at
about the same time share the answers. A broker that does not answer within ``SECONDS`` is named, with the reason, and so is one
that is fenced, is no Ottla broker, has no console or does not tell this one. Who was silent is not waited for again for
``_QUIET_SECONDS``, so that pages are slow once and not each time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from ...base.errors import ErrorCode, KafkaError, known_code
from ...handlers.api_versions import ASKING_SOFTWARE
from ...replication.broker_client import NoAnswerError
from ...wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
from ...wire.schema import replace
from ..cached import Cached
from ..errors import NotFoundError
from .row_json import row_from_json
from .told_rows import KINDS, MOST_TOLD, own_rows

if TYPE_CHECKING:
    from .broker_view import BrokerView

SECONDS = 2.0
_QUIET_SECONDS = 10.0
_NO_OTTLA = "it is not an Ottla broker of this version"
_FENCED = "it is fenced: it is down, or the controller gets no heartbeats from it"


@dataclasses.dataclass(frozen=True, slots=True)
class BrokersRows:
    """The rows of all brokers that answered, in no order."""

    rows: Sequence[Any]
    several: bool
    """Whether the cluster has more than one broker; if not, rows do not name theirs."""
    own: int = -1
    """The broker in this process."""
    silent: Sequence[tuple[int, str]] = ()
    """The brokers without an answer, and why."""
    cut: Sequence[tuple[int, int, int]] = ()
    """The brokers of which there are only the first rows: the broker, how many are here, how many it has."""

    def with_rows(self, rows: Sequence[Any]) -> BrokersRows:
        return dataclasses.replace(self, rows=rows)

    def and_also(self, other: BrokersRows) -> BrokersRows:
        """With the brokers that did not answer to another question in full."""
        return dataclasses.replace(
            self, silent=sorted({*self.silent, *other.silent}), cut=sorted({*self.cut, *other.cut})
        )


class AllBrokers:
    """``rows`` of all brokers, or those ``of_broker``, by their kind (``told_rows``)."""

    def __init__(self, view: BrokerView) -> None:
        self._view = view
        self._kept: dict[tuple[str, str], Cached[BrokersRows]] = {}
        """What is being read or is fresh, by kind and name; all else would only take memory."""
        self._quiet: dict[int, float] = {}
        """Until when (trio's time) a broker that was silent is taken to be."""
        self.on_silent: Callable[[int, Exception], None] = lambda broker, error: None
        """Is told of each answer that did not come."""

    async def rows(self, kind: str, name: str = "") -> BrokersRows:
        """The rows of a kind; ``name``: the topic or group that they are about. Raises NotFoundError."""
        if not self._others() and not self._fenced():  # what is in this process needs no sharing
            return BrokersRows(await own_rows(self._view, DescribeInsideRequest(kind=kind, name=name)), several=False)
        self._kept = {key: each for key, each in self._kept.items() if not each.is_idle}
        if (kind, name) not in self._kept:
            # Waiting is no work, so what was slow to come is asked for as often as all else.
            self._kept[kind, name] = Cached(lambda: self._read(kind, name), share=0)
        return await self._kept[kind, name].get()

    async def of_broker(self, broker: int | None, asked: DescribeInsideRequest) -> Sequence[Any]:
        """The rows of one broker, None for the one in this process. Raises NotFoundError, KafkaError."""
        if broker in (None, self._view.node_id):
            return await own_rows(self._view, asked)
        if broker not in self._others():
            raise NotFoundError(f"No broker {broker} is alive.")
        try:
            return await self._rows_in(await self._told(broker, asked), asked.kind, broker)
        except (OSError, KafkaError) as error:
            why = f"Broker {broker} did not report its data: {_why(error)}."
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, why) from None

    def _others(self) -> list[int]:
        """The other brokers that are alive."""
        services = self._view.services
        return [] if services is None else sorted({*services.metadata.broker_ids()} - {services.node_id})

    def _fenced(self) -> list[int]:
        """Those that are not; a cluster without a quorum forgets them."""
        services = self._view.services
        known = {} if services is None else services.metadata.image.quorum_brokers.newest()
        return sorted(broker for broker, each in known.items() if each.is_fenced and broker != self._view.node_id)

    async def _read(self, kind: str, name: str) -> BrokersRows:
        view, asked = self._view, DescribeInsideRequest(kind=kind, name=name)
        own, pace = await own_rows(view, asked), view.pace()
        rows = []
        for row in own:
            rows.append(dataclasses.replace(row, broker=view.node_id) if hasattr(row, "broker") else row)
            if pace.is_due(2):
                await pace.rest()
        silent = [(broker, _FENCED) for broker in self._fenced()]
        cut: list[tuple[int, int, int]] = []

        async def ask(broker: int) -> None:
            try:
                response = await self._told(broker, asked)
                found = await self._rows_in(response, kind, broker)
            except (OSError, KafkaError) as error:
                silent.append((broker, _why(error)))
                return
            rows.extend(found)
            if response.total > len(found):
                cut.append((broker, len(found), response.total))

        async with trio.open_nursery() as nursery:
            for broker in self._others():
                nursery.start_soon(ask, broker)
        return BrokersRows(rows, True, view.node_id, sorted(silent), sorted(cut))

    async def _told(self, broker: int, asked: DescribeInsideRequest) -> DescribeInsideResponse:
        """Raises OSError, KafkaError."""
        silent = NoAnswerError(f"it has not answered within {SECONDS:g} s")
        if trio.current_time() < self._quiet.get(broker, -math.inf):
            raise silent
        try:
            with trio.move_on_after(SECONDS):
                return await self._exchange(broker, asked)
            self._quiet[broker] = trio.current_time() + _QUIET_SECONDS
            raise silent
        except NoAnswerError as error:
            self.on_silent(broker, error)
            raise

    async def _exchange(self, broker: int, asked: DescribeInsideRequest) -> DescribeInsideResponse:
        """Raises OSError, KafkaError."""
        peers, access = self._view.peers, self._view.access
        if peers is None or access is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this broker has not started yet")
        client = peers.client(broker, "inside", software=ASKING_SOFTWARE)
        try:
            version = await client.negotiate(DescribeInsideRequest)
        except KafkaError:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, _NO_OTTLA) from None
        response: DescribeInsideResponse = await client.send(asked, version)
        if response.challenge and (proof := access.proof(broker, response.challenge)) is not None:
            response = await client.send(replace(asked, proof=proof), version)
        if response.error_code:
            raise KafkaError(known_code(response.error_code), response.error_message)
        return response

    async def _rows_in(self, response: DescribeInsideResponse, kind: str, broker: int) -> list[Any]:
        """Raises KafkaError."""
        row_class, pace = KINDS[kind].row_class, self._view.pace()
        rows = []
        for told in response.rows[:MOST_TOLD]:
            try:
                rows.append(row_from_json(row_class, told, broker))
            except ValueError as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"its response cannot be read: {error}") from None
            if pace.is_due(4):
                await pace.rest()
        return rows


def _why(error: Exception) -> str:
    return error.message or str(error) if isinstance(error, KafkaError) else str(error)
