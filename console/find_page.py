"""The page that the side bar's field leads to: the topics and groups with a text in their names.

Where one topic or group has just that name, or only one has it in its name, the page is that one's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..view.pace import Pace
from ..view.source import ViewSource
from .render import Renderer

_MOST = 50
_MOST_TEXT = 500


class FindPage:
    """The ``page`` of what was found."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer

    async def page(self, request: Request) -> Response:
        text = request.query_params.get("q", "").strip()[:_MOST_TEXT]
        pace = self._source.pace()
        topics = await _found((row.name for row in await self._source.topics()), text, pace)
        groups = await _found((row.group_id for row in await self._source.groups()), text, pace)
        found = [*map(_topic, topics), *map(_group, groups)]
        for names, address_of in ((topics, _topic), (groups, _group)):
            if text in names:
                return RedirectResponse(address_of(text), 303)
        if len(found) == 1:
            return RedirectResponse(found[0], 303)
        return await self._renderer.page(
            "find.html",
            text=text,
            kinds=[
                ("Topics", [(name, _topic(name)) for name in topics[:_MOST]], len(topics)),
                ("Groups", [(name, _group(name)) for name in groups[:_MOST]], len(groups)),
            ],
        )


async def _found(names: Iterable[str], text: str, pace: Pace) -> list[str]:
    """Those that have the text in them, whatever its case, in order; none for no text."""
    wanted, found = text.lower(), []
    for name in names:
        if wanted and wanted in name.lower():
            found.append(name)
        if pace.is_due():
            await pace.rest()
    return sorted(found)


def _topic(name: str) -> str:
    return f"/topics/{quote(name, safe='')}"


def _group(group_id: str) -> str:
    return f"/group?id={quote(group_id, safe='')}"
