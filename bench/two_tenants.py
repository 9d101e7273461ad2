"""``python -m bench.two_tenants``: the slowdown of a tenant by one that exceeds its quota, on Ottla and Apache Kafka.

The modest tenant writes a record of 1 KB a hundred times a second with acks=1, each after the response to the one before;
its latency is measured. The greedy one does not write, writes as much as it can without a quota, and with one of 1 MB a second.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData

from .brokers import ApacheKafka, Kind, Ottla, RunningBroker

_ROOT = Path(__file__).resolve().parent.parent
_TOPIC = "tenants"
_GREEDY = "greedy"
_QUOTA = 1_000_000
_SECONDS = 20.0
_SETTLING_SECONDS = 12.0
"""In this time the greedy tenant uses up its quota for the time before it began."""
_PAUSE_SECONDS = 0.01


def main(arguments: Sequence[str]) -> None:
    if arguments:
        _be_greedy(arguments[0])
    else:
        for kind in (Ottla(), ApacheKafka()):
            _measure(kind)


def _measure(kind: Kind) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder,
        RunningBroker(kind, Path(folder) / "b") as broker,
    ):
        broker.create_topic(_TOPIC, 1)
        with connect(broker.bootstrap) as modest:
            _latencies(modest, 3.0)  # a JVM compiles meanwhile
            _print(kind, "alone", _latencies(modest, _SECONDS), "")
            _beside_greedy(kind, broker, modest, "beside one without a quota")
            _set_quota(modest)
            _beside_greedy(kind, broker, modest, f"beside one with a quota of {_QUOTA / 1e6:g} MB/s")


def _beside_greedy(kind: Kind, broker: RunningBroker, modest: Connection, what: str) -> None:
    command = [sys.executable, "-m", "bench.two_tenants", broker.bootstrap]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as greedy:
        assert greedy.stdout is not None
        time.sleep(_SETTLING_SECONDS)
        began = _written(broker)
        latencies = _latencies(modest, _SECONDS)
        rate = (_written(broker) - began) / _SECONDS / 1e6
        greedy.terminate()
    _print(kind, what, latencies, f"{rate:.1f}")


def _written(broker: RunningBroker) -> int:
    """The size of the topic's log in bytes, most of it from the greedy tenant."""
    return sum(file.stat().st_size for file in broker.data_folder.glob(f"**/{_TOPIC}-0/*.log"))


def _latencies(connection: Connection, seconds: float) -> list[float]:
    """The latency of each request, in seconds."""
    found = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        request = produce_request(_TOPIC, {0: batch(bytes(1000))}, acks=1)
        began = time.perf_counter()
        answer = connection.call(request, 9, client_id="modest")
        found.append(time.perf_counter() - began)
        assert answer.responses[0].partition_responses[0].error_code == 0
        time.sleep(_PAUSE_SECONDS)
    return found


def _set_quota(connection: Connection) -> None:
    entity = [EntityData(entity_type="client-id", entity_name=_GREEDY)]
    ops = [OpData(key="producer_byte_rate", value=float(_QUOTA))]
    (answer,) = connection.call(AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)]), 1).entries
    assert answer.error_code == 0, answer


def _print(kind: Kind, what: str, latencies: Sequence[float], rate: str) -> None:
    median, late = statistics.median(latencies) * 1e3, statistics.quantiles(latencies, n=100)[98] * 1e3
    print(f"| {kind.name} | {what} | {rate} | {median:.2f} | {late:.2f} |", flush=True)


def _be_greedy(bootstrap: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "client.id": _GREEDY,
        "acks": "1",
        "linger.ms": 5,
        "batch.size": 100_000,
    }
    producer = Producer(settings)
    while True:
        try:
            producer.produce(_TOPIC, bytes(1000))
        except BufferError:
            producer.poll(0.01)


if __name__ == "__main__":
    main(sys.argv[1:])
