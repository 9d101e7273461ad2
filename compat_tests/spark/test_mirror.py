"""``ottla spark mirror``: topics and groups from one cluster to another, the broker under test being either of them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.session import ClientSession, consume, eventually
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, fill
from ottla.compat_tests.spark.killing import kill_all
from ottla.compat_tests.wire_client import Operator
from ottla.spark.mirror.groups import Carried
from ottla.spark.mirror.job import Mirror, Mirrored, run
from ottla.spark.query import JobControl, JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("mirror job")]


@dataclass(frozen=True)
class Cluster:
    """A broker, and a client to look at it with."""

    bootstrap: str
    stock: ClientSession

    def create(self, name: str, partitions: int = 1, **configs: str) -> str:
        """A topic, ready for use."""
        Operator(self.bootstrap).create_topic(name, partitions, configs)
        return name


@pytest.fixture(scope="session")
def second_broker() -> Iterator[tuple[str, model.Client]]:
    """An Ottla beside the broker under test."""
    with ottla.Broker() as broker:
        driver = CLIENTS["kafka-python"].connect(broker.bootstrap_servers)
        yield broker.bootstrap_servers, driver
        driver.close()


@pytest.fixture
def tested(bootstrap: str, stock: ClientSession) -> Cluster:
    """The broker under test."""
    return Cluster(bootstrap, stock)


@pytest.fixture
def other(second_broker: tuple[str, model.Client]) -> Iterator[Cluster]:
    """The other one."""
    address, driver = second_broker
    session = ClientSession("kafka-python", driver)
    yield Cluster(address, session)
    session.close()


@pytest.fixture(params=["source", "target"])
def both_ways(request: pytest.FixtureRequest, tested: Cluster, other: Cluster) -> tuple[Cluster, Cluster]:
    """Source and target, of which the broker under test is the one and then the other."""
    return (tested, other) if request.param == "source" else (other, tested)


def contents(cluster: Cluster, topic: str, *counts: int) -> dict[int, list[tuple[Any, ...]]]:
    """Key, value, headers and timestamp of all committed records, by partition; ``counts`` of them, and not one more."""
    consumer = cluster.stock.consumer(read_committed=True)
    consumer.assign({(topic, partition): "beginning" for partition in range(len(counts))})
    messages = consume(consumer, sum(counts))
    assert consumer.poll(0.5) == []
    found: dict[int, list[tuple[Any, ...]]] = {partition: [] for partition in range(len(counts))}
    for each in messages:
        found[each.partition].append((each.key, each.value, each.headers, each.timestamp_ms))
    assert [len(found[partition]) for partition in range(len(counts))] == list(counts)
    return found


def values(cluster: Cluster, topic: str, *counts: int) -> dict[int, list[bytes]]:
    """The same, values only."""
    found = contents(cluster, topic, *counts)
    return {partition: [record[1] for record in records] for partition, records in found.items()}


def test_everything_of_a_record_is_kept(
    spark: SparkSession, both_ways: tuple[Cluster, Cluster], fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    source, target = both_ways
    topic = source.create(fresh_name("kept"), 3, **{"max.message.bytes": "2000000"})
    at = int(time.time() * 1000) - 1_000_000
    # kafka-python sends no header without a value.
    writer = ClientSession("confluent-kafka", CLIENTS["confluent-kafka"].connect(source.bootstrap))
    producer = writer.producer()
    producer.send(topic, b"plain", key=b"k", partition=0, timestamp_ms=at)
    producer.send(topic, b"no key", partition=0, timestamp_ms=at - 5)
    producer.send(topic, None, key=b"tombstone", partition=0, timestamp_ms=at + 7)
    producer.send(topic, b"", key=b"", partition=2, timestamp_ms=at, headers=[("h", b"1"), ("h", b"2"), ("n", None)])
    producer.send(topic, bytes(range(256)) * 5000, partition=2, timestamp_ms=at + 1)
    producer.flush()
    writer.close()
    # What was aborted is not copied, and leaves a gap.
    aborting = source.stock.producer(transactional_id=topic)
    aborting.begin()
    aborting.send(topic, b"aborted", partition=0)
    aborting.flush()
    aborting.abort()
    fill(source.stock, topic, 0, 200)
    job = Mirror(source.bootstrap, target.bootstrap, str(tmp_path / "checkpoint"), topics=(topic,), prefix="copy.")
    done = Mirrored()
    run(spark, job, done)
    assert done.records == 205
    assert contents(target, f"copy.{topic}", 3, 200, 2) == contents(source, topic, 3, 200, 2)


def own_configs(cluster: Cluster, topic: str) -> dict[str, str | None]:
    """What is set on the topic itself."""
    described = cluster.stock.admin.describe_configs("topic", topic)
    return {name: entry.value for name, entry in described.items() if entry.source == 1}


def test_configs_follow_those_of_the_source(
    spark: SparkSession, both_ways: tuple[Cluster, Cluster], fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    source, target = both_ways
    of_the_cluster = {"min.insync.replicas": "1", "message.timestamp.before.max.ms": "3600000"}
    own = {"retention.ms": "99000000000", "max.message.bytes": "2000000"}
    topic = source.create(fresh_name("configured"), 1, **own, **of_the_cluster)
    copy = f"copy.{topic}"

    def mirror(sync_configs: bool = True) -> None:
        checkpoint = str(tmp_path / "checkpoint")
        job = Mirror(
            source.bootstrap, target.bootstrap, checkpoint, (topic,), prefix="copy.", sync_configs=sync_configs
        )
        run(spark, job, Mirrored())

    mirror(sync_configs=False)
    assert own_configs(target, copy) == own
    changed = {"retention.ms": "88000000000", "segment.bytes": "1048576"}
    source.stock.admin.alter_configs(topic, changed | of_the_cluster)
    of_the_target = {"unclean.leader.election.enable": "true"}
    target.stock.admin.alter_configs(copy, own | of_the_target)
    mirror(sync_configs=False)
    assert own_configs(target, copy) == own | of_the_target
    mirror()
    assert own_configs(target, copy) == changed | of_the_target


def test_nothing_is_written_twice_even_without_the_checkpoint(
    spark: SparkSession, tested: Cluster, other: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic = tested.create(fresh_name("twice"), 2)
    fill(tested.stock, topic, 300, 20)
    for number, (extra, written) in enumerate([(0, 320), (50, 50), (0, 0)]):
        fill(tested.stock, topic, extra, first=300)
        done = Mirrored()
        run(spark, Mirror(tested.bootstrap, other.bootstrap, str(tmp_path / str(number)), topics=(topic,)), done)
        assert done.records == written
    assert values(other, topic, 350, 20) == values(tested, topic, 350, 20)
    read = tested.stock.admin.group_offsets(f"ottla-to-{other.stock.admin.describe_cluster().cluster_id}")
    assert {where: at.offset for where, at in read.items() if where[0] == topic} == {(topic, 0): 350, (topic, 1): 20}


def test_new_topics_partitions_and_commits_while_it_runs(
    spark: SparkSession, tested: Cluster, other: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = fresh_name("growing")
    first = tested.create(f"{name}-1", 1)
    fill(tested.stock, first, 10)
    job = Mirror(
        tested.bootstrap,
        other.bootstrap,
        str(tmp_path / "checkpoint"),
        pattern=f"{name}.*",
        groups=f"{name}.*",
        every_s=0.2,
    )
    failures: list[BaseException] = []
    watch = JobControl()

    def work() -> None:
        try:
            run(spark, job, Mirrored(), watch)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        arrives(other, thread, first, 10)
        tested.stock.admin.create_partitions(first, 2)
        Operator(tested.bootstrap).wait_until_ready(first, 2)
        second = tested.create(f"{name}-2", 3)
        fill(tested.stock, first, 0, 7)
        fill(tested.stock, second, 1, 2, 3)
        arrives(other, thread, first, 10, 7)
        arrives(other, thread, second, 1, 2, 3)
        # No record comes with these.
        tested.stock.admin.alter_configs(second, {"retention.ms": "88000000000"})
        followed = {"retention.ms": "88000000000"}
        eventually(lambda: not thread.is_alive() or own_configs(other, second) == followed, PATIENCE_S)
        tested.stock.admin.alter_group_offsets(name, {(first, 1): model.Committed(4)})
        eventually(lambda: not thread.is_alive() or (first, 1) in other.stock.admin.group_offsets(name), PATIENCE_S)
        assert thread.is_alive()
    finally:
        # The end of the micro-batch is awaited, and what it still commits with it.
        watch.stop.set()
        thread.join()
    assert failures == []
    assert values(other, first, 10, 7) == values(tested, first, 10, 7)
    assert values(other, second, 1, 2, 3) == values(tested, second, 1, 2, 3)


def arrives(cluster: Cluster, thread: threading.Thread, topic: str, *counts: int) -> None:
    """Wait until each partition has so many records, while the mirror goes on."""

    def ends() -> list[int]:
        assert thread.is_alive()
        if topic not in cluster.stock.admin.list_topics():
            return []
        known = cluster.stock.admin.describe_topic(topic).leaders
        return [cluster.stock.admin.list_offset(topic, partition, -1) for partition in known]

    def is_there() -> bool:
        try:
            found = ends()
        except model.ClientFailure:
            return False  # it is listed, and its leader does not know yet
        return len(found) == len(counts) and all(end >= count for end, count in zip(found, counts, strict=True))

    eventually(is_there, PATIENCE_S)


def test_groups_go_on_where_they_were(
    spark: SparkSession, tested: Cluster, other: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic = tested.create(fresh_name("groups"), 2)
    job = Mirror(tested.bootstrap, other.bootstrap, str(tmp_path / "checkpoint"), topics=(topic,), groups=f"{topic}.*")
    transactional = tested.stock.producer(transactional_id=topic)
    for first in range(0, 300, 100):
        # Each transaction leaves a marker in the source, and each run one in the target.
        for start in range(first, first + 100, 20):
            transactional.begin()
            for number in range(start, start + 20):
                transactional.send(topic, b"%d" % number, partition=0)
            transactional.commit()
        run(spark, job, Mirrored())
    read = {number: offset_of(tested, topic, b"%d" % number) for number in (0, 19, 20, 150, 299)}
    groups = {f"{topic}-{number}": number for number in read}
    for group, number in groups.items():
        tested.stock.admin.alter_group_offsets(group, {(topic, 0): model.Committed(read[number] + 1, "kept")})
    member = other.stock.consumer(group_id=f"{topic}-150")
    member.subscribe([topic])
    eventually(lambda: [member.poll(0.1), member.assignment()][1])
    done = Mirrored()
    run(spark, job, done)
    assert done.records == 0
    assert done.carried == Carried(tuple(sorted(set(groups) - {f"{topic}-150"})), (f"{topic}-150",))
    member.close()
    run(spark, job, done)
    assert done.carried == Carried(tuple(sorted(groups)))
    for group, number in groups.items():
        committed = other.stock.admin.group_offsets(group)[topic, 0]
        assert committed.metadata == "kept"
        assert after(other, topic, committed.offset, 299 - number) == [b"%d" % each for each in range(number + 1, 300)]
    # It went on at the target: what the source says does not set it back.
    moved = f"{topic}-20"
    end = other.stock.admin.list_offset(topic, 0, -1)
    other.stock.admin.alter_group_offsets(moved, {(topic, 0): model.Committed(end)})
    run(spark, job, done)
    assert other.stock.admin.group_offsets(moved)[topic, 0].offset == end


def offset_of(cluster: Cluster, topic: str, value: bytes) -> int:
    consumer = cluster.stock.consumer(read_committed=True)
    consumer.assign({(topic, 0): "beginning"})
    return next(each.offset for each in consume(consumer, 300) if each.value == value)


def after(cluster: Cluster, topic: str, offset: int, count: int) -> list[bytes | None]:
    """The values that a consumer gets which begins there: so many of them, and what comes with and after the last."""
    consumer = cluster.stock.consumer(read_committed=True)
    consumer.assign({(topic, 0): offset})
    return [each.value for each in (*consume(consumer, count), *consumer.poll(0.5))]


def test_what_it_refuses(
    spark: SparkSession, tested: Cluster, other: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic = tested.create(fresh_name("refused"), 1)
    tested.stock.produce(topic, [bytes(1000)])
    fill(tested.stock, topic, 9)

    def fails(match: str, source: str = tested.bootstrap, target: str = other.bootstrap, **options: Any) -> None:
        job = Mirror(source, target, str(tmp_path / match), **{"topics": (topic,), **options})
        with pytest.raises(JobError, match=match):
            run(spark, job, Mirrored())

    fails("^the source has no topic unknown$", topics=(topic, "unknown"))
    fails("^source and target are the same cluster, so a prefix is needed$", target=tested.bootstrap)
    other.create(f"small.{topic}", 1, **{"max.message.bytes": "100"})
    fails("^RuntimeError: small.*: Broker: Message size too large$", prefix="small.", sync_configs=False)
    run(spark, Mirror(tested.bootstrap, other.bootstrap, str(tmp_path / "before"), topics=(topic,)), Mirrored())
    tested.stock.admin.delete_topic(topic)
    eventually(lambda: topic not in tested.stock.admin.list_topics())
    tested.create(topic, 1)
    fill(tested.stock, topic, 5)
    fails(f"^{topic} was deleted and created again at the source: ")
    assert values(other, topic, 10)[0][-1] == b"0:8"


def test_what_was_mirrored_is_not_mirrored_again(
    spark: SparkSession, tested: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = fresh_name("loop")
    tested.create(f"{name}-empty", 1)
    fill(tested.stock, tested.create(f"{name}-full", 1), 3)
    job = Mirror(
        tested.bootstrap, tested.bootstrap, str(tmp_path / "checkpoint"), pattern=f".*{name}.*", prefix="copy."
    )
    for records in (3, 0, 0):
        done = Mirrored()
        run(spark, job, done)
        assert done.records == records
    made = {topic for topic in tested.stock.admin.list_topics() if name in topic}
    assert made == {f"{name}-empty", f"{name}-full", f"copy.{name}-empty", f"copy.{name}-full"}


def start_mirror(source: Cluster, target: Cluster, topic: str, checkpoint: Path) -> subprocess.Popen[str]:
    """The command in a session of its own, so that its JVM and workers can be killed with it."""
    command = [sys.executable, "-m", "ottla", "spark", "mirror", "--from", source.bootstrap, "--to", target.bootstrap]
    command += ["--topics", topic, "--checkpoint", str(checkpoint), "--max-offsets-per-trigger", "1000"]
    command += ["--master", "local[2]", "--setting", "spark.sql.execution.arrow.maxRecordsPerBatch=50"]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def test_killed_in_the_middle(
    spark: SparkSession, tested: Cluster, other: Cluster, fresh_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic = tested.create(fresh_name("killed"), 2)
    fill(tested.stock, topic, 2000, 2000)
    job = start_mirror(tested, other, topic, tmp_path / "checkpoint")
    try:
        # The second micro-batch is under way: ten transactions in each partition.
        eventually(lambda: topic in other.stock.admin.list_topics(), PATIENCE_S)
        Operator(other.bootstrap).wait_until_ready(topic, 2)
        eventually(lambda: other.stock.admin.list_offset(topic, 0, -1) > 600, PATIENCE_S)
    finally:
        kill_all(job)
    job.communicate()
    assert other.stock.admin.list_offset(topic, 0, -1) < 2000

    done = Mirrored()
    run(spark, Mirror(tested.bootstrap, other.bootstrap, str(tmp_path / "checkpoint"), topics=(topic,)), done)
    assert 0 < done.records < 4000 - 500
    assert values(other, topic, 2000, 2000) == values(tested, topic, 2000, 2000)
