"""Rendering of templates into pages, by a worker thread.

Rows are never changed, so a worker may read them.

Everything that comes from a record, a client or a setting is escaped by Jinja's autoescape. Characters that cannot be seen, or
that change the order of others, are shown as what they are (``texts.visible``).
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from ..base.seams import Clock, Workers
from ..view.source import ViewSource
from . import finding_addresses, formats, texts
from .files import StaticFiles
from .visitor import current

_FOLDER = Path(__file__).parent / "templates"


@functools.cache
def _files() -> StaticFiles:
    return StaticFiles()


@functools.cache
def _environment(files: StaticFiles) -> Environment:
    """One for the process: brokers of a test share what is compiled."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= formats.FILTERS | texts.FILTERS | finding_addresses.FILTERS
    made.globals |= {"file": files.address, "icon": files.icon}
    return made


class Renderer:
    """The pages of one source. ``load`` is called first, by a worker: it compiles the templates.

    Every template has ``visitor`` and ``writes``.
    """

    def __init__(self, workers: Workers, clock: Clock, source: ViewSource, *, writes: bool = False) -> None:
        self._workers = workers
        self.writes = writes
        """Whether the console may change something."""
        self._clock = clock
        self._source = source
        self.files = _files()
        self._environment = _environment(self.files)

    def now_ms(self) -> int:
        """The time that pages have."""
        return self._clock.now_ms()

    def load(self) -> None:
        """Read and compile everything."""
        self.files.load()
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    async def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made of a template."""
        return HTMLResponse(await self.text(template, **values), status_code=status)

    async def text(self, template: str, **values: Any) -> str:
        """HTML made of a template."""
        made = self._environment.get_template(template)
        about = {
            "now_ms": self._clock.now_ms(),
            "inside": self._source.inside is not None,
            "outage": self._source.outage(),
            "has_quorum": self._source.has_quorum,
            "has_connect": self._source.connect is not None,
            "consoles": sorted(self._source.consoles.items()),
            "writes": self.writes,
            "visitor": current(),
        }
        return await self._workers.run(functools.partial(made.render, **about, **values))
