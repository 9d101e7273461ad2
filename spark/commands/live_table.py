"""A job's queries as a table on the terminal, which is updated after each micro-batch."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from ..query import QueryProgress

_COLUMNS = ("query", "batch", "records", "records/s", "lag", "watermark", "state rows", "state MiB", "batch s")
_MIB = 1 << 20


class LiveTable:
    """A context manager; the table stays on the terminal when the job has ended."""

    def __init__(self, title: str, stop: threading.Event, console: Console | None = None) -> None:
        self._title = title
        self._stop = stop
        self._spinner = Spinner("dots")
        self._totals: dict[str, int] = {}
        self._newest: dict[str, QueryProgress] = {}
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=4)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def batch(self, name: str, progress: QueryProgress) -> None:
        """Note a finished micro-batch of the query ``name``."""
        self._totals[name] = self._totals.get(name, 0) + progress.records
        self._newest[name] = progress

    def _drawn(self) -> RenderableType:
        # The same spinner each time, because it keeps the time at which it began.
        self._spinner.text = f"{self._title}: finishing the micro-batch" if self._stop.is_set() else self._title
        table = Table(*_COLUMNS, box=None, pad_edge=False)
        for column in table.columns[1:]:
            column.justify = "right"
        for name, total in self._totals.items():
            newest = self._newest[name]
            table.add_row(
                name,
                str(newest.batch),
                f"{total:,}",
                f"{newest.records_per_s:,.0f}",
                f"{newest.lag:,}",
                newest.watermark or "",
                f"{newest.state_rows:,}" if newest.state_bytes else "",
                f"{newest.state_bytes / _MIB:,.1f}" if newest.state_bytes else "",
                f"{newest.seconds:.1f}",
            )
        return Group(self._spinner, table)
