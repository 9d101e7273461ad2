"""A producer beside a load: one-record requests, one at a time, and the latency of each.

    with InnocentProducer(bootstrap, "topic") as producer:
        producer.begin()
        ...
        latencies_ms = producer.end()

It is a process of its own (``python -m bench.innocent_producer HOST:PORT TOPIC``), so that the load's client does not delay it.
It reads lines: after one it sends, after the next it stops and writes the latencies as JSON, in ms.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .raw_client import produce_error, produce_frame

_ROOT = Path(__file__).resolve().parent.parent
_PAUSE_S = 0.002
_LIMIT_S = 60.0


class InnocentProducer:
    """Its process lasts as long as the block."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._command = [sys.executable, "-m", "bench.innocent_producer", bootstrap, topic]

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> InnocentProducer:
        self._process = subprocess.Popen(
            self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self) -> None:
        """Send from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> list[float]:
        """Stop; the latencies since ``begin``, in ms. RuntimeError where the broker refuses a record."""
        self.begin()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the innocent producer has ended")
        latencies: list[float] = json.loads(line)
        return latencies


def _send(port: int, topic: str, ends: threading.Event, latencies: list[float]) -> None:
    frame = produce_frame(topic, b"x" * 100)
    with socket.create_connection(("127.0.0.1", port), timeout=_LIMIT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        while True:  # one at least, however soon it is to end
            began = time.perf_counter()
            connection.sendall(frame)
            response = reader.read(int.from_bytes(reader.read(4)))
            latencies.append((time.perf_counter() - began) * 1000)
            if error := produce_error(response):
                sys.exit(f"Produce returned error {error}")
            if ends.wait(_PAUSE_S):
                return


def main(bootstrap: str, topic: str) -> None:
    port = int(bootstrap.rpartition(":")[2])
    while sys.stdin.readline():
        ends, latencies = threading.Event(), list[float]()
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(_send, port, topic, ends, latencies)
            sys.stdin.readline()
            ends.set()
            sending.result()
        print(json.dumps(latencies), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
