"""Kafka requests over a plain socket, so that nearly all of the measured time is the broker's.

As a program, ``python -m bench.raw_client HOST:PORT TOPIC REQUESTS IN_FLIGHT`` sends Produce requests of one record
each and prints one line of JSON: ``requests_s``, ``p50_us``, ``p99_us``. Produce v7 and Metadata v1 are the plainest
versions that today's brokers still accept: fixed-width fields, no tags.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections import deque

import crc32c

_CLIENT_ID = b"\x00\x05bench"
_METADATA, _PRODUCE = 3, 0


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    message = struct.pack(">hhi", api_key, version, 0) + _CLIENT_ID + body
    return struct.pack(">i", len(message)) + message


def answers_metadata(port: int) -> bool:
    """True when the broker on ``port`` answers a Metadata request that names at least itself."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(_frame(_METADATA, 1, struct.pack(">i", 0)))
            reader = connection.makefile("rb")
            size = struct.unpack(">i", reader.read(4))[0]
            answer = reader.read(size)
            return int(struct.unpack_from(">i", answer, 4)[0]) > 0
    except (OSError, struct.error):
        return False


def _varint(value: int) -> bytes:
    zigzag = value << 1
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _batch(value: bytes) -> bytes:
    """A record batch v2 of one record without a key."""
    record = b"\x00\x00\x00\x01" + _varint(len(value)) + value + b"\x00"
    records = _varint(len(record)) + record
    now_ms = time.time_ns() // 1_000_000
    covered = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + records
    rest = struct.pack(">ibI", -1, 2, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(rest)) + rest


def produce_frame(topic: str, value: bytes) -> bytes:
    """A whole Produce v7 request, acks=1, one record for partition 0 of ``topic``."""
    name, batch = topic.encode(), _batch(value)
    body = struct.pack(">hhi", -1, 1, 30_000)
    body += struct.pack(">ih", 1, len(name)) + name
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    return _frame(_PRODUCE, 7, body)


def produce_error(answer: bytes) -> int:
    """Error code of the only partition in a Produce v7 response."""
    name_length = struct.unpack_from(">h", answer, 8)[0]
    return int(struct.unpack_from(">h", answer, 8 + 2 + name_length + 4 + 4)[0])


def one_record_requests(port: int, topic: str, requests: int, in_flight: int) -> dict[str, float]:
    """Send ``requests`` one-record Produce requests, ``in_flight`` at a time; rates and latencies in microseconds."""
    frame = produce_frame(topic, b"x" * 100)
    sent_at: deque[float] = deque()
    latencies: list[float] = []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        started = time.perf_counter()
        sent = 0
        while len(latencies) < requests:
            while sent < requests and len(sent_at) < in_flight:
                sent_at.append(time.perf_counter())
                connection.sendall(frame)
                sent += 1
            answer = reader.read(struct.unpack(">i", reader.read(4))[0])
            latencies.append(time.perf_counter() - sent_at.popleft())
            if error := produce_error(answer):
                raise RuntimeError(f"Produce returned error {error}")
        seconds = time.perf_counter() - started
    latencies.sort()
    return {
        "requests_s": requests / seconds,
        "p50_us": latencies[requests // 2] * 1e6,
        "p99_us": latencies[requests * 99 // 100] * 1e6,
    }


if __name__ == "__main__":
    _, _address, _topic, _requests, _in_flight = sys.argv
    print(json.dumps(one_record_requests(int(_address.rpartition(":")[2]), _topic, int(_requests), int(_in_flight))))
