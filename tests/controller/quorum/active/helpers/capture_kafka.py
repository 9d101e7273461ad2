"""Writes the ``kafka-4.3.1-*.json``: requests to a controller of Apache Kafka 4.3.1, and what it responded and wrote.

    python -m ottla.tests.controller.quorum.active.helpers.capture_kafka            # all files
    python -m ottla.tests.controller.quorum.active.helpers.capture_kafka upgrades   # one of them

A file is a linear script. Its cluster has one controller, whose id is 3000, and no broker: the program registers brokers of its
own making, so nothing happens in the cluster but the steps. Each step has the records that the log had after it and not before.
``offset`` is that of the first of them; the epoch of a broker is the offset of its registration. A step with a ``principal`` was
sent in an Envelope. A step without an ``api`` is something that happened with time, or at the start. The scripts are in
``capture_*.py``; ``operations.py`` tells how messages are written.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import CLIENT_ID, Connection, connect
from ottla.controller.quorum.envelope import enveloped, opened
from ottla.controller.quorum.replay import RecordReplay
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition, PartitionRegistration
from ottla.security.principal import parse_principal
from ottla.wire.api_keys import ApiKey
from ottla.wire.control_records import decode_quorum_record
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.metadata_log_records import BeginTransactionRecord, EndTransactionRecord
from ottla.wire.metadata_records import VersionedRecord, decode_metadata_record
from ottla.wire.records import iter_batches
from ottla.wire.registry import request_class

from .operations import HERE, TOKEN_SECRET, Names, dump

CONTROLLER = 3000
PORT = 30930
"""Of its listener. It is in the record of its registration, and so always the same."""
_MINUTES_MS = 3_600_000
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": TOKEN_SECRET,
    "metadata.max.idle.interval.ms": "0",
    "broker.session.timeout.ms": str(_MINUTES_MS),
    "auto.leader.rebalance.enable": "false",
    "num.partitions": "2",
    "default.replication.factor": "1",
}


class KafkaController(BrokerProcess):
    """A controller of Apache Kafka without a broker, which is alone. ``format_options`` are kafka-storage's."""

    def __init__(self, folder: Path, properties: Mapping[str, str], format_options: Sequence[str]) -> None:
        super().__init__(folder, properties=properties, port=PORT)
        self._file = folder / "server.properties"
        given = {
            "process.roles": "controller",
            "node.id": str(CONTROLLER),
            "controller.quorum.voters": f"{CONTROLLER}@{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "listeners": f"CONTROLLER://{self.address}",
            "log.dirs": self.log_dirs,
            **properties,
        }
        self._file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        command = [*java_command(folder, *SHORT_LIVED), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
        subprocess.run([*command, "-c", str(self._file), *format_options], check=True)

    def command(self) -> list[str]:
        options = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return [*java_command(self.folder, *options), "kafka.Kafka", str(self._file)]


class Capture:
    """One file in the making."""

    def __init__(self, log: Path, connection: Connection) -> None:
        self.names = Names()
        self.steps: list[dict[str, Any]] = []
        self.epochs: dict[int, int] = {}
        """The epochs of the brokers that are registered, by their ids."""
        self.alive: set[int] = set()
        """The brokers whose sessions go on by heartbeats that are no steps: they change nothing."""
        self._log = log
        self._connection = connection
        self._read_to = 0
        self._image = ClusterImage()

    def call(
        self,
        about: str,
        api: ApiKey,
        version: int,
        *,
        principal: str | None = None,
        now: Callable[[Any], int] | None = None,
        varies: str | None = None,
        **fields: Any,
    ) -> Any:
        """A step, and the response. ``now``: the time in ms that the controller did it, as the response tells.

        ``varies``: what another run does otherwise.
        """
        self.event("meanwhile")
        number = len(self.steps)
        request = self.names.message(request_class(api), fields, number)
        if principal is None:
            response = self._connection.call(request, version)
        else:
            envelope = enveloped(request, version, CLIENT_ID, parse_principal(principal), "127.0.0.1")
            response = opened(self._connection.call(envelope, 0), api, version)
        if now is not None:
            self.names.nows[number] = now(response)
        step: dict[str, Any] = {"step": number, "about": about, "api": api.name, "version": version}
        if principal is not None:
            step["principal"] = principal
        if varies is not None:
            step["varies"] = varies
        step["request"] = self.names.text(request, number)
        records = self._read()
        texts = self.names.records([record for _, record in records], number)
        step["response"] = self.names.text(response, number)
        assert "The active controller appears" not in str(step), f"a step before has made the controller resign: {step}"
        self._finish(step, records, texts)
        return response

    def _keep_alive(self) -> None:
        for broker_id in self.alive:
            request = BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.epochs[broker_id],
                current_metadata_offset=self._read_to - 1,
                cordoned_log_dirs=[],
            )
            self._connection.call(request, 2)

    def event(self, about: str) -> None:
        """A step for records that nobody has asked for; none where there are no such records."""
        self._keep_alive()
        if records := self._read():
            step = {"step": len(self.steps), "about": about}
            self._finish(step, records, self.names.records([each for _, each in records], len(self.steps)))

    def wait(self, about: str, timeout_s: float = 30.0) -> None:
        """Wait for records that nobody has asked for."""
        before = len(self.steps)
        eventually(lambda: self.event(about) or len(self.steps) > before, timeout_s)

    def _finish(self, step: dict[str, Any], records: list[tuple[int, VersionedRecord]], texts: Any) -> None:
        if records:
            step["offset"] = records[0][0]
        step["records"] = texts
        self.steps.append(step)
        written = ", ".join(each["type"].removesuffix("Record") for each in texts)
        print(f"{len(self.steps) - 1:4} {step['about']}: {step.get('response')} {written}", file=sys.stderr)

    def _read(self) -> list[tuple[int, VersionedRecord]]:
        """The data records that are new, each with its offset."""
        found: list[tuple[int, VersionedRecord]] = []
        replay = RecordReplay(self._image)
        for batch in iter_batches(self._log.read_bytes()):
            if batch.base_offset < self._read_to:
                continue
            self._read_to = batch.last_offset + 1
            if batch.is_control:
                kinds = [type(decode_quorum_record(each)).__name__ for each in batch.records()]
                print(f"     control records: {', '.join(kinds)}", file=sys.stderr)
                continue
            for offset, record in enumerate(batch.records(), batch.base_offset):
                found.append((offset, decode_metadata_record(record.value or b"")))
                if not isinstance(found[-1][1][0], BeginTransactionRecord | EndTransactionRecord):
                    replay.replay(found[-1][1][0])
        if found:
            self._image = self._image.apply(replay.delta(LogPosition(self._read_to - 1, 1, 0)))
        return found

    @property
    def end_offset(self) -> int:
        """The offset of the last record."""
        self.event("meanwhile")
        return self._read_to - 1

    def topic_id(self, name: str) -> str:
        """The name of a topic's id."""
        return self.names.name_of(self._image.topics[name].topic_id)

    def partition(self, topic: str, number: int = 0) -> PartitionRegistration:
        return self._image.topics[topic].partitions[number]


Script = Callable[[Capture], None]


def capture(
    script: Script, properties: Mapping[str, str], format_options: Sequence[str], *, registers: bool
) -> list[dict[str, Any]]:
    """The steps of a script on a cluster of its own. ``registers``: whether the controller registers itself at the start."""
    with tempfile.TemporaryDirectory() as folder:
        node = KafkaController(Path(folder), properties, format_options)
        with contextlib.closing(node):
            node.start()
            log = node.data_folders[0] / METADATA_PARTITION_DIR / "00000000000000000000.log"
            with connect(node.address) as connection:
                made = Capture(log, connection)
                made.wait("the first controller becomes active")
                if registers:
                    made.wait("the controller registers itself")
                script(made)
                made.event("meanwhile")
    return made.steps


def main(wanted: Sequence[str]) -> int:
    from . import capture_operations, capture_sessions, capture_upgrades

    for module in (capture_operations, capture_upgrades, capture_sessions):
        name = module.__name__.rpartition("_")[2]
        if wanted and name not in wanted:
            continue
        properties = {**PROPERTIES, **module.PROPERTIES}
        steps = capture(module.script, properties, module.FORMAT, registers=module.REGISTERS)
        about = {"about": module.ABOUT, "properties": properties, "format": list(module.FORMAT), "steps": steps}
        (HERE / f"kafka-4.3.1-{name}.json").write_text(dump(about))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
