"""Jobs on a cluster of workers, one of which dies, as does the broker: every record is archived once, every window is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import brokers
from ottla.compat_tests.clients.kafka_python import Client
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.cluster import Cluster, Job, running
from ottla.compat_tests.spark.kafka_format import fill, value_of
from ottla.spark import pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.capability("a cluster of workers"),
    pytest.mark.restart,
    pytest.mark.timeout(600),  # five JVMs are started, and executors for two jobs
]
EXAMPLE = Path(pipeline.__file__).parents[1] / "examples" / "clicks-per-minute.toml"
PARTITIONS = 4
RECORDS = 5_000  # in each partition
MINUTES, PAGES = 30, ("a", "b", "c")


@pytest.fixture
def cluster(tmp_path: Path, spark: SparkSession) -> Iterator[Cluster]:
    """Two workers; where Spark cannot run at all, the session's fixture says so."""
    with running(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def stock(broker_process: brokers.BrokerProcess) -> Iterator[ClientSession]:
    """The client that writes, on the broker that will be killed."""
    session = ClientSession("kafka-python", Client(broker_process.bootstrap))
    yield session
    session.close()


def write_clicks(stock: ClientSession) -> dict[tuple[str, str], int]:
    """Clicks of thirty minutes, and a last one that ends them all; how many for each page and minute."""
    clicks: dict[tuple[str, str], int] = {}
    producer = stock.producer(linger_ms=5)
    for number in range(MINUTES * 60):
        minute, page = f"10:{number // 60:02}", PAGES[number % 7 % len(PAGES)]
        clicks[page, minute] = clicks.get((page, minute), 0) + 1
        value = {"page": page, "at": f"2026-03-01T{minute}:{number % 60:02}Z"}
        producer.send("clicks", json.dumps(value).encode(), partition=number % PARTITIONS)
    producer.send("clicks", b'{"page": "a", "at": "2026-03-01T12:00:00Z"}', partition=0)
    producer.flush()
    return clicks


def test_a_worker_and_the_broker_are_killed(
    spark: SparkSession,
    cluster: Cluster,
    broker_process: brokers.BrokerProcess,
    stock: ClientSession,
    tmp_path: Path,
) -> None:
    for topic in ("events", "clicks"):
        stock.admin.create_topic(topic, PARTITIONS)
    fill(stock, "events", *[RECORDS] * PARTITIONS)
    clicks = write_clicks(stock)
    windows = tmp_path / "clicks-per-minute.toml"
    # As it is shipped, but in many small batches, so that there is a middle in which to kill something.
    windows.write_text(
        EXAMPLE.read_text().replace('format = "json"', 'format = "json"\nmax-offsets-per-trigger = 120', 1)
    )
    server = ["--bootstrap-server", broker_process.bootstrap]
    lake = tmp_path / "lake"
    source = ["--topics", "events", "--output", str(lake / "events"), "--max-offsets-per-trigger", "1000"]
    archive = ["archive", *server, *source, *cluster.settings()]
    run = ["run", str(windows), *server, *cluster.settings()]
    jobs = [
        Job(tmp_path, "archive", *archive, checkpoint=lake / "events" / "_checkpoint"),
        Job(tmp_path, "run", *run, checkpoint=tmp_path / "checkpoints" / "clicks-per-minute" / "minutes"),
    ]
    try:
        for job in jobs:
            job.wait_for_batches(2)
        cluster.workers[0].kill()
        for job in jobs:
            job.wait_for_batches(job.batches() + 2)
        broker_process.kill()
        broker_process.start()
        for job in jobs:
            job.wait(timeout_s=300)
    finally:
        for job in jobs:
            job.kill()
    cluster.wait_for_workers(1)
    rows = spark.read.parquet(str(lake / "events")).select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, row.value) for row in rows) == [
        (partition, offset, value_of(partition, offset)) for partition in range(PARTITIONS) for offset in range(RECORDS)
    ]
    minutes = spark.read.parquet(str(lake / "clicks-per-minute")).collect()
    assert sorted((row.page, f"{row.minute:%H:%M}", row.clicks) for row in minutes) == sorted(
        (*where, number) for where, number in clicks.items()
    )
