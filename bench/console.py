"""``python -m bench.console``: times of the console's pages, the cost of a search, and of open pages to clients.

* ``--pages``: 9,000 topics and 1,000 groups. Each page is requested when the data read for the one before has expired, on an idle
  broker and on one that handles as many requests of one record as it can.
* ``--search``: a search of five million records for a text that is not there; then one that is cancelled after a second.
* ``--open``: requests of one record while ten pages are open, and while none is, in turn.

Steps of the loop are those of ``bench.console_broker``.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .console_data import BENCH, SEARCHED, make_many, make_searched
from .console_pages import OpenPages, Search, get
from .raw_client import one_record_requests
from .usage import cpu_seconds, read_mib, resident_mib

_ROOT = Path(__file__).resolve().parent.parent
_TOPICS, _GROUPS = 9_000, 1_000
_RECORDS = 5_000_000
_REQUESTS = 250_000
_IN_FLIGHT = 5
_TIMES = 5
"""How often a page is requested. The median of its longest steps is reported: other processes make some of them longer."""
PAGES = (
    "/",
    "/state",
    "/topics",
    "/topics?sort=size",
    "/topics?sort=lag&page=100",
    "/topics?q=17",
    "/topics/topic-00017",
    "/topics/wide",
    "/topics/topic-00017/records",
    "/topics/topic-00017/0/log",
    "/groups",
    "/groups?sort=lag",
    "/group?id=group-0017",
    "/group?id=everything",
    "/connections",
    "/requests",
    "/top.json",
    "/topics/wide/producers",
    "/topics/wide/consumers",
    "/group/timeline?id=everything",
    "/applications",
    "/cluster/plan",
    "/transactions",
    "/requests/slowest",
    "/requests/errors",
    "/cluster",
    "/acls",
    "/users",
    "/quotas",
)
_OPEN = 2 * ("/", "/topics", "/topics/bench", "/groups", "/group?id=group-0017")


class Broker:
    """``with Broker() as broker:``; a broker process on the data in ``folder``."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "bench.console_broker", str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        ports = self._answer()
        self.port, self.console = int(ports["broker"]), int(ports["console"])
        self.pid = self._process.pid

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, what: str) -> Any:
        """``steps`` or ``expire``, as the broker's module says."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> float:
        """End it. Returns how many seconds that took."""
        began = time.monotonic()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        return time.monotonic() - began


@contextlib.contextmanager
def _broker(fill: Callable[[int], None]) -> Iterator[Broker]:
    """A broker that was restarted with the data that ``fill`` wrote to its port."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        broker = Broker(Path(folder))
        try:
            fill(broker.port)
            broker.close()
            broker = Broker(Path(folder))
            yield broker
        finally:
            broker.close()


def _load(port: int, requests: int) -> dict[str, float]:
    """One-record requests, sent by another process."""
    address = f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "bench.raw_client", address, BENCH, str(requests), str(_IN_FLIGHT)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT, check=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


@contextlib.contextmanager
def _loaded(port: int) -> Iterator[None]:
    """A context during which one-record requests are sent."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            _load(port, 20_000)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


# --- pages of many topics and groups ----------------------------------------------------------------------------------


def measure_pages(scale: float) -> Table:
    """First bytes and steps of each page; ``scale`` multiplies topics and groups."""
    table = Table(
        "page", "load", "first byte, ms: median", "highest", "longest step, ms CPU", "of", header_style="bold"
    )
    topics, groups = int(_TOPICS * scale), int(_GROUPS * scale)
    with _broker(lambda port: make_many(port, topics, groups)) as broker:
        _look(table, broker, "")
        with _loaded(broker.port):
            _look(table, broker, "requests")
    return table


def _look(table: Table, broker: Broker, load: str) -> None:
    broker.ask("steps")
    time.sleep(5)
    table.add_row("(no page)", load, "", "", "", _named(broker.ask("steps")[0]))
    for page in PAGES:
        firsts, used, steps = [], [], []
        for _ in range(_TIMES):
            broker.ask("expire")
            broker.ask("steps")
            before = cpu_seconds(broker.pid)
            found = get(broker.console, page)
            if found.status != 200:
                raise RuntimeError(f"{page}: {found.status}")
            used.append((cpu_seconds(broker.pid) - before) * 1000)
            firsts.append(found.first * 1000)
            steps.append(broker.ask("steps")[0])
            time.sleep(0.2)
        cpu = "" if load else f"{statistics.median(used):.0f}"
        step = _named(sorted(steps)[_TIMES // 2])
        table.add_row(page, load, f"{statistics.median(firsts):.0f}", f"{max(firsts):.0f}", cpu, step)


def _named(step: tuple[float, float, str]) -> str:
    cpu, wall, task = step
    return f"{cpu:.1f} ({wall:.1f} by the clock, {task.rpartition('.')[2]})"


# --- a search ---------------------------------------------------------------------------------------------------------


def measure_search(scale: float) -> Table:
    """Its memory, the time until it stops, and the latency of a client with one request at a time meanwhile."""
    table = Table("search", "figure", header_style="bold")
    records = int(_RECORDS * scale)
    with _broker(lambda port: make_searched(port, records)) as broker:
        target = f"/topics/{SEARCHED}/search?from=oldest&contains=nothing-like-it"
        one_record_requests(broker.port, BENCH, 2000, 1)
        quiet = one_record_requests(broker.port, BENCH, 5000, 1)
        time.sleep(2)
        before, cpu, began = resident_mib(broker.pid), cpu_seconds(broker.pid), time.monotonic()
        broker.ask("steps")
        with _Memory(broker.pid) as memory:
            events = list(Search(broker.console, target).events())
        if events[-1] != "done":
            raise RuntimeError("the search ended early")
        table.add_row("records", f"{records:,}")
        table.add_row("seconds", f"{time.monotonic() - began:.1f}")
        table.add_row("CPU seconds", f"{cpu_seconds(broker.pid) - cpu:.1f}")
        table.add_row("more memory, MiB", f"{memory.largest - before:.1f}")
        table.add_row("longest step, ms CPU", _named(broker.ask("steps")[0]))
        search = Search(broker.console, target)
        events_of = search.events()
        next(events_of)
        during = one_record_requests(broker.port, BENCH, 500, 1)
        next(events_of)
        table.add_row("from the reader's leaving to the last byte read, s", f"{_seconds_to_stop(broker, search):.3f}")
        for name, what in (("p50_us", "median"), ("p99_us", "99 %")):
            table.add_row(
                f"one-record request, {what}, ms: without, with", f"{quiet[name] / 1e3:.2f}, {during[name] / 1e3:.2f}"
            )
    return table


def _seconds_to_stop(broker: Broker, search: Search) -> float:
    search.leave()
    left = last = time.monotonic()
    read = read_mib(broker.pid)
    while time.monotonic() - last < 2:
        time.sleep(0.005)
        if (now := read_mib(broker.pid)) > read + 0.1:
            read, last = now, time.monotonic()
    return last - left


class _Memory:
    """The largest resident memory of a process while the block lasts, in MiB."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.largest = 0.0

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.largest = max(self.largest, resident_mib(self._pid))

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


# --- ten open pages ---------------------------------------------------------------------------------------------------


def measure_open(scale: float, turns: int) -> Table:
    """Requests/s and CPU time per request with ten pages open, divided by those without."""
    table = Table("turn", "open: requests/s", "CPU µs", "none: requests/s", "CPU µs", "requests/s", header_style="bold")
    with _broker(lambda port: make_many(port, 100, 20)) as broker:
        requests = int(_REQUESTS * scale)

        def load() -> tuple[float, float]:
            before = cpu_seconds(broker.pid)
            done = _load(broker.port, requests)
            return done["requests_s"], (cpu_seconds(broker.pid) - before) / requests * 1e6

        load()
        ratios = []
        for turn in range(turns):
            taken = {}
            for is_open in (turn % 2 == 0, turn % 2 == 1):
                with OpenPages(broker.console, _OPEN if is_open else ()):
                    time.sleep(1)
                    taken[is_open] = load()
            (fast, cpu), (plain, plain_cpu) = taken[True], taken[False]
            ratios.append(fast / plain)
            row = f"{fast:,.0f}", f"{cpu:.1f}", f"{plain:,.0f}", f"{plain_cpu:.1f}", f"{fast / plain:.3f}"
            table.add_row(str(turn + 1), *row)
    table.add_row("median", "", "", "", "", f"{statistics.median(ratios):.3f}")
    return table


def main(
    pages: Annotated[bool, typer.Option("--pages", help="Only the pages of many topics and groups.")] = False,
    search: Annotated[bool, typer.Option("--search", help="Only a search of five million records.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Only what ten open pages cost.")] = False,
    scale: Annotated[float, typer.Option(min=0.001, help="Multiplies topics, groups, records and requests.")] = 1.0,
    turns: Annotated[int, typer.Option(min=1, help="How often it is measured with ten open pages, and without.")] = 9,
) -> None:
    """Measure the console; all of it by default, which takes about a quarter of an hour."""
    parts: list[tuple[bool, Callable[[], Table]]] = [
        (pages, lambda: measure_pages(scale)),
        (search, lambda: measure_search(scale)),
        (open_, lambda: measure_open(scale, turns)),
    ]
    is_all = not any(chosen for chosen, _ in parts)
    console = Console()
    for chosen, measure in parts:
        if chosen or is_all:
            (console if console.is_terminal else Console(width=160)).print(measure())


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()
