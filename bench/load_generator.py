"""The load generator of ``bench/c``, far cheaper in CPU than a client in Python, and its requests.

    with LoadGenerator(folder, port, produce_request("topic", [0], batch(1))) as generator:
        generator.run(1000)

Its connections stay open from one run to the next, so a warm-up and a run that is measured have the same ones.
"""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ottla.compat_tests.raw.requests import fetch_request
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import encode_request_header
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

from .c_programs import compiled
from .java import ToolFailed

RECORD_BYTES = 100
"""The value of each record; there is no key."""
_VERSION, _FETCH_VERSION = 7, 11
_CLIENT_ID = "bench"
_TIMEOUT_MS = 30_000


def batch(records: int) -> bytes:
    """A batch of records of 100 B."""
    now_ms = time.time_ns() // 1_000_000
    return bytes(build_batch([Record(timestamp=now_ms, value=b"x" * RECORD_BYTES)] * records))


def records_in(size: int) -> int:
    """How many records a batch holds that is as large as one of ``size`` bytes can be, and at least one."""
    fewest, too_many = 1, size // RECORD_BYTES + 1
    while too_many - fewest > 1:
        half = (fewest + too_many) // 2
        if len(batch(half)) <= size:
            fewest = half
        else:
            too_many = half
    return fewest


def produce_request(topic: str, partitions: Sequence[int], records: bytes, acks: int = 1) -> bytes:
    """A whole frame: the same batch for each of these partitions."""
    data = [PartitionProduceData(index=partition, records=records) for partition in partitions]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    body = encode_bytes(ProduceRequest(acks=acks, timeout_ms=_TIMEOUT_MS, topic_data=topics), _VERSION)
    message = encode_request_header(ApiKey.PRODUCE, _VERSION, 0, _CLIENT_ID) + body
    return struct.pack(">i", len(message)) + message


def fetch_frame(topic: str, partition: int, most_bytes: int = 1 << 20) -> bytes:
    """A whole frame: a Fetch of the first records of a partition, without a session."""
    request = fetch_request(topic, {partition: 0}, partition_max_bytes=most_bytes)
    body = encode_bytes(request, _FETCH_VERSION)
    message = encode_request_header(ApiKey.FETCH, _FETCH_VERSION, 0, _CLIENT_ID) + body
    return struct.pack(">i", len(message)) + message


class LoadGenerator:
    """Sends ``request`` to a port of loopback; when the block begins, its connections are open.

    It is compiled in ``folder``. Raises ToolFailed where that, or a run, fails.
    """

    def __init__(self, folder: Path, port: int, request: bytes, connections: int = 1, in_flight: int = 1) -> None:
        self._folder, self._request = folder, request
        self._options = (str(connections), str(in_flight))
        self._port = port

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> LoadGenerator:
        program = compiled("load", self._folder)
        file = self._folder / "request"
        file.write_bytes(self._request)
        self._process = subprocess.Popen(
            [program, str(self._port), file, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self._line()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, requests: int) -> dict[str, float]:
        """Send so many requests, and wait for their answers: ``requests_s``, ``p50_us``, ``p99_us``, ``seconds``."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and there is no line
            self._process.stdin.write(f"{requests}\n")
            self._process.stdin.flush()
        figures: dict[str, float] = json.loads(self._line())
        return figures

    def _line(self) -> str:
        """The next line that it prints. It ends by itself only when something is wrong."""
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            raise ToolFailed(f"the load generator: {self._process.stderr.read().strip()}")
        return line
