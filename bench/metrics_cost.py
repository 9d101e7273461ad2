"""``make bench ARGS=--metrics-cost``: the cost of ``--metrics`` to a request, on one broker with metrics on and off.

A load is many short pairs, each a connection with metrics and one without, in alternating order. The result
is the median of the pairs' ratios, of the broker's CPU time and of the requests per second, and the interval that
contains the true median with 95 % confidence (order statistics, by the normal approximation to the binomial).

With few requests in flight the CPU time of each depends mainly on how many are read at once, so a slower broker may use
less; with many, the broker never waits.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from .raw_client import one_record_requests
from .usage import cpu_seconds

_ROOT = Path(__file__).resolve().parent.parent
_REQUESTS = 1000
_PAIRS = 200
_IN_FLIGHT = (1, 5, 50)

_Figures = tuple[float, float]
"""CPU µs per request, and requests per second."""


def main(scale: float) -> None:
    """Measure and print; ``scale`` multiplies the number of pairs."""
    table = Table("one-record requests", "figure", "with", "without", "ratio", "95 %", header_style="bold")
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, _start(folder) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        port = int(broker.stdout.readline())
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
        admin.create_topics([NewTopic("bench", 1, 1)])["bench"].result(60)
        for in_flight in _IN_FLIGHT:
            one_record_requests(port, "bench", 20_000, in_flight)

            def load(in_flight: int = in_flight) -> _Figures:
                before = cpu_seconds(broker.pid)
                done = one_record_requests(port, "bench", _REQUESTS, in_flight)
                return (cpu_seconds(broker.pid) - before) / _REQUESTS * 1e6, done["requests_s"]

            pairs = _pairs(broker, load, max(10, int(_PAIRS * scale)))
            for number, figure in enumerate(("CPU µs/request", "requests/s")):
                row = _row([(on[number], off[number]) for on, off in pairs])
                table.add_row(f"{in_flight} in flight", figure, *row)
        broker.stdin.close()
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def _start(folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.switched_broker", folder]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _pairs(broker: subprocess.Popen[str], load: Callable[[], _Figures], count: int) -> list[tuple[_Figures, _Figures]]:
    """The load's figures with metrics, and without."""
    found = []
    for _ in range(count):
        taken: dict[str, _Figures] = {}
        for _ in range(2):
            state = _switch(broker)
            taken[state] = load()
        found.append((taken["on"], taken["off"]))
        _switch(broker)  # the next pair has the opposite order
    return found


def _switch(broker: subprocess.Popen[str]) -> str:
    assert broker.stdin is not None
    assert broker.stdout is not None
    broker.stdin.write("\n")
    broker.stdin.flush()
    return broker.stdout.readline().strip()


def _row(pairs: list[tuple[float, float]]) -> list[str]:
    ratios = sorted(on / off for on, off in pairs)
    margin = 0.98 * math.sqrt(len(ratios))
    low = ratios[max(0, math.floor(len(ratios) / 2 - margin))]
    high = ratios[min(len(ratios) - 1, math.ceil(len(ratios) / 2 + margin))]
    return [
        f"{statistics.median(on for on, _ in pairs):,.4g}",
        f"{statistics.median(off for _, off in pairs):,.4g}",
        f"{statistics.median(ratios):.3f}",
        f"{low:.3f} - {high:.3f}",
    ]
