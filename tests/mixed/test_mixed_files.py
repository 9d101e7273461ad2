"""What brokers of both kinds have on disk of the same partitions, as Kafka 3.9's own tools see it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED
from ottla.compat_tests.zookeeper import JARS

from .helpers.mixed import PATIENCE_S, Mixed

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def java(*arguments: str) -> list[str]:
    """A program of Kafka 3.9.2."""
    jars = [toolchains.jars(JARS), toolchains.jars("kafka-tools-3.9.2")]
    return [str(toolchains.java()), *SHORT_LIVED, "-cp", ":".join(f"{each}/*" for each in jars), *arguments]


def fill(mixed: Mixed, topic: str, partition: int) -> None:
    """Batches of every codec, of producers with and without ids, and transactions with both ends."""
    for codec in CODECS:
        for is_idempotent in (False, True):
            settings = {"compression.type": codec, "enable.idempotence": is_idempotent, "linger.ms": 20}
            mixed.produce(topic, [b"%d" % number for number in range(50)], partition, **settings)
    producer = Producer(
        {"bootstrap.servers": mixed.bootstrap, "transactional.id": f"{topic}-{partition}", "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"in a transaction", partition=partition)
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)


def test_kafka_dump_log_says_the_same_of_both(mixed: Mixed, controller: int, topic: str) -> None:
    check_dumps(mixed, topic, java("kafka.tools.DumpLogSegments"))


def check_dumps(mixed: Mixed, topic: str, dump_log: Sequence[str]) -> None:
    """The tool says the same of every broker's segments."""
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    for partition in range(len(mixed.ids)):
        fill(mixed, topic, partition)
        mixed.wait_same(topic, partition)
        dumps = dump(mixed, topic, partition, dump_log)
        assert len(dumps) == len(mixed.ids)
        assert dumps.count(dumps[0]) == len(dumps)
        assert dumps[0].count("baseOffset:") >= 2 * len(CODECS) + 4
        assert "isvalid: false" not in dumps[0]


def dump(mixed: Mixed, topic: str, partition: int, dump_log: Sequence[str]) -> Sequence[str]:
    """What kafka-dump-log says of each broker's segment, without its name."""
    files = []
    for broker in mixed.cluster.brokers:
        (data,) = broker.data_folders
        files.append(str(data / f"{topic}-{partition}" / f"{0:020}.log"))
    command = (*dump_log, "--deep-iteration", "--print-data-log", "--files", ",".join(files))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    parts = done.stdout.split("Dumping ")[1:]
    return [part.partition("\n")[2] for part in parts]


def test_kafka_replica_verification_finds_no_difference(mixed: Mixed, controller: int, topic: str) -> None:
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    for partition in range(len(mixed.ids)):
        fill(mixed, topic, partition)
    arguments = [
        "--broker-list",
        mixed.bootstrap,
        "--topics-include",
        topic,
        "--report-interval-ms",
        "500",
        "--time",
        "-2",
    ]
    command = java("org.apache.kafka.tools.ReplicaVerificationTool", *arguments)
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as verification:
        assert verification.stdout is not None
        try:
            for line in verification.stdout:
                said.append(line)
                if "max lag is" in line and f"partition {topic}-" in line:
                    break
        finally:
            verification.kill()
    verdict = [line for line in said if "max lag is" in line][-1]
    assert "max lag is 0 for partition" in verdict and f"among {len(mixed.ids)} partitions" in verdict, said
