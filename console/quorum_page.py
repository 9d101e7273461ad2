"""The page of the quorum of controllers: its voters and observers, features, and the node's own metadata log and snapshots."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..view.errors import NotFoundError
from ..view.source import ViewSource
from . import more_commands
from .render import Renderer


class QuorumPage:
    """The ``page`` of the quorum. A cluster on ZooKeeper has none."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer

    async def page(self, request: Request) -> Response:
        detail = await self._source.quorum()
        if detail is None:
            raise NotFoundError("This cluster has no quorum of controllers, or nothing is known of it yet.")
        return await self._renderer.page(
            "quorum.html", detail=detail, command=more_commands.quorum(self._source.bootstrap_servers)
        )
