"""Jobs on a cluster of workers, one of which dies, as does the broker: every record is archived once, every window is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import brokers
from ottla.compat_tests.clients.kafka_python import Client
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark import jvm
from ottla.compat_tests.spark.cluster import Cluster, Job, running
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, fill, value_of
from ottla.spark import pipeline
from ottla.spark.audit import Audit, compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.capability("a cluster of workers"),
    pytest.mark.restart,
    pytest.mark.timeout(1200),  # five JVMs are started, and executors for two jobs
]
EXAMPLE = Path(pipeline.__file__).parents[1] / "examples" / "clicks-per-minute.toml"
PARTITIONS = 4
PAGES = ("a", "b", "c")


@pytest.fixture
def cluster(tmp_path: Path, spark: SparkSession) -> Iterator[Cluster]:
    """Two workers; where Spark cannot run at all, the session's fixture says so."""
    with running(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def stock(broker_process: brokers.Restartable) -> Iterator[ClientSession]:
    """The client that writes, on the broker that will be killed."""
    session = ClientSession("kafka-python", Client(broker_process.bootstrap))
    yield session
    session.close()


class Clicks:
    """Clicks of one minute after the other, a second apart; ``counts`` has how many each page got in each minute.

    ``ends`` has how many there are in each partition.
    """

    def __init__(self, stock: ClientSession) -> None:
        self._producer = stock.producer(linger_ms=5)
        self._written = 0
        self.counts: dict[tuple[str, str], int] = {}
        self.ends = [0] * PARTITIONS

    def write(self, minutes: int) -> None:
        """Minutes more of them."""
        for number in range(self._written, self._written + 60 * minutes):
            minute, page = f"10:{number // 60:02}", PAGES[number % 7 % len(PAGES)]
            self.counts[page, minute] = self.counts.get((page, minute), 0) + 1
            self._send(page, f"{minute}:{number % 60:02}", number % PARTITIONS)
        self._written += 60 * minutes
        self._producer.flush()

    def end(self) -> None:
        """One that is later than all by more than the watermark's delay, so that all of their minutes are over."""
        self._send("a", "12:00:00", 0)
        self._producer.flush()

    def _send(self, page: str, clock: str, partition: int) -> None:
        value = {"page": page, "at": f"2026-03-01T{clock}Z"}
        self.ends[partition] += 1
        self._producer.send("clicks", json.dumps(value).encode(), partition=partition)


def jobs_on(cluster: Cluster, bootstrap: str, folder: Path) -> tuple[Job, Job]:
    """The archive of a topic and the clicks per minute, which run until they are told to end."""
    windows = folder / "clicks-per-minute.toml"
    # As it is shipped, but for ever, and in small batches, so that there is a middle in which to kill something.
    text = EXAMPLE.read_text().replace('name = "clicks-per-minute"', 'name = "clicks-per-minute"\ntrigger = "1 second"')
    windows.write_text(text.replace('format = "json"', 'format = "json"\nmax-offsets-per-trigger = 120'))
    server = ["--bootstrap-server", bootstrap]
    lake = folder / "lake" / "events"
    source = ["--topics", "events", "--output", str(lake), "--max-offsets-per-trigger", "1000", "--every", "1"]
    jvms = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    settings = cluster.settings(**dict.fromkeys(jvms, jvm.OPTIONS))
    run = ["run", str(windows), *server, *settings]
    return (
        Job(folder, "archive", "archive", *server, *source, *settings, checkpoint=lake / "_checkpoint"),
        Job(folder, "run", *run, checkpoint=folder / "checkpoints" / "clicks-per-minute" / "minutes"),
    )


def test_a_worker_and_the_broker_are_killed(
    spark: SparkSession,
    cluster: Cluster,
    broker_process: brokers.Restartable,
    stock: ClientSession,
    tmp_path: Path,
) -> None:
    for topic in ("events", "clicks"):
        stock.admin.create_topic(topic, PARTITIONS)
    clicks = Clicks(stock)
    written = 0

    def write_more() -> None:
        nonlocal written
        fill(stock, "events", *[1000] * PARTITIONS, first=written)
        written += 1000
        clicks.write(minutes=8)

    write_more()
    jobs = jobs_on(cluster, broker_process.bootstrap, tmp_path)
    try:
        for job in jobs:
            job.wait_for_batches(1)
        write_more()
        cluster.workers[0].kill()
        done = [job.batches() for job in jobs]
        # However far they have come: there is more to do for both.
        write_more()
        for job, number in zip(jobs, done, strict=True):
            job.wait_for_batches(number + 2)
        write_more()
        broker_process.kill()
        broker_process.start()
        clicks.end()
        jobs[0].wait_for_offsets("events", [written] * PARTITIONS)
        jobs[1].wait_for_offsets("clicks", clicks.ends)
        minutes = tmp_path / "lake" / "clicks-per-minute"
        expected = sorted((*where, number) for where, number in clicks.counts.items())
        eventually(lambda: spark.read.parquet(str(minutes)).count() >= len(expected), PATIENCE_S)
    finally:
        for job in jobs:
            job.kill()
    cluster.wait_for_workers(1)
    lake = str(tmp_path / "lake" / "events")
    audited = compare(spark, Audit(broker_process.bootstrap, topics=("events",), archive=lake))
    assert [(each.archived, each.is_clean) for each in audited] == [(written, True)] * PARTITIONS
    rows = spark.read.parquet(lake).select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, row.value) for row in rows) == [
        (partition, offset, value_of(partition, offset)) for partition in range(PARTITIONS) for offset in range(written)
    ]
    counted = spark.read.parquet(str(minutes)).collect()
    assert sorted((row.page, f"{row.minute:%H:%M}", row.clicks) for row in counted) == expected
