"""Rates for ``ottla cluster balance``: from offsets, and from the Prometheus metrics of a broker that serves them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaProducer

import ottla
from ottla.balance.model import Key
from ottla.cli.balance.rates import MeasurementWindow, PartitionRates, topic_values
from ottla.cli.tools.client import Admin
from ottla.cli.tools.running import ToolError

from ..helpers.command import Command

LARGE, SMALL = 20_000, 200


@pytest.fixture(scope="module")
def metered() -> Iterator[ottla.Broker]:
    with ottla.Broker(properties={"metrics.listener": "127.0.0.1:0"}) as running:
        yield running


def measured(broker: ottla.Broker, topics: tuple[str, str], *metrics: str) -> dict[Key, PartitionRates]:
    """The first topic had large records until then, and gets as many small ones in the window as the second."""
    changed, same = topics
    with (
        closing(Admin(bootstrap_servers=broker.bootstrap_servers)) as admin,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1} for topic in topics})

        def write(topic: str, size: int) -> None:
            for number in range(20):
                producer.send(topic, bytes(size), partition=number % 2).get(timeout=60)

        def write_in_window(seconds: float) -> None:
            write(changed, SMALL)
            write(same, SMALL)

        write(changed, LARGE)
        write(same, SMALL)
        sizes = {(topic, n): 10 * (LARGE if topic == changed else SMALL) for topic in topics for n in range(2)}
        return MeasurementWindow(1, metrics, write_in_window).measure(admin, sizes)


def test_offsets_count_a_record_as_large_as_the_average(metered: ottla.Broker) -> None:
    rates = measured(metered, ("offsets-changed", "offsets-same"))
    assert rates["offsets-changed", 0].written > 10 * rates["offsets-same", 0].written > 0


def test_a_partition_that_grows_many_times_over_in_the_window(metered: ottla.Broker) -> None:
    """Both get a hundred records of one size; one had a single record before, the other had a hundred."""
    young, old = ("grows-young", 0), ("grows-old", 0)
    with (
        closing(Admin(bootstrap_servers=metered.bootstrap_servers)) as admin,
        KafkaProducer(bootstrap_servers=metered.bootstrap_servers) as producer,
    ):
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1} for topic, _ in (young, old)})

        def write(key: Key, count: int) -> None:
            for sent in [producer.send(key[0], bytes(SMALL), partition=0) for _ in range(count)]:
                sent.get(timeout=60)

        def write_in_window(seconds: float) -> None:
            write(young, 100)
            write(old, 100)

        write(young, 1)
        write(old, 100)
        rates = MeasurementWindow(1, (), write_in_window).measure(admin, {young: SMALL, old: 100 * SMALL})
    assert rates[young].written == rates[old].written > 0


def test_metrics_tell_the_bytes_that_were_written(metered: ottla.Broker) -> None:
    assert metered.metrics_address is not None
    rates = measured(metered, ("metrics-changed", "metrics-same"), metered.metrics_address)
    changed, same = (
        sum(rate.written for (topic, _), rate in rates.items() if topic == each)
        for each in ("metrics-changed", "metrics-same")
    )
    assert changed == pytest.approx(same, rel=0.05) and same > 0
    assert rates["metrics-changed", 0].written == pytest.approx(changed / 2, rel=0.05), "spread as offsets say"


def test_the_command_takes_them(metered: ottla.Broker) -> None:
    command = Command(metered.bootstrap_servers)
    options = ("cluster", "balance", "--dry-run", "--disk-limit", "100", "--window", "0.1")
    found = command.json(*options, "--metrics", str(metered.metrics_address))
    assert [broker["broker"] for broker in found["brokers"]] == [metered.broker_id]


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_an_address_without_metrics_is_named(metered: ottla.Broker, answer: bytes) -> None:
    """One that closes the connection, and one that speaks another protocol."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        closing(Admin(bootstrap_servers=metered.bootstrap_servers)) as admin,
    ):
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ToolError, match=f"http://{address}/metrics gives no metrics"):
            MeasurementWindow(1, (address,)).measure(admin, {("t", 0): 1})
        thread.join()


def test_metrics_without_a_topic_do_not_count() -> None:
    page = (
        "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n"
        "kafka_server_brokertopicmetrics_bytesin_total 9.0\n"
        'kafka_server_brokertopicmetrics_bytesin_total{topic="a.b"} 3.5e+06 1700000000\n'
    )
    assert topic_values(page) == [("kafka_server_brokertopicmetrics_bytesin_total", "a.b", 3_500_000.0)]
