"""A producer beside a load: one-record requests, one at a time, and the latency of each.

    with InnocentProducer(bootstrap, "topic") as producer:
        producer.take()
        ...
        latencies_ms = producer.take()

It is a process of its own (``python -m bench.innocent_producer HOST:PORT TOPIC``), so that the load's client does not delay it.
Each line that it reads has one as response: the latencies since the line before, as JSON, in ms.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from .raw_client import produce_error, produce_frame

_ROOT = Path(__file__).resolve().parent.parent
_PAUSE_S = 0.002
_LIMIT_S = 60.0


class InnocentProducer:
    """It sends from the beginning of the block to its end."""

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

    def take(self) -> list[float]:
        """The latencies since the last call, in ms."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the innocent producer has ended")
        latencies: list[float] = json.loads(line)
        return latencies


def _send(port: int, topic: str, latencies: list[float]) -> None:
    frame = produce_frame(topic, b"x" * 100)
    with socket.create_connection(("127.0.0.1", port), timeout=_LIMIT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        while True:
            began = time.perf_counter()
            connection.sendall(frame)
            response = reader.read(int.from_bytes(reader.read(4)))
            latencies.append((time.perf_counter() - began) * 1000)
            if error := produce_error(response):
                raise RuntimeError(f"Produce returned error {error}")
            time.sleep(_PAUSE_S)


def main(bootstrap: str, topic: str) -> None:
    latencies: list[float] = []
    port = int(bootstrap.rpartition(":")[2])
    sender = threading.Thread(target=_send, args=(port, topic, latencies), daemon=True)
    sender.start()
    for _ in sys.stdin:
        if not sender.is_alive():
            break
        taken = latencies[:]
        del latencies[: len(taken)]
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
