"""A request to a controller: a node's own, or a client's that a broker has forwarded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..call import NodeCall, RequestObserver
from ..connection_context import ConnectionContext

if TYPE_CHECKING:
    from .services import ControllerServices


class ControllerCall(NodeCall):
    """A request to a controller."""

    __slots__ = ("controller", "is_forwarded")

    def __init__(
        self,
        controller: ControllerServices,
        connection: ConnectionContext,
        flush: Callable[[], Awaitable[None]],
        observer: RequestObserver | None = None,
        *,
        is_forwarded: bool = False,
    ) -> None:
        super().__init__(controller, connection, flush, observer)
        self.controller = controller
        self.is_forwarded = is_forwarded
        """Whether a client has made it to a broker; then ``connection`` describes the client's connection."""
