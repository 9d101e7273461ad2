"""A driver over a pipe to a program in another language, with JSON lines and one process per driver.

A call is {"object", "method", "arguments"}, bytes in it are base64; object 0 makes the others, and is told by "secure" how
they get in. An answer is {"value"},
{"failure", "code"} for what the broker or the client reported (code 0 or less: the client), or {"error"} with a trace for
anything else, which is the driver's own mistake. The program answers call by call, takes the broker's address as its last
argument and ends with its input.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ottla.compat_tests.clients import model, remote
from ottla.compat_tests.clients.security import Security, client_properties


class Process:
    """The program. One call at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._turn = threading.Lock()

    def call(self, number: int, method: str, **arguments: Any) -> Any:
        """Call a method of object ``number``; bytes in the arguments become base64, as they are in the result."""
        call = json.dumps({"object": number, "method": method, "arguments": arguments}, default=encoded)
        with self._turn:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(call.encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} has ended")
        answer = json.loads(line)
        if "failure" in answer:
            raise model.ClientFailure(answer["code"] if answer["code"] > 0 else None, answer["failure"])
        if "error" in answer:
            raise RuntimeError(f"in {self._process.args!r}:\n{answer['error']}")
        return answer["value"]

    def has_ended(self) -> bool:
        """Whether the program has ended by itself."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the program."""
        remote.end(self._process)


def first(bootstrap: str) -> str:
    """The first of the addresses, for a program that takes one; it finds the others by itself."""
    return bootstrap.partition(",")[0]


def _text(file: str) -> str:
    return Path(file).read_text() if file else ""


def encoded(content: object) -> str:
    """Bytes for JSON."""
    assert isinstance(content, bytes)
    return base64.b64encode(content).decode()


def decoded(text: str | None) -> bytes | None:
    """Bytes from JSON."""
    return None if text is None else base64.b64decode(text)


def listed(offsets: Mapping[tuple[str, int], model.Committed]) -> list[tuple[str, int, int, str]]:
    """Offsets as the program takes them."""
    return [(*where, at.offset, at.metadata) for where, at in offsets.items()]


class Role:
    """An object over there."""

    def __init__(self, process: Process, number: int) -> None:
        self.process = process
        self.number = number

    def _call(self, method: str, **arguments: Any) -> Any:
        return self.process.call(self.number, method, **arguments)

    def close(self) -> None:
        self._call("close")


class Producer(Role, model.Producer):
    """A producer over there."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: model.Headers = (),
    ) -> None:
        self._call(
            "send",
            topic=topic,
            value=value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=list(headers),
        )

    def flush(self) -> list[model.Delivery]:
        return [model.Delivery(*delivery) for delivery in self._call("flush")]

    def begin(self) -> None:
        self._call("begin")

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object) -> None:
        wanted = [(*where, offset) for where, offset in offsets.items()]
        self._call("send_offsets", offsets=wanted, group=group)


class Consumer(Role, model.Consumer):
    """A consumer over there."""

    def assign(self, starts: Mapping[tuple[str, int], model.Start]) -> None:
        self._call("assign", starts=[(*where, start) for where, start in starts.items()])

    def subscribe(self, topics: Sequence[str]) -> None:
        self._call("subscribe", topics=list(topics))

    def subscribe_pattern(self, pattern: str) -> None:
        self._call("subscribe_pattern", pattern=pattern)

    def subscribe_broker_pattern(self, pattern: str) -> None:
        self._call("subscribe_broker_pattern", pattern=pattern)

    def rebalances(self) -> list[model.Rebalance]:
        return [
            model.Rebalance(change, frozenset((topic, partition) for topic, partition in partitions))
            for change, partitions in self._call("rebalances")
        ]

    def poll(self, timeout_s: float) -> list[model.Message]:
        polled = self._call("poll", timeout_ms=int(timeout_s * 1000))
        return [
            model.Message(
                topic,
                partition,
                offset,
                timestamp_ms,
                timestamp_type,
                decoded(key),
                decoded(value),
                tuple((name, decoded(content)) for name, content in headers),
            )
            for (topic, partition, offset, timestamp_ms, timestamp_type), (key, value), headers in polled
        ]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._call("seek", where=(topic, partition), offset=offset)

    def position(self, topic: str, partition: int) -> int:
        return int(self._call("position", where=(topic, partition)))

    def assignment(self) -> frozenset[tuple[str, int]]:
        return frozenset((topic, partition) for topic, partition in self._call("assignment"))

    def commit(self, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        self._call("commit", offsets=listed(offsets))

    def committed(self, topic: str, partition: int) -> model.Committed | None:
        at = self._call("committed", where=(topic, partition))
        return None if at is None else model.Committed(*at)

    def group(self) -> object:
        return self.number

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        low, high = self._call("watermarks", where=(topic, partition))
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found: int | None = self._call("offset_for_time", where=(topic, partition), timestamp_ms=timestamp_ms)
        return found


class Admin(Role, model.Admin):
    """An admin client over there."""

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        self._call(
            "create_topic",
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
            validate_only=validate_only,
        )

    def delete_topic(self, name: str) -> None:
        self._call("delete_topic", name=name)

    def list_topics(self) -> set[str]:
        return set(self._call("list_topics"))

    def describe_topic(self, name: str) -> model.TopicDescription:
        return model.TopicDescription(name, dict(self._call("describe_topic", name=name)))

    def create_partitions(self, topic: str, total: int) -> None:
        self._call("create_partitions", name=topic, total=total)

    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, model.ConfigEntry]:
        return {
            config: model.ConfigEntry(
                value,
                model.CONFIG_SOURCES[source],
                read_only,
                sensitive,
                tuple(
                    (each, each_value, model.CONFIG_SOURCES[each_source]) for each, each_value, each_source in synonyms
                ),
            )
            for config, (value, source, read_only, sensitive, synonyms) in self._call(
                "describe_configs", kind=kind, name=name
            ).items()
        }

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._call("alter_configs", name=topic, configs=dict(configs))

    def incremental_alter_configs(self, topic: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        self._call("incremental_alter_configs", name=topic, changes=list(changes))

    def list_groups(self) -> set[str]:
        return set(self._call("list_groups"))

    def describe_group(self, group_id: str) -> model.GroupDescription:
        state, owned = self._call("describe_group", name=group_id)
        members = {member: frozenset((topic, part) for topic, part in parts) for member, parts in owned.items()}
        return model.GroupDescription(group_id, state, "consumer", members)

    def delete_group(self, group_id: str) -> None:
        self._call("delete_group", name=group_id)

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], model.Committed]:
        found = self._call("group_offsets", name=group_id)
        return {(topic, partition): model.Committed(*at) for topic, partition, *at in found}

    def alter_group_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        self._call("alter_group_offsets", name=group_id, offsets=listed(offsets))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        return int(self._call("delete_records", where=(topic, partition), before_offset=before_offset))

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        return int(self._call("list_offset", where=(topic, partition), spec=spec))

    def describe_cluster(self) -> model.ClusterDescription:
        cluster_id, controller_id, brokers = self._call("describe_cluster")
        return model.ClusterDescription(cluster_id, controller_id, {node: (host, port) for node, host, port in brokers})

    def describe_log_dirs(self, topic: str) -> dict[int, int]:
        return dict(self._call("describe_log_dirs", name=topic))


class Client(model.Client):
    """The client that the program of ``command`` drives; ``name`` is the library with its version."""

    def __init__(self, name: str, command: Sequence[str], bootstrap: str) -> None:
        self._name = name
        self._process = Process([*command, bootstrap])

    def version(self) -> str:
        return self._name

    def secure(self, security: Security) -> None:
        """Kafka's client properties for libraries that know them; for the others what is in the files."""
        self._process.call(
            0,
            "secure",
            properties=client_properties(security),
            protocol=security.protocol,
            mechanism=security.mechanism or "",
            username=security.username,
            password=security.password,
            token=security.token if security.token_file else "",
            ca=_text(security.ca_file),
            certificate=_text(security.certificate_file),
        )

    def producer(self, settings: model.ProducerSettings) -> model.Producer:
        return Producer(self._process, self._process.call(0, "producer", **dataclasses.asdict(settings)))

    def consumer(self, settings: model.ConsumerSettings) -> model.Consumer:
        return Consumer(self._process, self._process.call(0, "consumer", **dataclasses.asdict(settings)))

    def admin(self) -> model.Admin:
        return Admin(self._process, self._process.call(0, "admin"))

    def has_ended(self) -> bool:
        return self._process.has_ended()

    def close(self) -> None:
        self._process.close()
