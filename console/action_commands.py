"""Shell commands that are equivalent to the console's actions, ``ottla …`` and Kafka's own."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .commands import Command, line, named
from .record_forms import RecordContent, RecordPosition

_NOT_OF_SHARE_GROUPS = ("offset", "shift")
"""Ways of a reset that kafka-share-groups does not have."""


def create_topic(
    server: str, name: str, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
) -> Command:
    ottla = ["ottla", "topics", "create", "-b", server]
    kafka = ["kafka-topics.sh", "--bootstrap-server", server, "--create", "--topic", name]
    if partitions is not None:
        ottla += ["-p", str(partitions)]
        kafka += ["--partitions", str(partitions)]
    if replicas is not None:
        ottla += ["-r", str(replicas)]
        kafka += ["--replication-factor", str(replicas)]
    for key, value in configs.items():
        ottla += ["-c", f"{key}={value}"]
        kafka += ["--config", f"{key}={value}"]
    return Command(line(*ottla, *named(name)), line(*kafka))


def add_partitions(server: str, name: str, count: int) -> Command:
    return Command(
        line("ottla", "topics", "alter", "-b", server, "-p", str(count), *named(name)),
        line("kafka-topics.sh", "--bootstrap-server", server, "--alter", "--topic", name, "--partitions", str(count)),
    )


def set_config(server: str, topic: str, name: str, value: str) -> Command:
    bracketed = f"[{value}]" if "," in value else value
    return Command(
        line("ottla", "configs", "set", "-b", server, "--topic", topic, *named(f"{name}={value}")),
        line(*_configs(server, topic), "--add-config", f"{name}={bracketed}"),
    )


def unset_config(server: str, topic: str, name: str) -> Command:
    return Command(
        line("ottla", "configs", "unset", "-b", server, "--topic", topic, *named(name)),
        line(*_configs(server, topic), "--delete-config", name),
    )


def _configs(server: str, topic: str) -> tuple[str, ...]:
    start = "kafka-configs.sh", "--bootstrap-server", server, "--alter"
    return *start, "--entity-type", "topics", "--entity-name", topic


def delete_records(server: str, topic: str, number: int, offset: int | None) -> Command:
    """``offset`` None for all. Kafka's tool reads a file; it is made in the same line."""
    where = "end" if offset is None else str(offset)
    file = f'{{"partitions": [{{"topic": "{topic}", "partition": {number}, "offset": {-1 if offset is None else offset}}}]}}'
    ottla = line("ottla", "topics", "trim", "-b", server, "-p", str(number), "-o", where, "--execute", *named(topic))
    kafka = line("kafka-delete-records.sh", "--bootstrap-server", server, "--offset-json-file", "/dev/stdin")
    return Command(ottla, f"{line('echo', file)} | {kafka}")


def delete_topic(server: str, name: str) -> Command:
    return Command(
        line("ottla", "topics", "delete", "-b", server, *named(name)),
        line("kafka-topics.sh", "--bootstrap-server", server, "--delete", "--topic", name),
    )


def produce(server: str, topic: str, partition: int | None, content: RecordContent) -> Command | None:
    """``ottla produce`` takes everything but headers without a value, Kafka's tool lines of text."""
    if any(data is None for _, data in content.headers):
        return None
    described: dict[str, Any] = {**_told("key", content.key), **_told("value", content.value)}
    if content.headers:
        described["headers"] = [{"key": name, **_told("value", data)} for name, data in content.headers]
    where = [] if partition is None else ["-p", str(partition)]
    tool = line("ottla", "produce", "-b", server, "--json", *where, *named(topic))
    ottla = f"{_printed(json.dumps(described))} | {tool}"
    kafka = ""
    if content.value and partition is None and not content.headers and content.key is None and _is_line(content.value):
        tool = line("kafka-console-producer.sh", "--bootstrap-server", server, "--topic", topic)
        kafka = f"{_printed(content.value.decode())} | {tool}"
    return Command(ottla, kafka)


def send_again(server: str, topic: str, place: RecordPosition, to: str) -> Command:
    """Of one record: the others are sent alike."""
    where = ("-p", str(place.partition), "-o", str(place.offset), "-n", "1", "-e", "--json")
    ottla = line("ottla", "consume", "-b", server, *where, *named(topic))
    return Command(f"{ottla} | {line('ottla', 'produce', '-b', server, '--json', *named(to))}")


def _printed(text: str) -> str:
    return line("printf", "%s\\n", text)


def _told(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _is_line(data: bytes) -> bool:
    try:
        return "\n" not in data.decode()
    except UnicodeDecodeError:
        return False


def reset_offsets(
    server: str, group: str, topics: Sequence[str], way: str, at: int, *, is_share: bool = False
) -> Command:
    """``at``: an offset, a distance, or ms since 1970."""
    ottla = ["ottla", "groups", "reset-offsets", "-b", server]
    tool = "kafka-share-groups.sh" if is_share else "kafka-consumer-groups.sh"
    kafka = [tool, "--bootstrap-server", server, "--reset-offsets", "--group", group]
    chosen = [word for topic in topics for word in ("--topic", topic)] or ["--all-topics"]
    to = [f"--to-{way}"]
    if way == "time":
        to = ["--to-datetime", moment(at)]
    elif way == "shift":
        to = [f"--shift-by={at}"] if at < 0 else ["--shift-by", str(at)]
    elif way == "offset":
        to.append(str(at))
    known = not is_share or way not in _NOT_OF_SHARE_GROUPS
    return Command(
        line(*ottla, *chosen, *to, "--execute", *named(group)),
        line(*kafka, *chosen, *to, "--execute") if known else "",
    )


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"


def delete_group(server: str, group: str, *, is_share: bool = False) -> Command:
    tool = "kafka-share-groups.sh" if is_share else "kafka-consumer-groups.sh"
    return Command(
        line("ottla", "groups", "delete", "-b", server, *named(group)),
        line(tool, "--bootstrap-server", server, "--delete", "--group", group),
    )


def abort_transaction(server: str, topic: str, partition: int, start: int) -> Command:
    where = "--partition", str(partition), "--start-offset", str(start)
    return Command(
        line("ottla", "transactions", "abort", "-b", server, *where, *named(topic)),
        line("kafka-transactions.sh", "--bootstrap-server", server, "abort", "--topic", topic, *where),
    )
