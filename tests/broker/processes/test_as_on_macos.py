"""A broker without what macOS lacks (``as_on_macos``) does all that one on Linux does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

LIMIT_S = 120
READY = re.compile(r"is ready on (\S+),")
SCRIPT = Path(__file__).parents[1] / "helpers" / "as_on_macos.py"
# More than macOS takes for a buffer of a socket (8 MiB).
TOO_LARGE = 32 << 20
VALUES = [b"%d " % number + bytes(400_000) for number in range(12)]


class Served:
    """The process of a broker that can be connected to."""

    def __init__(self, data: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        match = READY.search(self.process.stdout.readline())
        assert match, self.process.communicate()[1]
        self.address = match.group(1)

    def stop(self) -> None:
        """Stop as SIGTERM does; nothing may have gone wrong until then."""
        self.process.terminate()
        _, log = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, log
        assert "Traceback" not in log
        assert "could not be accepted" not in log
        assert "paused" not in log


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(*options: str) -> Served:
        started.append(Served(tmp_path / "data", *options))
        return started[-1]

    yield start
    for broker in started:
        if broker.process.poll() is None:
            broker.process.kill()
            broker.process.communicate()


def read(address: str, count: int, group: str) -> list[bytes]:
    """So many values, committed by the group."""
    consumer = KafkaConsumer(
        "letters",
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
        fetch_max_bytes=8 << 20,
        max_partition_fetch_bytes=8 << 20,
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    values = [next(consumer).value for _ in range(count)]
    consumer.commit()
    consumer.close()
    return values


def test_records_and_groups_outlive_a_restart(serve: Callable[..., Served]) -> None:
    broker = serve(*(f"--override=socket.{which}.buffer.bytes={TOO_LARGE}" for which in ("send", "receive")))
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    # Each record is flushed before it is answered.
    admin.create_topics([NewTopic("letters", 1, 1, topic_configs={"flush.messages": "1"})])
    admin.close()
    with KafkaProducer(bootstrap_servers=broker.address, acks="all") as producer:
        for value in VALUES:
            producer.send("letters", value).get(timeout=LIMIT_S)
    assert read(broker.address, 5, "readers") == VALUES[:5]
    broker.stop()

    again = serve()
    assert read(again.address, 7, "readers") == VALUES[5:]
    assert read(again.address, 12, "others") == VALUES
    admin = KafkaAdminClient(bootstrap_servers=again.address)
    committed = admin.list_group_offsets("readers")["readers"]
    admin.close()
    assert committed[TopicPartition("letters", 0)].offset == 12
    again.stop()
