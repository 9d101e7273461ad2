"""A request in progress: its header, its connection, and the services of the node."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..base.errors import KafkaError
from ..base.network import Part
from ..wire.api_keys import ApiKey
from ..wire.schema import replace
from .activity import Activity
from .connection_context import ConnectionContext
from .node_services import NodeServices
from .request_cost import RequestCost

if TYPE_CHECKING:
    from .services import Services

logger = logging.getLogger(__name__)

TELLING = (ApiKey.PRODUCE, ApiKey.FETCH)
"""The APIs whose handlers call ``Call.fail``, so that their responses need not be searched for errors."""


class RequestObserver(Protocol):
    """Is told of every request that was answered; nothing is measured for a connection that has no observer.

    Plain requests of one kind that were read together are reported together: reading the clock for each would cost the smallest
    ones some percent.
    """

    def elapsed(self) -> float:
        """Seconds that never go back."""
        ...

    def observes_each(self, api_key: int) -> bool:
        """Whether each request of this API is to be given to ``observe_request``, even one that neither waited nor failed."""
        ...

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        """``count`` requests of one API and version (``Call.key``), none of which waited or failed, took ``seconds`` together."""
        ...

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        """``parts`` is ``response`` as it goes to the client, None of a request that has no answer.

        ``local`` are the seconds before the handler first had to wait, ``remote`` those from then on.
        """
        ...


class PendingResponse:
    """What a handler returns in place of a response that has to wait, where ``Call.may_suspend``."""

    __slots__ = ()

    @property
    def is_ready(self) -> bool:
        """Whether what it waits for is there, so that ``finish`` returns without waiting."""
        raise NotImplementedError

    def finish_now(self) -> Any | None:
        """The response, where it is ready and has no error; ``finish`` is called as well."""
        raise NotImplementedError

    async def finish(self) -> Any:
        """Wait, and return the response. Raises KafkaError."""
        raise NotImplementedError


class SuspendedCall(NamedTuple):
    """The state of a ``NodeCall`` for a request that waits, while its connection goes on with the next one."""

    key: int
    version: int
    client_id: str
    correlation_id: int
    failed: bool
    reason: str
    started: float
    waited_since: float


class CloseConnection(Exception):
    """Raised by a handler that has no answer to give: the connection is closed, which is what the client expects.

    Kafka does so when a produce with acks=0 fails.
    """


class AnswersLost(Exception):
    """Earlier answers could not be sent, because of ``error``: the connection ends, and the present request with it."""

    def __init__(self, error: OSError | KafkaError) -> None:
        super().__init__(str(error))
        self.error = error


class NodeCall:
    """One request of one connection to one node.

    A connection has one call, whose header fields change with each request.

    A wait can be answered in the step that ends it, which saves the client a turn of the loop. What is to be done then is put
    into ``early_responses``, and done when the present request is handled or waits. Where ``may_suspend`` is False, no response
    is sent that way.
    """

    __slots__ = (
        "_flush",
        "_is_each_observed",
        "_started",
        "_waited_since",
        "activity",
        "answered_count",
        "client_id",
        "client_software_name",
        "client_software_version",
        "connection",
        "correlation_id",
        "cost",
        "early_responses",
        "error_counts",
        "failed",
        "is_plain",
        "key",
        "may_suspend",
        "node",
        "note_ready",
        "observer",
        "reason",
        "route",
        "send_early",
        "throttle_ms",
        "version",
    )

    def __init__(
        self,
        node: NodeServices,
        connection: ConnectionContext,
        flush: Callable[[], Awaitable[None]],
        observer: RequestObserver | None = None,
    ) -> None:
        self.node = node
        self.connection = connection
        self._flush = flush
        self.observer = observer
        self._is_each_observed = False
        # By the observer's clock, in seconds: when the requests that are not reported yet began.
        self._started = 0.0
        self.key = -1
        """API key and version of the present request, as ``start_of_request`` gives them."""
        self.answered_count = 0
        """Requests of this ``key`` that were answered since the clock was last read, and have not been reported yet."""
        self.reset()
        self.version = 0
        self.correlation_id = 0
        self.throttle_ms = 0
        """For how long nothing is read from the connection once the response is sent (KIP-219), in milliseconds.

        A handler sets it with the same number in the response; the connection resets it.
        """
        self.may_suspend = False
        """Whether a handler may return a ``PendingResponse``: the next request is handled before that is finished."""
        self.early_responses: list[Callable[[], None]] = []
        """The node's own list, shared by all its connections."""
        self.send_early: Callable[[Any], bool] | None = None
        """Sends a response if it is small and there is room for it; returns whether it has, and then the handler returns None."""
        self.note_ready: Callable[[], None] | None = None
        """To be called when a pending response may be ready."""
        self.route: Any = None
        """The ``Route`` of the present request."""
        self.cost: RequestCost | None = None
        """What the request costs its client; None while no quota is set."""
        self.error_counts: Mapping[int, int] | None = None
        """The errors in the response to a large request, by code; None where nobody has counted them."""
        self.activity: Activity | None = None
        """What the connection wrote and read last; None where no console asks for it."""
        self.client_id = ""
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"

    def start_turn(self, now: float) -> None:
        """A turn of the connection begins: requests that were read are answered from now on."""
        self._started = now
        self.answered_count = 0

    def switch_api(self, key: int, api_key: int) -> None:
        """The present request is of another kind than those before it."""
        self.report_batch()
        if self.observer is not None:
            self._is_each_observed = self.observer.observes_each(api_key)
        self.key = key
        self.reset()

    def report_batch(self) -> None:
        """Report the requests that have not been reported yet."""
        if self.observer is not None and self.answered_count:
            now = self.observer.elapsed()
            self.observer.observe_batch(self.key, self.answered_count, now - self._started)
            self.start_turn(now)

    def report_request(self, frame: memoryview, response: Any, parts: Sequence[Part] | None) -> None:
        """Report the present request, which was just answered; those before it count with the same local time."""
        if self.observer is None:
            return
        now = self.observer.elapsed()
        until = self._waited_since or now
        local = (until - self._started) / (self.answered_count + 1)
        if self.answered_count:
            self.observer.observe_batch(self.key, self.answered_count, local * self.answered_count)
        self.observer.observe_request(self, frame, response, parts, local, now - until)
        self.start_turn(now)

    def suspend(self) -> SuspendedCall:
        """Leave the present request, which is going to wait, for the next one."""
        self.report_batch()
        now = 0.0 if self.observer is None else self.observer.elapsed()
        noted = SuspendedCall(
            *(self.key, self.version, self.client_id, self.correlation_id, self.failed, self.reason),
            *(self._started, self._waited_since or now),
        )
        self.start_turn(now)
        self.is_plain = False  # so that the next request begins anew
        return noted

    def resume(self, noted: SuspendedCall) -> None:
        """Go on with a request that was suspended; it is reported by ``report_request``."""
        self.report_batch()
        self.key, self.version, self.client_id, self.correlation_id, self.failed, self.reason = noted[:6]
        self._started, self._waited_since = noted.started, noted.waited_since
        self.is_plain = False

    def respond_early(self) -> None:
        """Answer the requests whose wait has ended in this step."""
        while self.early_responses:
            try:
                self.early_responses.pop(0)()
            except Exception:
                logger.exception("a request could not be answered early")

    def reset(self) -> None:
        """Reset what is noted of a request, for the next one."""
        self.is_plain = not self._is_each_observed
        """Whether the present request has neither failed nor waited, so that it is reported with others of its kind."""
        self.failed = False
        self.reason = ""
        self._waited_since = 0.0

    def fail(self, reason: str | None = None) -> None:
        """Note that an error is in the response, and for the log why, where the response does not say."""
        self.reason = reason or ""
        self.failed = True
        self.is_plain = False

    def charge(self, cost: RequestCost, api_key: int, size: int, response: Any) -> Any:
        """Charge the present request to its client's quotas; returns the response, with the time for which they hold it up."""
        throttle_ms = cost.charge(api_key, size, has_response=response is not None)
        if throttle_ms > self.throttle_ms:
            self.throttle_ms = throttle_ms
            if hasattr(response, "throttle_time_ms"):
                return replace(response, throttle_time_ms=throttle_ms)
        return response

    async def flush(self) -> None:
        """Send the responses already made on this connection; a handler calls it before it waits for anything.

        Raises AnswersLost, which is not the handler's to catch.
        """
        if self.observer is not None and not self._waited_since:
            self._waited_since = self.observer.elapsed()
            self.is_plain = False
        if self.cost is not None:
            self.cost.stop_timing()
        if self.early_responses:
            # What this request has appended may have ended the waits of others, which need not wait for this one's end.
            self.respond_early()
        try:
            await self._flush()
        except (OSError, KafkaError) as error:
            raise AnswersLost(error) from error


NewCall = Callable[[ConnectionContext, Callable[[], Awaitable[None]], RequestObserver | None], NodeCall]
"""Makes the call of a connection: its context, how to send the responses made so far, and its observer."""


class Call(NodeCall):
    """A request to a broker."""

    __slots__ = ("broker",)

    def __init__(
        self,
        broker: Services,
        connection: ConnectionContext,
        flush: Callable[[], Awaitable[None]],
        observer: RequestObserver | None = None,
    ) -> None:
        super().__init__(broker, connection, flush, observer)
        self.broker = broker
