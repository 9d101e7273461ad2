"""A broker process with a console, and its data, for the tests in Chromium and for ``screenshots``."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer

from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
MANY = 600_000
_STOP_SECONDS = 60
_USERS = 'user_admin="admins-secret" user_alice="alices-secret"'
_SECURED = f"""
listeners=SASL_PLAINTEXT://127.0.0.1:0
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin
"""


class Served:
    """A broker process and its console."""

    def __init__(self, folder: str, options: Sequence[str] = ("--listen", "127.0.0.1:0")) -> None:
        self.process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "ottla",
                    "serve",
                    *options,
                    "--console",
                    "127.0.0.1:0",
                    "--console-allow-writes",
                ),
                *("--data-dir", folder, "--override", "group.initial.rebalance.delay.ms=0"),
                *("--override", "log.retention.ms=-1"),  # records of the test are old
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = ""
        while "the console is on" not in line:
            line = self.process.stderr.readline()
            assert line, "the broker has ended"
        self.console = line.split()[-1].rstrip("/")
        self.address = self.process.stdout.readline().split(" is ready on ")[1].split(",")[0]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=_STOP_SECONDS)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """A context with an empty broker."""
    running = Served(str(folder))
    try:
        yield running
    finally:
        running.stop()


@contextlib.contextmanager
def serving_users(folder: Path) -> Iterator[Served]:
    """One whose console asks who looks, for users admin and alice."""
    properties = folder / "server.properties"
    properties.write_text(_SECURED)
    running = Served(str(folder / "data"), ("--config", str(properties)))
    try:
        yield running
    finally:
        running.stop()


def fill(address: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address, client_id="shop")
    for number in range(120):
        value = json.dumps({"order": number, "total": (1 << 63) - 1 - number})
        producer.send("orders", key=b"customer-%d" % number, value=value.encode(), headers=[("trace", b"%d" % number)])
    producer.send("evil", key=EVIL.encode(), value=EVIL.encode())
    producer.close()
    reader = KafkaConsumer(
        "orders", bootstrap_servers=address, group_id="billing", auto_offset_reset="earliest", max_poll_records=50
    )
    while not reader.poll(1000):
        pass
    reader.commit()
    reader.close()
    client = Connection(address)
    client.call(CreateTopicsRequest(topics=[CreatableTopic(name="many", num_partitions=1, replication_factor=1)]), 5)
    batch = build_batch([Record(timestamp=1_700_000_000_000, value=b"v%d" % number) for number in range(20_000)])
    for _ in range(MANY // 20_000):
        data = [PartitionProduceData(index=0, records=batch)]
        client.call(
            ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name="many", partition_data=data)]),
            9,
        )
    client.close()
